//! A leader and its followers' streams (sections 1 and 8): joining by position, what is sent when, what is held.

use std::time::Duration;

use crate::protocol::ids::{Incarnation, Jac, Member, Number, Position, StreamId, Term};
use crate::protocol::input::Input;
use crate::protocol::ledger::{Floors, Ledger, Past, Record, Stamped};
use crate::protocol::limits::BATCHES_IN_FLIGHT;
use crate::protocol::members::HEARD_FOR;
use crate::protocol::message::{Down, Purpose, Request, Status, Up};
use crate::protocol::testkit::lone::{ack, join, join_at};
use crate::protocol::testkit::{
    Lone, announce, job, leader, leadership, member, ms, node, quiet, status, submission, sum_to_100, task,
};
use crate::protocol::time::Wall;
use crate::protocol::view::Admission;
use crate::protocol::{Effects, Settings, Stored};

const FIRST: StreamId = StreamId(101);
const SECOND: StreamId = StreamId(102);

fn submit(n1: &mut Lone, id: &str) {
    n1.called(Request::SubmitJob(submission(id))).skip();
}

/// The records of a ledger in which `leader` admitted these jobs in `term`, and where it stands then.
pub(super) fn led(term: u64, leader: &str, ids: &[&str]) -> (Vec<Stamped>, Position) {
    let owner = node(leader);
    let mut ledger = Ledger::restore(owner.clone(), Vec::new(), Position::default(), Past::default());
    ledger.enter(leadership(term, leader, 0));
    for (at, id) in ids.iter().enumerate() {
        let place = u32::try_from(at + 1).expect("a few");
        let term = Term(term);
        let jac = Jac(u64::from(place));
        let admission = Admission { term, leader: owner.clone(), place, jac, slices: 4 };
        ledger.admit(&job(id), sum_to_100(), admission, None, None, Wall(1));
    }
    (ledger.changed_since(Number(0)), ledger.position().clone())
}

/// A leader in term 5 that has followed n8 in term 4 up to #2, with the job `old`.
fn with_a_past() -> Lone {
    let (records, position) = led(4, "n8", &["old"]);
    let stored = Stored { records, position, term: Term(4), ..Stored::default() };
    let mut n1 = Lone::with(Settings { max_tasks: 1, ..quiet() }, stored, &["n2"]);
    let won = announce(Purpose::Won, "n2", leader(5, "n1", 0), 1);
    n1.called(Request::Announce(won)).skip();
    n1
}

#[test]
fn an_empty_follower_gets_all_in_one_batch() {
    let mut n1 = with_a_past();
    n1.saved().skip();
    let stream = n1.opened();
    n1.sent(stream, join("n2", 5, "n1")).is("
            down 101 BATCH joins 5-n1#3 [job old, payload old, task old/0 of 4 attempt 1 at n1] held 3
            note follower-joined
            = leading 5-n1, admitted 0, held 3, jac 0, at 5-n1#3
        ");
}

#[test]
fn a_follower_that_left_a_past_leadership_where_the_leader_did_gets_what_changed_since() {
    let mut n1 = with_a_past();
    let stream = n1.opened();
    let there = Position { leadership: Some(leadership(4, "n8", 0)), number: Number(2) };
    n1.sent(stream, join_at("n2", 5, "n1", there)).is("
            down 101 BATCH joins 5-n1#3 [task old/0 of 4 attempt 1 at n1] held 2
            note follower-joined
            = leading 5-n1, admitted 0, held 2, jac 0, at 5-n1#3
        ");
}

#[test]
fn a_follower_that_went_further_in_a_past_leadership_uploads_first_and_both_end_equal() {
    let mut n1 = with_a_past();
    let stream = n1.opened();
    let (records, position) = led(4, "n8", &["old", "late"]);
    n1.sent(stream, join_at("n2", 5, "n1", position)).is("
            down 101 WANT RECORDS above 2
            = leading 5-n1, admitted 0, held 2, jac 0, at 5-n1#3
        ");
    let late = records.into_iter().filter(|stamped| stamped.stamp.number > Number(2)).collect();
    n1.sent(stream, Up::Upload(late)).is("
            save 2 [job late, payload late] at 5-n1#5, term 5, jac 0
            down 101 BATCH joins 5-n1#5 [task old/0 of 4 attempt 1 at n1, job late, payload late] held 2
            note job-taken-up late
            note follower-joined
            moved late
            = leading 5-n1, admitted 0, held 2, jac 0, at 5-n1#5
        ");
}

#[test]
fn a_follower_whose_upload_says_that_jobs_are_gone_compares_jobs_with_the_leader() {
    let mut n1 = with_a_past();
    let stream = n1.opened();
    let (records, position) = led(4, "n8", &["old", "late"]);
    n1.sent(stream, join_at("n2", 5, "n1", position)).skip();
    // What it dropped after #2 the leader may have at work still.
    let floors = Record::Floors(Floors { gone: Number(3), ..Floors::default() });
    let stamp = records.last().expect("a few").stamp.clone();
    n1.sent(stream, Up::Upload(vec![Stamped { stamp, record: floors }])).only("down").is("down 101 WANT HASHES");
}

#[test]
fn a_follower_with_a_foreign_past_exchanges_hashes_and_then_the_jobs_that_differ() {
    let mut n1 = with_a_past();
    let stream = n1.opened();
    let (records, position) = led(3, "n7", &["theirs"]);
    n1.sent(stream, join_at("n2", 5, "n1", position)).is("
            down 101 WANT HASHES
            = leading 5-n1, admitted 0, held 2, jac 0, at 5-n1#3
        ");
    n1.sent(stream, Up::Hashes(vec![(job("theirs"), 7)])).is("
            down 101 WANT JOBS theirs
            = leading 5-n1, admitted 0, held 2, jac 0, at 5-n1#3
        ");
    n1.sent(stream, Up::Upload(records)).is("
            save 2 [job theirs, payload theirs] at 5-n1#5, term 5, jac 0
            down 101 BATCH joins 5-n1#5 [job theirs, payload theirs, job old, payload old, task old/0 of 4 attempt 1 at n1] held 2
            note job-taken-up theirs
            note follower-joined
            moved theirs
            = leading 5-n1, admitted 0, held 2, jac 0, at 5-n1#5
        ");
}

#[test]
fn a_follower_with_a_foreign_past_and_equal_jobs_uploads_its_floors_at_most() {
    let mut n1 = with_a_past();
    let hashes = n1.worker.ledger.hashes();
    let stream = n1.opened();
    let (_, position) = led(3, "n7", &["old"]);
    n1.sent(stream, join_at("n2", 5, "n1", position)).skip();
    n1.sent(stream, Up::Hashes(hashes)).only("down").is("down 101 WANT JOBS");
    n1.sent(stream, Up::Upload(Vec::new())).is("
            down 101 BATCH joins 5-n1#3 [] held 2
            note follower-joined
            = leading 5-n1, admitted 0, held 2, jac 0, at 5-n1#3
        ");
}

#[test]
fn what_changes_while_jobs_are_compared_is_not_missed() {
    let mut n1 = with_a_past();
    let hashes = n1.worker.ledger.hashes();
    let stream = n1.opened();
    let (records, position) = led(3, "n7", &["theirs"]);
    n1.sent(stream, join_at("n2", 5, "n1", position)).skip();
    n1.sent(stream, Up::Hashes([hashes, vec![(job("theirs"), 7)]].concat())).skip();
    submit(&mut n1, "new");
    n1.saved().skip();
    n1.computed(1, 1).skip();
    n1.sent(stream, Up::Upload(records)).only("down").is("
            down 101 BATCH joins 5-n1#9 [job theirs, payload theirs, job new, payload new, task old/0 of 4 done by n1, task old/1 of 4 attempt 1 at n1] held 2
        ");
}

#[test]
fn an_upload_that_nobody_asked_for_is_ignored() {
    let mut n1 = Lone::leading(&["n2"], 5, &["n2"]);
    let (records, _) = led(3, "n7", &["theirs"]);
    n1.sent(FIRST, Up::Upload(records)).is("= leading 5-n1, admitted 0, held 0, jac 0, at 5-n1#0");
    n1.sent(FIRST, Up::Hashes(Vec::new())).is("= leading 5-n1, admitted 0, held 0, jac 0, at 5-n1#0");
}

#[test]
fn an_admission_is_sent_once_it_is_saved_and_its_tasks_start_before() {
    let mut n1 = Lone::leading(&["n2"], 5, &["n2"]);
    n1.called(Request::SubmitJob(submission("j"))).is("
            save 1 [job j, payload j, task j/0 of 8 attempt 1 at n2, task j/1 of 8 attempt 1 at n1] at 5-n1#4, term 5, jac 1
            call n2 RUN j/0 of 8 attempt 1 in 5-n1 within 604800000ms
            compute 1: PrimeSum { start: 14, end: 26 }
            note submission-waits j
            note job-admitted term 5 j
            note task-handed-out j/0 attempt 1
            note task-handed-out j/1 attempt 1
            moved j
            = leading 5-n1, admitted 1, held 0, jac 1, at 5-n1#4
        ");
    n1.saved().is("
            down 101 BATCH 5-n1#4 [job j, payload j, task j/0 of 8 attempt 1 at n2, task j/1 of 8 attempt 1 at n1] held 0
            moved j
            = leading 5-n1, admitted 1, held 0, jac 1, at 5-n1#4
        ");
}

#[test]
fn while_an_admission_is_not_saved_nothing_newer_is_sent_either() {
    let mut n1 = Lone::leading(&["n2"], 5, &["n2"]);
    submit(&mut n1, "j");
    n1.computed(1, 1).only("down").is("");
    n1.saved().only("down").is("
            down 101 BATCH 5-n1#6 [job j, payload j, task j/0 of 8 attempt 1 at n2, task j/1 of 8 done by n1, task j/2 of 8 attempt 1 at n1] held 0
        ");
}

#[test]
fn what_is_no_admission_is_sent_at_once() {
    let mut n1 = Lone::leading(&["n2"], 5, &["n2"]);
    submit(&mut n1, "j");
    n1.saved().skip();
    n1.computed(1, 1).is("
            save 2 [task j/1 of 8 done by n1, task j/2 of 8 attempt 1 at n1] at 5-n1#6, term 5, jac 1
            down 101 BATCH 5-n1#6 [task j/1 of 8 done by n1, task j/2 of 8 attempt 1 at n1] held 0
            compute 2: PrimeSum { start: 27, end: 39 }
            note task-ended j/1 attempt 1
            note task-handed-out j/2 attempt 1
            moved j
            = leading 5-n1, admitted 1, held 0, jac 1, at 5-n1#6
        ");
}

#[test]
fn alone_held_is_what_the_leader_has_journalled() {
    let mut n1 = Lone::leading(&[], 5, &[]);
    n1.called(Request::SubmitJob(submission("j"))).only("reply").is("");
    n1.saved().only("reply").is("reply 2: held, j Running 0/4");
}

#[test]
fn of_two_both_hold() {
    let mut n1 = Lone::leading(&["n2"], 5, &["n2"]);
    submit(&mut n1, "j");
    n1.sent(FIRST, ack(9)).only("reply").is("");
    n1.saved().only("reply").is("");
    n1.sent(FIRST, ack(1)).only("reply").is("");
    n1.sent(FIRST, ack(2)).only("reply").is("reply 2: held, j Running 0/8");
}

#[test]
fn of_three_the_leader_and_one_more_hold() {
    let mut n1 = Lone::leading(&["n2"], 5, &["n2", "n3"]);
    submit(&mut n1, "j");
    n1.saved().only("reply").is("");
    n1.sent(SECOND, ack(9)).only("reply").is("reply 2: held, j Running 0/12");
}

#[test]
fn of_five_the_leader_and_two_more_hold() {
    let mut n1 = Lone::leading(&["n2"], 5, &["n2", "n3", "n4", "n5"]);
    submit(&mut n1, "j");
    n1.saved().skip();
    n1.sent(SECOND, ack(9)).only("reply").is("");
    n1.sent(FIRST, ack(9)).only("reply").is("reply 2: held, j Running 0/20");
}

#[test]
fn nothing_is_held_before_the_leader_has_journalled_it() {
    let mut n1 = Lone::leading(&["n2"], 5, &["n2", "n3"]);
    submit(&mut n1, "j");
    n1.sent(FIRST, ack(9)).skip();
    n1.sent(SECOND, ack(9)).only("reply").is("");
    assert_eq!(n1.worker.journalled(), Number(0));
}

#[test]
fn a_follower_that_has_not_joined_yet_is_live_and_holds_nothing() {
    let mut n1 = Lone::leading(&["n2"], 5, &["n2"]);
    submit(&mut n1, "j");
    n1.saved().skip();
    n1.opened();
    n1.opened();
    n1.sent(FIRST, ack(9)).only("reply").is("");
}

#[test]
fn a_follower_that_acknowledges_more_than_it_was_sent_is_not_believed() {
    let mut n1 = Lone::leading(&["n2"], 5, &["n2"]);
    n1.sent(FIRST, ack(1_000)).skip();
    submit(&mut n1, "j");
    n1.saved().only("= ").is("= leading 5-n1, admitted 1, held 0, jac 1, at 5-n1#4");
}

#[test]
fn a_silent_follower_is_lost_after_the_longest_timeout_and_no_longer_counts() {
    let mut n1 = Lone::leading(&["n2"], 5, &["n2"]);
    submit(&mut n1, "j");
    n1.saved().skip();
    n1.pass(ms(999)).only("reply").is("");
    n1.pass(ms(1)).only("reply").is("reply 2: held, j Running 0/8");
    n1.pass(ms(50)).is("
            save 2 [task j/0 of 8 pending after 1] at 5-n1#5, term 5, jac 1
            abandon a call
            close down 101
            note worker-lost
            note task-ended j/0 attempt 1
            moved j
            = leading 5-n1, admitted 1, held 4, jac 1, at 5-n1#5
        ");
}

#[test]
fn a_follower_whose_stream_ends_is_lost_at_once_and_its_tasks_go_to_others() {
    let mut n1 = Lone::leading(&["n2"], 5, &["n2", "n3"]);
    submit(&mut n1, "j");
    n1.saved().skip();
    n1.give(Input::FollowerEnded { stream: FIRST }).is("
            save 2 [task j/0 of 12 pending after 1] at 5-n1#6, term 5, jac 1
            abandon a call
            down 102 BATCH 5-n1#6 [task j/0 of 12 pending after 1] held 0
            note worker-lost
            note task-ended j/0 attempt 1
            moved j
            = leading 5-n1, admitted 1, held 0, jac 1, at 5-n1#6
        ");
}

#[test]
fn a_second_stream_of_one_worker_takes_the_place_of_the_first() {
    let mut n1 = Lone::leading(&["n2"], 5, &["n2"]);
    let stream = n1.opened();
    n1.sent(stream, join("n2", 5, "n1")).is("
            close down 101
            down 102 BATCH joins 5-n1#0 [] held 0
            note worker-lost
            note follower-joined
            = leading 5-n1, admitted 0, held 0, jac 0, at 5-n1#0
        ");
}

#[test]
fn a_worker_that_does_not_lead_turns_followers_away_with_its_leader_s_name() {
    let mut n1 = Lone::following(&["n2"], 5, "n3", 5);
    n1.give(Input::FollowerOpened { stream: FIRST }).is("
            down 101 NOT LEADER but 5-n3
            close down 101
            = following 5-n3, jac 0, at 5-n3#0
        ");
    n1.sent(FIRST, join("n2", 5, "n1")).is("= following 5-n3, jac 0, at 5-n3#0");
}

#[test]
fn a_follower_of_an_older_leadership_of_this_process_is_told_the_present_one_first() {
    let mut n1 = Lone::leading(&["n2"], 5, &["n2"]);
    let stream = n1.opened();
    n1.sent(stream, join("n4", 3, "n1")).is("
            down 102 REJOIN 5-n1
            = leading 5-n1, admitted 0, held 0, jac 0, at 5-n1#0
        ");
    n1.sent(stream, join("n4", 5, "n1")).only("down").is("down 102 BATCH joins 5-n1#0 [] held 0");
}

#[test]
fn a_leader_heartbeats_and_tells_its_room_and_now_and_then_the_roster() {
    let mut n1 = Lone::leading(&["n2"], 5, &["n2"]);
    n1.pass(ms(600)).is("
            down 101 HEARTBEAT 5-n1 held 0, room 5, admitted 0
            abandon a call
            down 101 HEARTBEAT 5-n1 held 0, room 5, admitted 0
            down 101 HEARTBEAT 5-n1 held 0, room 5, admitted 0
            down 101 HEARTBEAT 5-n1 held 0, room 5, admitted 0
            down 101 ROSTER n2, n1
            = leading 5-n1, admitted 0, held 0, jac 0, at 5-n1#0
        ");
}

#[test]
fn batches_on_their_way_to_a_follower_that_reads_nothing_are_bounded() {
    let settings = Settings { max_jobs_per_term: 100_000, ..quiet() };
    let mut n1 = Lone::leading_with(settings, &["n2"], 5, &["n2", "n3"]);
    let mut batches = 0;
    for at in 0..200 {
        submit(&mut n1, &format!("j{at}"));
        batches += n1.saved().only("down 101 BATCH").0.len();
    }
    assert_eq!(batches, BATCHES_IN_FLIGHT);
    let caught_up = n1.sent(FIRST, ack(0)).only("down 101 BATCH").0;
    assert_eq!(caught_up.len(), 1, "what has gathered goes out as one: {caught_up:?}");
}

#[test]
fn followers_fill_their_bound_and_no_more() {
    let mut n1 = Lone::leading(&["n2"], 5, &["n2"]);
    for stream in 1_000..1_000 + 5_000 {
        n1.worker.on_follower_opened(StreamId(stream), &mut Effects::default());
    }
    n1.give(Input::FollowerOpened { stream: StreamId(9_000) }).only("down").is("down 9000 NOT LEADER but 5-n1");
    n1.give(Input::FollowerSent { stream: StreamId(9_000), frame: ack(1) }).only("down").is("");
    n1.pass(ms(1_060)).skip();
    n1.give(Input::FollowerOpened { stream: StreamId(9_001) }).only("down").is("");
}

#[test]
fn a_lost_worker_s_task_counts_no_failure() {
    let mut n1 = Lone::leading(&["n2"], 5, &["n2"]);
    submit(&mut n1, "j");
    n1.give(Input::FollowerEnded { stream: FIRST }).skip();
    let lost = n1.worker.ledger.task(&task("j", 8, 0)).expect("it was handed out");
    assert_eq!((lost.charged, lost.last_attempt()), (0, 1));
}

#[test]
fn a_frame_on_a_stream_that_nobody_knows_changes_nothing() {
    let mut n1 = Lone::leading(&["n2"], 5, &["n2"]);
    n1.give(Input::FollowerSent { stream: StreamId(7), frame: ack(1) }).is("
            = leading 5-n1, admitted 0, held 0, jac 0, at 5-n1#0
        ");
    n1.give(Input::FollowerEnded { stream: StreamId(7) }).is("= leading 5-n1, admitted 0, held 0, jac 0, at 5-n1#0");
    n1.give(Input::LeaderSent { stream: StreamId(7), frame: Down::WantHashes }).is("
            = leading 5-n1, admitted 0, held 0, jac 0, at 5-n1#0
        ");
    n1.give(Input::LeaderEnded { stream: StreamId(7) }).is("= leading 5-n1, admitted 0, held 0, jac 0, at 5-n1#0");
    n1.give(Input::LeaderStirred { stream: StreamId(7) }).is("= leading 5-n1, admitted 0, held 0, jac 0, at 5-n1#0");
}

/// What `name` says as it joins in this incarnation.
fn join_in(incarnation: u64, name: &str) -> Up {
    let member = Member { incarnation: Incarnation(incarnation), ..member(name) };
    let status = Status { member, ..status(name, Some(leader(5, "n1", 0))) };
    Up::Join { status, position: Position::default(), jobs: 0 }
}

#[test]
fn of_two_live_owners_of_a_node_id_the_lower_incarnation_is_told_that_the_other_owns_it() {
    let mut n1 = Lone::leading(&[], 5, &["n2"]);
    let another = n1.opened();
    n1.sent(another, join_in(9, "n3")).skip();
    let newer = n1.opened();
    n1.sent(newer, join_in(7, "n2")).only("down 103").is("down 103 BATCH joins 5-n1#0 [] held 0");
    let older = n1.opened();
    n1.sent(older, join_in(3, "n2")).is("
            down 104 SUPERSEDED by 7
            close down 104
            = leading 5-n1, admitted 0, held 0, jac 0, at 5-n1#0
        ");
}

#[test]
fn a_live_owner_of_a_node_id_need_not_be_a_follower_and_owns_it_for_five_seconds_after_its_last_word() {
    let mut n1 = Lone::leading(&[], 5, &["n2"]);
    let newer = Member { incarnation: Incarnation(7), ..member("x1") };
    n1.called(Request::Ping(Some(Status { member: newer, ..status("x1", None) }))).skip();
    n1.pass(HEARD_FOR - Duration::from_micros(1)).skip();
    let older = n1.opened();
    n1.sent(older, join_in(3, "x1")).only("down 102 SUPERSEDED").is("down 102 SUPERSEDED by 7");
    n1.wait(Duration::from_micros(1));
    let older = n1.opened();
    n1.sent(older, join_in(3, "x1")).only("down 103 SUPERSEDED").is("");
}

#[test]
fn a_leader_whose_node_id_a_higher_incarnation_owns_ends() {
    let mut n1 = Lone::leading(&[], 5, &["n2"]);
    let clone = n1.opened();
    n1.sent(clone, join_in(9, "n1")).only("ended").is("ended Superseded(Incarnation(9))");
}

#[test]
fn an_earlier_start_of_the_leader_itself_is_told_that_it_is_over_and_this_one_ends_for_no_stream_of_its_own() {
    let mut n1 = Lone::leading(&[], 5, &["n2"]);
    let earlier = n1.opened();
    n1.sent(earlier, join_in(0, "n1")).only("down 102 SUPERSEDED").is("down 102 SUPERSEDED by 1");
    let own = n1.opened();
    let outcome = n1.sent(own, join_in(1, "n1")).0;
    assert!(!outcome.iter().any(|line| line.contains("SUPERSEDED") || line.starts_with("ended")), "{outcome:?}");
}
