//! Situations, each named after what happens and what comes of it, part by part of the contract.
//!
//! A situation states the whole outcome: for one worker every effect and its state, for several what they agree on.

mod announcements;
mod asking;
mod bounds;
mod campaigns;
mod deadlines;
mod electing;
mod executing;
mod floods;
mod following;
mod hand_outs;
mod linking;
mod quorum;
mod remembering;
mod replication;
mod retention;
mod settling;
mod showing;
mod stopping;
mod submissions;
mod working;

use crate::protocol::ids::{Jac, Number, Position, Term};
use crate::protocol::ledger::{Ended, Ledger, Outcome, Past, Record, Stamped, Turn};
use crate::protocol::message::{Batch, Code, Down, ElectAnswer, Refusal, Response};
use crate::protocol::time::Wall;
use crate::protocol::view::Admission;

use super::testkit::{job, leadership, node, sum_to_100};

/// An answer that says no and nothing more.
fn unavailable() -> Refusal {
    Refusal::new(Code::Unavailable, "not now")
}

/// The answer of a branch that takes no part.
fn nothing_found() -> Response {
    Response::Elect(ElectAnswer::default())
}

/// The records of a job that `term`-`leader` admits first of all, cut into four, and their last number.
fn admitted_by(term: u64, leader: &str, id: &str) -> (Vec<Stamped>, Number) {
    let mut ledger = Ledger::restore(node(leader), Vec::new(), Position::default(), Past::default());
    ledger.enter(leadership(term, leader, 0));
    let admission = Admission { term: Term(term), leader: node(leader), place: 1, jac: Jac(1), slices: 4 };
    ledger.admit(&job(id), sum_to_100(), admission, None, None, Wall(1));
    (ledger.changed_since(Number(0)), ledger.number())
}

/// The job among these records was cancelled, as `number`.
fn end(records: &mut [Stamped], number: Number) {
    for stamped in records {
        if let Record::Job(job) = &mut stamped.record {
            stamped.stamp.number = number;
            let (outcome, at, turn) = (Outcome::Cancelled, Wall(2), Turn(2));
            job.ended = Some(Ended { outcome, at, turn, completed: 0, total: 4 });
        }
    }
}

/// Changes that `term`-`leader` sends to a follower that has joined.
fn batch(term: u64, leader: &str, records: Vec<Stamped>, number: u64, held: u64) -> Down {
    let leadership = leadership(term, leader, 0);
    let (number, held, remembers) = (Number(number), Number(held), Jac(0));
    Down::Batch(Batch { leadership, records, number, past: None, held, remembers })
}

/// The ids of a replica's jobs, in order.
fn jobs_of(ledger: &Ledger) -> Vec<String> {
    ledger.after(None).map(|key| key.id.to_string()).collect()
}
