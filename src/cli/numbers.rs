//! The numbers of a job, from arguments, a file or standard input, each read with its place.
//!
//! Owns how numbers are read and what is said of a bad one. Never what the numbers are for. Section 11 of the
//! contract.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::exit::{Exit, Failure};

/// Stands for standard input among the arguments, and as a path.
const STANDARD_INPUT: &str = "-";

/// How much of a word that is no number is shown.
const SHOWN: usize = 40;

/// Where numbers come from.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    Arguments(Vec<String>),
    File(PathBuf),
    Input,
}

/// Reads all numbers that the person gave.
///
/// # Errors
/// A [`Failure`] that names the first bad number with its place, the file that can't be read, or the lack of any.
pub(crate) fn read<N: FromStr>(arguments: &[String], file: Option<&Path>, allowed: &str) -> Result<Vec<N>, Failure> {
    let source = source(arguments, file, io::stdin().is_terminal())?;
    let numbers = match &source {
        Source::Arguments(words) => from_arguments(words, allowed),
        Source::File(path) => {
            let opened = File::open(path).map_err(|error| unreadable(&source, &error))?;
            from_reader(BufReader::new(opened), &source, allowed)
        }
        Source::Input => from_reader(io::stdin().lock(), &source, allowed),
    }?;
    if numbers.is_empty() {
        return Err(
            Exit::Refused.because(format!("{source} holds no number; give {allowed}, separated by white space"))
        );
    }
    Ok(numbers)
}

fn source(arguments: &[String], file: Option<&Path>, terminal: bool) -> Result<Source, Failure> {
    match (arguments, file) {
        ([], Some(path)) if path.as_os_str() == STANDARD_INPUT => Ok(Source::Input),
        ([], Some(path)) => Ok(Source::File(path.to_path_buf())),
        ([only], None) if only == STANDARD_INPUT => Ok(Source::Input),
        ([], None) if terminal => {
            let ways = "give them as arguments, with --file PATH, or on standard input";
            Err(Exit::Refused.because(format!("no numbers; {ways}")))
        }
        ([], None) => Ok(Source::Input),
        (words, None) => Ok(Source::Arguments(words.to_vec())),
        (_, Some(_)) => Err(Exit::Refused.because("numbers as arguments and --file; give one of them")),
    }
}

fn from_arguments<N: FromStr>(words: &[String], allowed: &str) -> Result<Vec<N>, Failure> {
    let number = |(index, word): (usize, &String)| {
        word.parse().map_err(|_| bad(format_args!("argument {}", index + 1), word.as_bytes(), allowed))
    };
    words.iter().enumerate().map(number).collect()
}

/// By lines of bytes: what is no text is a bad number like any other, and has its place.
fn from_reader<N: FromStr>(mut reader: impl BufRead, source: &Source, allowed: &str) -> Result<Vec<N>, Failure> {
    let mut numbers = Vec::new();
    let mut line = Vec::new();
    for place in 1_u64.. {
        line.clear();
        if reader.read_until(b'\n', &mut line).map_err(|error| unreadable(source, &error))? == 0 {
            break;
        }
        for word in line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
            let number = std::str::from_utf8(word).ok().and_then(|word| word.parse().ok());
            numbers.push(number.ok_or_else(|| bad(format_args!("{source}, line {place}"), word, allowed))?);
        }
    }
    Ok(numbers)
}

fn bad(place: fmt::Arguments<'_>, word: &[u8], allowed: &str) -> Failure {
    let text = String::from_utf8_lossy(word);
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    Exit::Refused.because(format!("{place}: {shown:?} is not allowed; give {allowed}"))
}

fn unreadable(source: &Source, error: &io::Error) -> Failure {
    let what = match error.kind() {
        io::ErrorKind::NotFound => "there is no such file; check the path".to_owned(),
        io::ErrorKind::IsADirectory => "it is a directory; give a file".to_owned(),
        io::ErrorKind::PermissionDenied => "reading it is not permitted; check its owner and mode".to_owned(),
        _ => format!("{error}; check the path"),
    };
    Exit::Refused.because(format!("cannot read {source}: {what}"))
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Arguments(_) => f.write_str("the command line"),
            Source::File(path) => write!(f, "{}", path.display()),
            Source::Input => f.write_str("standard input"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY: &str = "whole numbers";

    fn file() -> Source {
        Source::File(PathBuf::from("numbers.txt"))
    }

    fn line(failure: Failure) -> String {
        assert_eq!((failure.exit, failure.lines.len()), (Exit::Refused, 1));
        failure.lines[0].clone()
    }

    #[test]
    fn numbers_of_both_signs_are_separated_by_any_white_space() {
        let text = " 1\t-2\r\n\n3 \n-9223372036854775808 9223372036854775807";
        let numbers = from_reader::<i64>(text.as_bytes(), &file(), ANY).expect("all good");
        assert_eq!(numbers, [1, -2, 3, i64::MIN, i64::MAX]);
    }

    #[test]
    fn a_bad_number_in_line_17_is_told_with_file_line_word_and_what_is_allowed() {
        let text = "1 2\n".repeat(16) + "3 twelve 4\n";
        let failure = from_reader::<i64>(text.as_bytes(), &file(), ANY).expect_err("a bad word");
        assert_eq!(line(failure), r#"numbers.txt, line 17: "twelve" is not allowed; give whole numbers"#);
    }

    #[test]
    fn one_beyond_the_type_and_bytes_that_are_no_text_are_bad_numbers() {
        for word in [b"18446744073709551616".as_slice(), b"-1", b"1.5", b"\xff\xfe", b"\0"] {
            assert!(from_reader::<u64>(word, &file(), ANY).is_err(), "{word:?}");
        }
    }

    #[test]
    fn a_long_word_is_cut_and_what_would_move_the_cursor_is_escaped() {
        let failure = from_reader::<u64>(format!("\x1b{}", "9".repeat(99)).as_bytes(), &file(), ANY).expect_err("bad");
        assert_eq!(
            line(failure),
            format!("numbers.txt, line 1: \"\\u{{1b}}{}…\" is not allowed; give {ANY}", "9".repeat(39))
        );
    }

    #[test]
    fn a_bad_argument_is_told_with_its_place() {
        let words = ["7", "-8", "x"].map(str::to_owned);
        let failure = from_arguments::<i64>(&words, ANY).expect_err("a bad word");
        assert_eq!(line(failure), r#"argument 3: "x" is not allowed; give whole numbers"#);
    }

    #[test]
    fn a_dash_or_nothing_is_standard_input_but_nothing_at_a_terminal_is_a_mistake() {
        let dash = ["-".to_owned()];
        assert_eq!(source(&dash, None, true), Ok(Source::Input));
        assert_eq!(source(&[], Some(Path::new("-")), true), Ok(Source::Input));
        assert_eq!(source(&[], None, false), Ok(Source::Input));
        assert_eq!(source(&[], Some(Path::new("a")), false), Ok(Source::File(PathBuf::from("a"))));
        assert!(line(source(&[], None, true).expect_err("nothing")).starts_with("no numbers; give them"));
        assert!(source(&dash, Some(Path::new("a")), false).is_err());
    }

    #[test]
    fn a_missing_file_and_a_folder_are_told_by_name() {
        let missing = read::<i64>(&[], Some(Path::new("no/such/file")), ANY).expect_err("missing");
        assert_eq!(line(missing), "cannot read no/such/file: there is no such file; check the path");
        let folder = read::<i64>(&[], Some(Path::new("src")), ANY).expect_err("a folder");
        assert_eq!(line(folder), "cannot read src: it is a directory; give a file");
    }
}
