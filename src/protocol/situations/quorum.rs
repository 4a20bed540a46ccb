//! A leader with too few live workers (FLOODLINE_MIN_MEMBERS, section 2) admits nothing and ends nothing.

use crate::protocol::ids::StreamId;
use crate::protocol::input::Input;
use crate::protocol::message::{Announce, Purpose, Request};
use crate::protocol::testkit::lone::{ack, join};
use crate::protocol::testkit::{Lone, announce, leader, ms, query, quiet, submission};
use crate::protocol::{Settings, Stored};

const FIRST: StreamId = StreamId(101);
const SECOND: StreamId = StreamId(102);

fn settings() -> Settings {
    Settings { min_members: 3, max_tasks: 1, ..quiet() }
}

/// A leader of three that needs three.
fn of_three() -> Lone {
    Lone::leading_with(settings(), &["n2"], 5, &["n2", "n3"])
}

#[test]
fn a_new_leader_merges_as_many_ledgers_first_however_long_that_takes() {
    let mut n1 = Lone::with(settings(), Stored::default(), &["n2"]);
    let won: Announce = announce(Purpose::Won, "n9", leader(5, "n1", 0), 1);
    n1.called(Request::Announce(won)).skip();
    n1.called(Request::SubmitJob(submission("j"))).skip();
    n1.pass(ms(5_000)).only("note").is("");
    for name in ["n2", "n3"] {
        let stream = n1.opened();
        n1.sent(stream, join(name, 5, "n1")).skip();
    }
    n1.give(Input::TimerFired).only("=").is("= leading 5-n1, admitted 1, held 0, jac 1, at 5-n1#3");
}

#[test]
fn a_leader_that_loses_its_quorum_admits_nothing_until_it_has_it_again() {
    let mut n1 = of_three();
    n1.give(Input::FollowerEnded { stream: SECOND }).skip();
    n1.called(Request::SubmitJob(submission("j")))
        .only("=")
        .is("= leading 5-n1, admitted 0, held 0, jac 0, at 5-n1#0, 1 queued");
    let stream = n1.opened();
    n1.sent(stream, join("n3", 5, "n1")).skip();
    n1.give(Input::TimerFired).only("note job").is("note job-admitted term 5 j");
}

#[test]
fn nothing_is_told_that_fewer_hold() {
    let mut n1 = of_three();
    n1.called(Request::SubmitJob(submission("j"))).skip();
    n1.saved().skip();
    n1.sent(FIRST, ack(9)).only("reply").is("");
    n1.sent(SECOND, ack(9)).only("reply").is("reply 2: held, j Running 0/1");
}

#[test]
fn a_job_that_is_complete_without_a_quorum_ends_when_there_is_one_again() {
    let mut n1 = of_three();
    n1.called(Request::SubmitJob(submission("j"))).skip();
    n1.saved().skip();
    n1.give(Input::FollowerEnded { stream: SECOND }).skip();
    n1.result("n2 RUN j/0", 1_060).only("save").is("save 2 [task j/0 of 1 done by n2] at 5-n1#4, term 5, jac 1");
    let stream = n1.opened();
    n1.sent(stream, join("n3", 5, "n1")).skip();
    n1.sent(stream, ack(0)).only("save").is("save 3 [job j Succeeded] without [payload j] at 5-n1#5, term 5, jac 1");
}

#[test]
fn a_cancel_without_a_quorum_waits_for_one() {
    let mut n1 = of_three();
    n1.called(Request::SubmitJob(submission("j"))).skip();
    n1.saved().skip();
    n1.give(Input::FollowerEnded { stream: SECOND }).skip();
    n1.called(Request::CancelJob(query("j"))).only("save").is("");
    let stream = n1.opened();
    n1.sent(stream, join("n3", 5, "n1")).skip();
    n1.sent(stream, ack(0)).only("save").is("save 2 [job j Cancelled] without [payload j] at 5-n1#4, term 5, jac 1");
}
