//! Every transcript is played again, and compared with what is written; `make transcripts` writes it anew.

#![allow(clippy::disallowed_methods, reason = "transcripts are files, and these are tests")]

use std::fs;
use std::path::{Path, PathBuf};

const FOLDER: &str = "src/protocol/testdata";

fn transcripts() -> Vec<PathBuf> {
    let entries = fs::read_dir(FOLDER).expect("the folder of transcripts, from the root of the repository");
    let files = entries.map(|entry| entry.expect("an entry that can be read").path());
    let mut files: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|end| end == "txt")).collect();
    files.sort();
    files
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).expect("a transcript that can be read")
}

#[test]
fn what_happens_is_what_the_transcripts_say() {
    let anew = std::env::var("FLOODLINE_TRANSCRIPTS").is_ok_and(|what| what == "write");
    let only = std::env::var("FLOODLINE_TRANSCRIPT").unwrap_or_default();
    let mut wrong = Vec::new();
    for path in transcripts().into_iter().filter(|path| path.to_string_lossy().contains(&only)) {
        let written = text(&path);
        let played = super::play(&written);
        if anew {
            fs::write(&path, played).expect("a transcript that can be written");
        } else if let Some((at, (is, was))) =
            played.lines().chain([""]).zip(written.lines().chain([""])).enumerate().find(|(_, (is, was))| is != was)
        {
            wrong.push(format!("{}:{}\n  was {was}\n  is  {is}", path.display(), at + 1));
        } else if played.lines().count() != written.lines().count() {
            wrong.push(format!("{} has other lines at its end", path.display()));
        }
    }
    assert!(wrong.is_empty(), "`make transcripts` writes them anew; {} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_transcript_says_which_rule_it_shows_and_is_listed_in_the_index() {
    let index = text(&Path::new(FOLDER).join("README.md"));
    let files = transcripts();
    for path in &files {
        let (name, text) = (path.file_name().expect("a name").to_string_lossy().into_owned(), text(path));
        assert!(text.starts_with("# Section "), "{name} does not begin with its section");
        assert!(index.contains(&format!("({name})")), "the index lacks {name}");
        assert!((5..=110).contains(&text.lines().count()), "{name} has {} lines", text.lines().count());
        assert!(!text.contains("there is none"), "{name} waits for a leader in vain");
    }
    assert_eq!(index.matches(".txt)").count(), files.len(), "the index lists what is not there");
}
