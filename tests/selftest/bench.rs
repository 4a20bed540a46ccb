//! Builds the simulator around a core with one rule broken, runs it, and reads off what it says.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::mutants::{ALL, Mutant};

const SEEDS: u64 = 1_000;

/// What became of one broken rule.
enum Verdict {
    Caught { by: String, seed: String },
    NotCaught,
    Unusable(String),
}

/// A copy of the repository in which one rule at a time is broken.
struct Bench {
    root: PathBuf,
}

/// Tries the rules whose names contain `wanted`, all with "all". Gives those that were not caught.
pub(crate) fn try_all(repository: &Path, wanted: &str) -> Vec<&'static str> {
    let out = std::env::var("FLOODLINE_SELFTEST_DIR").map_or_else(|_| std::env::temp_dir(), PathBuf::from);
    let mutants: Vec<&Mutant> = ALL.iter().filter(|mutant| wanted == "all" || mutant.rule.contains(wanted)).collect();
    let (next, missed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(mutants.len());
    say(&format!("{:<70} {:<32} {}", "rule broken", "caught by", "at seed"));
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (next, missed, mutants, root) = (&next, &missed, &mutants, out.join(format!("bench-{thread}")));
            scope.spawn(move || {
                let bench = Bench::new(repository, root);
                while let Some(mutant) = mutants.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if !row(mutant, &bench.try_one(mutant)) {
                        missed.lock().expect("nobody panics with it").push(mutant.rule);
                    }
                }
            });
        }
    });
    missed.into_inner().expect("nobody panics with it")
}

fn row(mutant: &Mutant, verdict: &Verdict) -> bool {
    let (by, seed, caught) = match verdict {
        Verdict::Caught { by, seed } => (by.as_str(), seed.as_str(), true),
        Verdict::NotCaught => ("NOT CAUGHT", "", false),
        Verdict::Unusable(why) => (why.as_str(), "", false),
    };
    say(&format!("{:<70} {by:<32} {seed}", mutant.rule));
    caught
}

fn say(line: &str) {
    writeln!(std::io::stdout(), "{line}").expect("stdout is open");
}

impl Bench {
    fn new(repository: &Path, root: PathBuf) -> Bench {
        for part in ["src", "tests/sim"] {
            let to = root.join(part);
            if to.exists() {
                fs::remove_dir_all(&to).expect("an old copy goes");
            }
            copy(&repository.join(part), &to);
        }
        Bench { root }
    }

    fn try_one(&self, mutant: &Mutant) -> Verdict {
        let path = self.root.join("src/protocol").join(mutant.file);
        let whole = fs::read_to_string(&path).expect("the core is there");
        fs::write(&path, whole.replacen(mutant.text, mutant.broken, 1)).expect("the copy can be written");
        let verdict = match self.build() {
            Ok(simulator) => self.run(&simulator),
            Err(why) => Verdict::Unusable(why),
        };
        fs::write(&path, whole).expect("the copy can be written");
        verdict
    }

    /// Compiles with what was compiled before for another rule, which makes it a matter of seconds.
    fn build(&self) -> Result<PathBuf, String> {
        let (library, simulator) = (self.root.join("libfloodline.rlib"), self.root.join("simulator"));
        let core = ["--crate-type", "rlib", "--crate-name", "floodline"].map(String::from).to_vec();
        self.compile("src/pure.rs", &library, core)?;
        let with = vec!["--test".into(), "--extern".into(), format!("floodline={}", library.display())];
        self.compile("tests/sim/main.rs", &simulator, with)?;
        Ok(simulator)
    }

    fn compile(&self, source: &str, to: &Path, more: Vec<String>) -> Result<(), String> {
        let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
        let cache = format!("incremental={}", self.root.join("cache").display());
        let mut command = Command::new(rustc);
        command.args(["--edition", "2024", "-C", "opt-level=2", "-A", "warnings", "-C", &cache]).args(more);
        let output = command.arg(self.root.join(source)).arg("-o").arg(to).output().expect("the compiler starts");
        let error = String::from_utf8_lossy(&output.stderr).lines().take(3).collect::<Vec<_>>().join(" / ");
        if output.status.success() { Ok(()) } else { Err(format!("DOES NOT COMPILE: {error}")) }
    }

    fn run(&self, simulator: &Path) -> Verdict {
        let mut command = Command::new(simulator);
        command.args(["every_seed", "--nocapture"]).env("FLOODLINE_SEEDS", SEEDS.to_string());
        command.env("FLOODLINE_FIRST_SEED", "1").env("FLOODLINE_FAILURES", "1").env_remove("FLOODLINE_SEED");
        let output = command.output().expect("the simulator starts");
        let text = String::from_utf8_lossy(&output.stdout);
        let first = text.lines().find_map(|line| line.strip_prefix("seed ")?.split_once(": "));
        match first {
            Some((seed, failure)) => {
                let by = failure.split(" broken").next().unwrap_or(failure).to_owned();
                Verdict::Caught { by, seed: seed.to_owned() }
            }
            None if text.contains(&format!("{SEEDS} seeds, ")) => Verdict::NotCaught,
            None => Verdict::Unusable("THE SIMULATOR BROKE OFF".to_owned()),
        }
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory can be made");
    for entry in fs::read_dir(from).expect("the repository can be read").flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("a file can be copied");
        }
    }
}
