//! The demo: a cluster from one command, its elections, its jobs, and what `kill -9` does to it.
//!
//! It does nothing that a person could not do with two terminals: `floodline up` in one, `submit`, `cluster` and
//! `kill` in the other. Everything that it shows it also checks; it ends with 0 only if all was right.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "printing is what it is for")]

mod cluster;
mod job;
mod page;
mod plain;

use std::fmt::Write;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use tokio::signal::unix::{SignalKind, signal};

use cluster::{Cluster, View};
use job::{Books, Message};
use page::{Bar, chapter, line};

const WORKERS: u32 = 5;
/// Admissions of a term, unless set otherwise.
const CAP: u64 = 5;
/// Numbers in each of the two files.
const NUMBERS: u32 = 1_000_000;

/// Sums of primes that anyone can look up: the sequence A046731 of the OEIS, for 10^9 and 10^10.
const TO_A_BILLION: &str = "24739512092254535";
const TO_TEN_BILLIONS: &str = "2220822432581729238";

#[tokio::main]
async fn main() -> ExitCode {
    let mut terminated = signal(SignalKind::terminate()).expect("signals can be waited for");
    tokio::select! {
        result = demo() => match result {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("\ndemo failed: {error:#}");
                ExitCode::FAILURE
            }
        },
        // Dropping the demo ends its cluster.
        _ = tokio::signal::ctrl_c() => ExitCode::from(130),
        _ = terminated.recv() => ExitCode::from(143),
    }
}

async fn demo() -> Result<()> {
    let started = Instant::now();
    chapter(
        "Floodline: a job cluster with no fixed master",
        "A directory and five workers start on this machine, each a process of its own that talks to the others
         over sockets. This is `floodline up`; all that follows is `floodline submit`, `floodline cluster` and `kill`.",
    );
    let mut cluster = Cluster::start(WORKERS).await?;
    for node in &cluster.nodes {
        line(format_args!("{:<12} {:<10} process {:<8} {}", node.node, node.role, node.pid, node.address));
    }
    if let Err(error) = story(&cluster).await {
        eprintln!("\nthe end of the nodes' log:\n{}", cluster.log());
        return Err(error);
    }
    cluster.end().await?;
    line(format_args!("Every process has ended. The demo took {} s.", started.elapsed().as_secs()));
    Ok(())
}

async fn story(cluster: &Cluster) -> Result<()> {
    let mut books = Books::default();
    let before = election(cluster).await?;
    billion(cluster, &mut books).await?;
    lists(cluster, &mut books).await?;
    rotation(cluster, &mut books).await?;
    let worker = worker_killed(cluster, &mut books).await?;
    let coordinator = coordinator_killed(cluster, &mut books).await?;
    after(cluster, &books, &before, &[worker, coordinator]).await
}

async fn election(cluster: &Cluster) -> Result<View> {
    chapter(
        "The first election",
        "No worker is told to lead. One floods the question over the links; every worker answers with how many jobs it
         has admitted so far, its JAC. The lowest JAC wins, and among equals the smaller name.",
    );
    let all_there = |view: &View| view.leader.is_some() && view.nodes.len() == WORKERS as usize && linked(view);
    let view = cluster.once("a leader and five linked workers", all_there).await?;
    table(&view, &[]);
    Ok(view)
}

fn linked(view: &View) -> bool {
    view.nodes.iter().all(|node| node.alive && !node.links.is_empty())
}

async fn billion(cluster: &Cluster, books: &mut Books) -> Result<()> {
    chapter(
        "The sum of all primes up to a billion",
        "The coordinator cuts the range into slices and deals them out; every worker computes, the coordinator too.",
    );
    let title = "PRIMESUM 1..=1000000000";
    let arguments = ["submit", "primesum", "1", "1000000000"];
    let done = watched(cluster, books, title, &arguments, TO_A_BILLION).await?;
    line(format_args!("tasks by worker: {}", done.shares()));
    Ok(())
}

/// Runs a job, checks its answer and enters it in the books.
async fn watched(
    cluster: &Cluster,
    books: &mut Books,
    title: &str,
    arguments: &[&str],
    right: &str,
) -> Result<Message> {
    let done = job::run(cluster, Bar::new(title), arguments, |_, _| Ok(())).await?;
    checked(books, title, &done, right)?;
    Ok(done)
}

fn checked(books: &mut Books, title: &str, done: &Message, right: &str) -> Result<()> {
    let answer = done.answer.as_deref().unwrap_or_default();
    line(format_args!("{title} = {answer}"));
    ensure!(answer == right, "{title} is {right}, not {answer}");
    books.enter(done);
    Ok(())
}

async fn lists(cluster: &Cluster, books: &mut Books) -> Result<()> {
    chapter(
        "A million numbers in a file",
        "The largest of a million numbers of both signs, and how many of a million numbers are prime: by the cluster,
         and for comparison by a plain loop on one thread.",
    );
    let mut dice = plain::Dice(2026);
    let signed: Vec<i64> = (0..NUMBERS).map(|_| dice.roll().cast_signed()).collect();
    let path = write(cluster, "signed.txt", &signed)?;
    let right = plain::largest(&signed).to_string();
    watched(cluster, books, "MAX of 1,000,000 numbers", &["submit", "max", "--file", &path], &right).await?;

    // Of every size, since primes are common among small numbers and rare among large ones.
    let unsigned: Vec<u64> = (0..NUMBERS).map(|_| dice.roll() >> (dice.roll() % 64)).collect();
    let path = write(cluster, "unsigned.txt", &unsigned)?;
    let right = tokio::task::spawn_blocking(move || plain::primes_among(&unsigned)).await?.to_string();
    let title = "PRIMECOUNT of 1,000,000 numbers";
    watched(cluster, books, title, &["submit", "primecount", "--file", &path], &right).await?;
    line("both right: a plain loop on one thread says the same");
    Ok(())
}

fn write<N: std::fmt::Display>(cluster: &Cluster, name: &str, numbers: &[N]) -> Result<String> {
    let mut text = String::new();
    numbers.iter().try_for_each(|number| writeln!(text, "{number}"))?;
    let path = cluster.folder.path().join(name);
    std::fs::write(&path, text)?;
    Ok(path.to_str().context("the temporary folder's name is text")?.to_owned())
}

async fn rotation(cluster: &Cluster, books: &mut Books) -> Result<()> {
    chapter(
        "Five jobs are a term",
        "Three are done. A coordinator that has admitted five finishes them and steps down; the next flood finds the
         worker that has coordinated least. A submission meanwhile waits and is not refused.",
    );
    for step in 1..=6_u32 {
        let end = step * 1_000_000;
        let title = format!("PRIMESUM 1..={end}");
        let arguments = ["submit", "primesum", "1", &end.to_string()];
        let done = job::run(cluster, Bar::unless_plain(&title), &arguments, |_, _| Ok(())).await?;
        let right = plain::sum_of_primes(end as usize).to_string();
        ensure!(done.answer.as_deref() == Some(right.as_str()), "{title} is {right}, not {:?}", done.answer);
        let [admission] = done.admissions.as_slice() else { bail!("{title} was counted {:?}", done.admissions) };
        let place = format!("term {}, job {} of 5, by {}", admission.term, admission.place, admission.leader);
        line(format_args!("{:<42}  {place}, whose JAC is {} now", format!("{title} = {right}"), admission.jac));
        books.enter(&done);
    }
    ensure!(books.by_leader().len() > 1, "the coordinator did not rotate");
    Ok(())
}

/// The long job of the last two chapters.
const LONG: (&str, [&str; 4]) = ("PRIMESUM 1..=10000000000", ["submit", "primesum", "1", "10000000000"]);

/// Whether a third of it is done, which is its middle for one who wants to break it.
fn is_midway(message: &Message) -> bool {
    message.state == "RUNNING" && message.completed * 3 >= message.total && message.completed < message.total
}

async fn worker_killed(cluster: &Cluster, books: &mut Books) -> Result<String> {
    chapter(
        "kill -9 for a worker, in the middle of a job",
        "Ten times as far this time. When a third is done a worker that computes dies without a word.",
    );
    let mut killed = None;
    let kill = |message: &Message, bar: &Bar| {
        let is_victim = |share: &&job::Share| share.running > 0 && Some(&share.node) != message.leader.as_ref();
        if let (None, true, Some(victim)) = (&killed, is_midway(message), message.workers.iter().rev().find(is_victim))
        {
            let node = cluster.kill(&victim.node)?;
            let had = plural(victim.running, "task");
            bar.tell(&format!("SIGKILL to {} (process {}), which had {had}", node.node, node.pid));
            killed = Some(node.node.clone());
        }
        Ok(())
    };
    let done = job::run(cluster, Bar::new(LONG.0), &LONG.1, kill).await?;
    let killed = killed.context("the job was over before a worker could be killed; try a larger one")?;
    checked(books, LONG.0, &done, TO_TEN_BILLIONS)?;
    line(format_args!("tasks by worker: {}", done.shares()));
    line(format_args!("{} went to another worker after {killed} was gone; the bar never went back", again(&done)));
    Ok(killed)
}

/// How many tasks took more than one attempt.
fn again(done: &Message) -> String {
    plural(done.tasks.iter().filter(|task| task.attempt > 1).count() as u64, "task")
}

fn plural(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

async fn coordinator_killed(cluster: &Cluster, books: &mut Books) -> Result<String> {
    chapter(
        "kill -9 for the coordinator, in the middle of a job",
        "The same again, but now the one dies that deals out the work. Every worker has a copy of the ledger: whoever
         wins the election carries on, and nothing that was completed is computed again.",
    );
    let mut killed = None;
    let kill = |message: &Message, bar: &Bar| {
        if let (None, true, Some(leader)) = (&killed, is_midway(message), &message.leader) {
            let node = cluster.kill(leader)?;
            bar.tell(&format!("SIGKILL to the coordinator, {} (process {})", node.node, node.pid));
            killed = Some((node.node.clone(), message.term, message.completions()));
        }
        Ok(())
    };
    let done = job::run(cluster, Bar::new(LONG.0), &LONG.1, kill).await?;
    let (killed, term, before) = killed.context("the job was over before its coordinator could be killed")?;
    checked(books, LONG.0, &done, TO_TEN_BILLIONS)?;
    let (successor, later) = (done.leader.clone().unwrap_or_default(), done.term);
    ensure!(later > term && successor != killed, "term {later:?} of {successor} after term {term:?} of {killed}");
    line(format_args!("tasks by worker: {}", done.shares()));
    let [of, to] = [term, later].map(Option::unwrap_or_default);
    line(format_args!("{successor} finished in term {to} what {killed} began in term {of}"));
    let after = done.completions();
    let kept = before.iter().filter(|(task, attempt)| after.get(task) == Some(attempt)).count();
    line(format_args!("of the {} tasks that were done by then {kept} kept their result", before.len()));
    // What its last moment brought may have died with it: the client saw it, no other worker did yet.
    ensure!(kept * 2 >= before.len(), "completed tasks were computed again: {before:?}, then {after:?}");
    Ok(killed)
}

async fn after(cluster: &Cluster, books: &Books, before: &View, killed: &[String]) -> Result<()> {
    chapter("Afterwards", "Terms have moved on, and every JAC says how many jobs its owner has admitted.");
    let led = |view: &View| view.leader.as_ref().is_some_and(|leader| !killed.contains(leader));
    let view = cluster.once("a leader that lives", led).await?;
    table(&view, killed);
    books.check(CAP)?;
    let counted = books.by_leader();
    for node in view.nodes.iter().filter(|node| !killed.contains(&node.node)) {
        let right = counted.get(node.node.as_str()).copied().unwrap_or_default();
        ensure!(node.jac == right, "{} admitted {right} jobs, its JAC says {}", node.node, node.jac);
    }
    ensure!(view.term > before.term, "the term did not rise");
    let [first, last] = [before, &view].map(term);
    println!();
    line(format_args!("{} jobs, {} answers right, each counted once, none lost.", books.jobs(), books.jobs()));
    line(format_args!("Terms {first} to {last}, none with more than {CAP} jobs, and two processes killed."));
    Ok(())
}

fn table(view: &View, killed: &[String]) {
    line(format_args!("{:<12} {:>4}  {}", "WORKER", "JAC", "LINKS"));
    for node in &view.nodes {
        // The others call it gone once its lease has run out; whoever killed it knows better.
        let (jac, links) = match (killed.contains(&node.node), view.leader.as_ref() == Some(&node.node)) {
            (true, _) => (String::new(), "killed".to_owned()),
            (false, true) => (node.jac.to_string(), format!("{}   leads term {}", node.links.join(" "), term(view))),
            (false, false) => (node.jac.to_string(), node.links.join(" ")),
        };
        line(format_args!("{:<12} {jac:>4}  {links}", node.node));
    }
}

fn term(view: &View) -> u64 {
    view.term.unwrap_or_default()
}
