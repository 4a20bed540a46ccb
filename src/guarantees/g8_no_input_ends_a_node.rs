//! G8: no input, however malformed, and no load ends a node or makes it forget: it answers with an error.

use super::Verdict;
use super::history::{End, Seen};

pub(super) fn see(seen: &Seen, verdict: &mut Verdict) {
    match seen {
        Seen::Ended { process, how: End::Broke } => verdict.breach("G8", format!("{process} broke")),
        Seen::Abused { process, what, refused: false } => {
            verdict.breach("G8", format!("{process} did not refuse {what}"));
        }
        Seen::Ended { .. }
        | Seen::Abused { .. }
        | Seen::Started { .. }
        | Seen::Hurt(_)
        | Seen::Submitted { .. }
        | Seen::Outcome { .. }
        | Seen::CancelAsked(_)
        | Seen::JobEnded { .. }
        | Seen::Shown { .. }
        | Seen::Relayed { .. }
        | Seen::Told { .. }
        | Seen::Left { .. }
        | Seen::Admitted { .. }
        | Seen::JacTold { .. }
        | Seen::Follows { .. }
        | Seen::Led { .. }
        | Seen::Gone(_)
        | Seen::Quiet
        | Seen::Final(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::stories::*;
    use super::*;

    #[test]
    fn a_node_that_breaks_or_swallows_garbage_is_broken() {
        let ended = |how| broken(&[Seen::Ended { process: process("a"), how }]);
        assert_eq!(ended(End::Killed), Vec::<&str>::new());
        assert_eq!(ended(End::Broke), ["G8"]);
        let abused = |refused| broken(&[Seen::Abused { process: process("a"), what: "an empty list", refused }]);
        assert_eq!(abused(true), Vec::<&str>::new());
        assert_eq!(abused(false), ["G8"]);
    }
}
