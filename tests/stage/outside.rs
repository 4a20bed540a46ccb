//! What a person does from outside: `floodline`, with the nodes that it is to ask.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};

use serde_json::Value;

use super::command::{Done, PATIENCE, eventually, output, run};

/// The sums of the primes up to 10^10 and 10^11, as published (A046731 of the OEIS).
pub(crate) const LARGE: [&str; 3] = ["primesum", "1", "10000000000"];
pub(crate) const ANSWER_OF_LARGE: &str = "2220822432581729238";
pub(crate) const HUGE: [&str; 3] = ["primesum", "1", "100000000000"];
pub(crate) const ANSWER_OF_HUGE: &str = "201467077743744681014";

/// A client of a cluster.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    /// How `floodline` is started.
    program: Vec<String>,
    nodes: String,
}

impl Client {
    /// One on this machine.
    pub(crate) fn of(nodes: &[String]) -> Client {
        Client { program: vec![env!("CARGO_BIN_EXE_floodline").to_owned()], nodes: nodes.join(",") }
    }

    /// One elsewhere: `program` starts it there.
    pub(crate) fn elsewhere(program: &[&str], nodes: &str) -> Client {
        Client { program: program.iter().map(|&word| word.to_owned()).collect(), nodes: nodes.to_owned() }
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program[0]);
        command.args(&self.program[1..]).args(arguments).args(["--output", "json", "--node", &self.nodes]);
        command
    }

    /// The cluster, if any node answers.
    pub(crate) fn cluster(&self) -> Option<Value> {
        let done = run(&mut self.command(&["cluster"]));
        (done.code == Some(0)).then(|| serde_json::from_str(&done.out).expect("one object"))
    }

    /// Waits until so many workers live and follow one leader; names them and it.
    pub(crate) fn settles(&self, workers: usize) -> Cluster {
        eventually(&format!("a cluster of {workers} with a leader"), || {
            let cluster = Cluster::read(&self.cluster()?)?;
            (cluster.nodes.len() == workers && cluster.has(&cluster.leader)).then_some(cluster)
        })
    }

    /// Hands in a job and follows it to its end, for its answer.
    pub(crate) fn submit(&self, job: &[&str]) -> String {
        answer(&output(&mut self.command(&[&["submit"], job].concat())))
    }

    /// Hands in a job and comes back once it is acknowledged.
    pub(crate) fn detach(&self, id: &str, job: &[&str]) {
        output(&mut self.command(&[&["submit"], job, &["--detach", "--job-id", id]].concat()));
    }

    /// Follows a job to its end, for its answer.
    pub(crate) fn answer(&self, id: &str) -> String {
        answer(&output(&mut self.command(&["watch", id])))
    }

    /// The trace of a job that is known.
    pub(crate) fn trace_of(&self, id: &str) -> String {
        let listed = output(&mut self.command(&["jobs"]));
        let jobs = listed.lines().map(|line| serde_json::from_str::<Value>(line).expect("an object"));
        let job = jobs.into_iter().find(|job| job["job_id"] == id).expect("it is listed");
        job["trace_id"].as_str().expect("it is traced").to_owned()
    }

    /// Waits until a job that has not ended has completed a task or more.
    pub(crate) fn in_the_middle_of(&self, id: &str) {
        let mut watch = self.command(&["watch", id]).stdout(Stdio::piped()).spawn().expect("it starts");
        let lines = BufReader::new(watch.stdout.take().expect("piped")).lines();
        let mut messages = lines.map(|line| serde_json::from_str::<Value>(&line.expect("text")).expect("an object"));
        let message = messages.find(|message| message["completed"].as_u64() > Some(0)).expect("it gets on");
        assert!(message["finished_at"].is_null(), "job {id} is too small to be met in its middle: {message}");
        end(watch);
    }
}

/// Ends a command that would go on.
pub(crate) fn end(mut child: Child) {
    child.kill().expect("it can be ended");
    child.wait().expect("it can be waited for");
}

fn answer(messages: &str) -> String {
    last(messages)["answer"].as_str().unwrap_or_else(|| panic!("no answer: {messages}")).to_owned()
}

/// The last message of a job.
pub(crate) fn last(messages: &str) -> Value {
    serde_json::from_str(messages.lines().last().unwrap_or_default()).unwrap_or_else(|_| panic!("{messages}"))
}

/// Who lives, and who leads.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) leader: String,
    pub(crate) nodes: Vec<Node>,
}

#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) name: String,
    /// The host of its address.
    pub(crate) host: String,
    pub(crate) jac: u64,
}

impl Cluster {
    fn read(cluster: &Value) -> Option<Cluster> {
        let living = cluster["nodes"].as_array()?.iter().filter(|node| node["alive"] == true);
        let nodes = living.map(|node| {
            let text = |key: &str| node[key].as_str().map(str::to_owned);
            let host = text("address")?.split(['.', ':']).next()?.to_owned();
            Some(Node { name: text("node")?, host, jac: node["jac"].as_u64()? })
        });
        Some(Cluster { leader: cluster["leader"].as_str()?.to_owned(), nodes: nodes.collect::<Option<_>>()? })
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.nodes.iter().any(|node| node.name == name)
    }

    pub(crate) fn node(&self, name: &str) -> &Node {
        self.nodes.iter().find(|node| node.name == name).unwrap_or_else(|| panic!("no {name} in {self:?}"))
    }
}

/// What happens at all members, from now on.
pub(crate) struct Events {
    follower: Child,
    reader: JoinHandle<()>,
    seen: Arc<Mutex<Vec<Value>>>,
}

impl Events {
    /// Begins to listen; when this returns it hears.
    pub(crate) fn of(client: &Client) -> Events {
        let follower = client.command(&["events", "--all"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut follower = follower.expect("it starts");
        let lines = BufReader::new(follower.stdout.take().expect("piped")).lines();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&seen);
        let reader = thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                kept.lock().expect("nobody panicked").push(serde_json::from_str(&line).expect("an object"));
            }
        });
        eventually("hearing of a job", || {
            output(&mut client.command(&["submit", "max", "1"]));
            let is_heard = !seen.lock().expect("nobody panicked").is_empty();
            is_heard.then_some(())
        });
        Events { follower, reader, seen }
    }

    /// What has happened.
    pub(crate) fn end(self) -> Vec<Value> {
        end(self.follower);
        self.reader.join().expect("every line is an object");
        Arc::into_inner(self.seen).and_then(|seen| seen.into_inner().ok()).expect("the reader has ended")
    }
}

/// Submissions without a pause, by several at once, until it is ended.
pub(crate) struct Load {
    submitters: Vec<JoinHandle<()>>,
    told: Arc<AtomicBool>,
    tally: Arc<(Mutex<Tally>, Condvar)>,
}

/// What became of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) succeeded: u64,
    pub(crate) failed: Vec<(Option<i32>, String)>,
}

impl Load {
    pub(crate) fn start(client: &Client, submitters: u64) -> Load {
        let (told, tally) = (Arc::new(AtomicBool::new(false)), Arc::<(Mutex<Tally>, Condvar)>::default());
        let submitters = (0..submitters).map(|number| {
            let (client, told, tally) = (client.clone(), Arc::clone(&told), Arc::clone(&tally));
            thread::spawn(move || {
                let numbers = (number..).step_by(1_000).take_while(|_| !told.load(Ordering::Relaxed));
                for largest in numbers {
                    let done = run(&mut client.command(&["submit", "max", "-7", &largest.to_string(), "-3"]));
                    tally.0.lock().expect("nobody panicked").enter(done, largest);
                    tally.1.notify_all();
                }
            })
        });
        Load { submitters: submitters.collect(), told, tally }
    }

    /// Waits until so many more have succeeded, so that the cluster has shown that it serves.
    pub(crate) fn goes_on(&self, more: u64) {
        let tally = self.tally.0.lock().expect("nobody panicked");
        let enough = tally.succeeded + more;
        let waited = self.tally.1.wait_timeout_while(tally, PATIENCE, |tally| tally.succeeded < enough);
        let (tally, waited) = waited.expect("nobody panicked");
        assert!(!waited.timed_out(), "{more} more submissions take longer than {PATIENCE:?}: {tally:?}");
    }

    pub(crate) fn end(self) -> Tally {
        self.told.store(true, Ordering::Relaxed);
        self.submitters.into_iter().for_each(|submitter| submitter.join().expect("it does not panic"));
        let (tally, _) = Arc::into_inner(self.tally).expect("all have ended");
        tally.into_inner().expect("nobody panicked")
    }
}

impl Tally {
    fn enter(&mut self, done: Done, largest: u64) {
        if done.code == Some(0) {
            assert_eq!(last(&done.out)["answer"], largest.to_string(), "a wrong answer");
            self.succeeded += 1;
        } else {
            self.failed.push((done.code, done.err));
        }
    }
}
