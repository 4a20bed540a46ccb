//! Submissions (section 7): at the worker that took them, and at the leader that admits them.

use crate::jobs::Payload;
use crate::protocol::ids::{Digest, Jac, JobKey, Number, Position, ReplyToken, StreamId};
use crate::protocol::input::Input;
use crate::protocol::ledger::{Ledger, Past};
use crate::protocol::members::Members;
use crate::protocol::message::{
    Batch, CallFailure, Code, Down, JobQuery, ListJobs, Purpose, Refusal, Request, Response, SubmitJob, Submitted,
};
use crate::protocol::testkit::lone::{ack, heartbeat};
use crate::protocol::testkit::{Lone, announce, job, leader, leadership, ms, node, query, quiet, submission};
use crate::protocol::time::Wall;
use crate::protocol::view::full_name;
use crate::protocol::{Effects, Settings, Stored, limits};

fn submit(id: &str) -> Request {
    Request::SubmitJob(submission(id))
}

fn passed_on(id: &str) -> Request {
    Request::SubmitJob(SubmitJob { forwarded: true, ..submission(id) })
}

fn other_payload(id: &str) -> SubmitJob {
    let key = JobKey { digest: Digest([2; 32]), ..job(id) };
    SubmitJob { key, payload: Payload::PrimeSum { start: 1, end: 7 }, deadline: None, forwarded: false, trace: None }
}

const NO_ROOM: Response = Response::Submitted(Submitted::NoRoom);

#[test]
fn the_cap_is_exact_when_six_submissions_come_in_one_instant() {
    let mut n1 = Lone::leading(&[], 5, &[]);
    for at in 0..5 {
        n1.called(submit(&format!("j{at}"))).skip();
    }
    n1.called(submit("j5")).is("
            note submission-waits j5
            = leading 5-n1, admitted 5, held 0, jac 5, at 5-n1#11, 1 queued
        ");
    n1.called(passed_on("j6")).only("reply").is("reply 8: no room");
    n1.saved().skip();
    let places: Vec<u32> = n1.worker.told_after(None, 9).iter().map(|view| view.admissions[0].place).collect();
    assert_eq!(places, [1, 2, 3, 4, 5]);
}

#[test]
fn six_submissions_that_waited_for_a_leader_to_become_active_fill_the_cap_and_no_more() {
    let mut n1 = Lone::linked(&["n2"]);
    for at in 0..6 {
        n1.called(submit(&format!("j{at}"))).skip();
    }
    n1.wait(ms(7));
    n1.called(Request::Announce(announce(Purpose::Won, "n2", leader(5, "n1", 0), 2))).only("= ").is("
            = leading 5-n1, not active, admitted 0, held 0, jac 0, at 5-n1#0, 6 queued
        ");
    n1.pass(limits::JOIN_WAIT).only("= ").is("= leading 5-n1, admitted 5, held 0, jac 5, at 5-n1#11, 1 queued");
}

#[test]
fn a_leader_that_lacks_members_waits_for_them_without_spinning() {
    let mut n1 = Lone::linked(&["n2"]);
    n1.worker.settings.min_members = 2;
    n1.called(Request::Announce(announce(Purpose::Won, "n2", leader(5, "n1", 0), 1))).skip();
    assert!(n1.worker.is_leading() && n1.worker.next_deadline() > Some(n1.worker.now.time));
}

#[test]
fn a_jac_is_told_when_its_admission_is_journalled_and_not_before() {
    let mut n1 = Lone::leading(&["n2"], 5, &["n2"]);
    n1.called(submit("j")).skip();
    let shown =
        |n1: &Lone| n1.worker.cluster().nodes.iter().find(|seen| seen.member == n1.worker.me).map(|seen| seen.jac);
    assert_eq!((n1.worker.jac, n1.worker.status().jac, shown(&n1)), (Jac(1), Jac(0), Some(Jac(0))));
    n1.saved().skip();
    assert_eq!((n1.worker.status().jac, shown(&n1)), (Jac(1), Some(Jac(1))));
}

#[test]
fn an_admission_that_is_not_journalled_yet_is_shown_as_a_submission_that_waits() {
    let mut n1 = Lone::leading(&["n2"], 5, &["n2"]);
    let list = || Request::ListJobs(ListJobs { after: None, limit: 9 });
    n1.called(submit("j")).skip();
    n1.called(Request::GetJob(query("j"))).only("reply").is("reply 3: j Queued 0/0");
    n1.called(list()).only("reply").is("reply 4: jobs []");
    n1.saved().skip();
    n1.called(Request::GetJob(query("j"))).only("reply").is("reply 5: j Running 0/8");
    n1.called(list()).only("reply").is("reply 6: jobs [j Running 0/8]");
}

#[test]
fn the_same_submission_again_is_the_same_job_and_gets_its_ok_when_it_is_held() {
    let mut n1 = Lone::leading(&["n2"], 5, &["n2"]);
    n1.called(submit("j")).skip();
    n1.called(submit("j")).is("
            note submission-waits j
            = leading 5-n1, admitted 1, held 0, jac 1, at 5-n1#4
        ");
    n1.saved().only("reply").is("");
    n1.sent(StreamId(101), ack(9)).only("reply").is("
            reply 2: held, j Running 0/8
            reply 3: held, j Running 0/8
        ");
    n1.called(submit("j")).is("
            reply 4: held, j Running 0/8
            = leading 5-n1, admitted 1, held 4, jac 1, at 5-n1#4
        ");
}

#[test]
fn another_payload_under_the_id_already_exists() {
    let mut n1 = Lone::leading(&[], 5, &[]);
    n1.called(submit("j")).skip();
    n1.called(Request::SubmitJob(other_payload("j"))).is("
            reply 3: AlreadyExists
            note submission-waits j
            note submission-answered j
            = leading 5-n1, admitted 1, held 0, jac 1, at 5-n1#3
        ");
}

#[test]
fn a_job_whose_id_is_not_enough_is_named_with_its_digest_in_hexadecimal() {
    assert_eq!(full_name("j", &Digest([0x0a; 32])), format!("j:{}", "0a".repeat(32)));
}

#[test]
fn a_bad_input_is_refused_before_it_waits() {
    let mut n1 = Lone::linked(&[]);
    let bad = SubmitJob { payload: Payload::PrimeSum { start: 9, end: 2 }, ..submission("j") };
    n1.called(Request::SubmitJob(bad)).is("
            reply 1: InvalidArgument
            = seeking, jac 0, at #0
        ");
}

#[test]
fn without_a_leader_a_submission_waits_and_the_queue_has_a_bound() {
    let mut n1 = Lone::with(Settings { queue: 2, ..quiet() }, Stored::default(), &["n2"]);
    n1.called(submit("a")).is("
            note submission-waits a
            = seeking, jac 0, at #0, 1 queued
        ");
    n1.called(submit("b")).skip();
    n1.called(submit("c")).is("
            reply 3: ResourceExhausted, later
            = seeking, jac 0, at #0, 2 queued
        ");
    n1.follow(3, "n3", 5);
    n1.called(submit("c")).is("
            reply 5: ResourceExhausted, later
            = following 3-n3, jac 0, at 3-n3#0, 2 queued
        ");
}

#[test]
fn a_follower_sends_its_oldest_as_far_as_the_leader_has_room() {
    let mut n1 = Lone::following(&["n2"], 3, "n3", 0);
    for id in ["c", "a", "b"] {
        n1.called(submit(id)).only("call").is("");
    }
    n1.frame(Down::Heartbeat(heartbeat(3, "n3", 0, 2))).only("call").is("
            call n3 SUBMIT c passed on within 5000ms
            call n3 SUBMIT a passed on within 5000ms
        ");
}

#[test]
fn a_submission_without_room_waits_for_the_next_heartbeat() {
    let mut n1 = Lone::following(&["n2"], 3, "n3", 1);
    n1.called(submit("a")).skip();
    n1.answer("n3 SUBMIT a", NO_ROOM).is("
            note submission-waits a
            = following 3-n3, jac 0, at 3-n3#0, 1 queued
        ");
    n1.frame(Down::Heartbeat(heartbeat(3, "n3", 0, 1))).only("call").is("call n3 SUBMIT a passed on within 5000ms");
}

#[test]
fn a_submission_that_is_held_is_told_to_its_caller() {
    let mut n1 = Lone::following(&["n2"], 3, "n3", 1);
    n1.called(submit("a")).skip();
    let mut other = Lone::leading(&[], 5, &[]);
    other.called(submit("a")).skip();
    let view = other.worker.ledger.view(&job("a")).expect("it was admitted");
    n1.answer("n3 SUBMIT a", Response::Submitted(Submitted::Held(view))).is("
            reply 2: held, a Running 0/4
            note submission-answered a
            = following 3-n3, jac 0, at 3-n3#0
        ");
}

#[test]
fn a_submission_without_an_answer_is_sent_again_after_a_pause() {
    let mut n1 = Lone::following(&["n2"], 3, "n3", 5);
    n1.called(submit("a")).skip();
    n1.unreachable("n3 SUBMIT a").only("call").is("");
    n1.pass(ms(19)).only("call").is("");
    n1.pass(ms(1)).only("call").is("call n3 SUBMIT a passed on within 5000ms");
}

#[test]
fn a_submission_that_waits_for_room_delays_none_that_pauses() {
    let mut n1 = Lone::following(&["n2"], 3, "n3", 2);
    n1.called(submit("a")).skip();
    n1.unreachable("n3 SUBMIT a").skip();
    n1.frame(Down::Heartbeat(heartbeat(3, "n3", 0, 1))).skip();
    n1.wait(ms(10));
    n1.called(submit("b")).skip();
    n1.unreachable("n3 SUBMIT b").skip();
    n1.frame(Down::Heartbeat(heartbeat(3, "n3", 0, 0))).skip();
    // Its pause is over first, and there is no room. The job of the other one is known here, so that it needs none.
    n1.pass(ms(10)).only("call").is("");
    let (records, number) = super::admitted_by(3, "n3", "b");
    n1.frame(super::batch(3, "n3", records, number.0, 0)).only("call").is("");
    n1.pass(ms(10)).only("call").is("call n3 SUBMIT b passed on within 5000ms");
}

#[test]
fn a_submission_that_the_leader_finds_wrong_is_refused_for_good() {
    let mut n1 = Lone::following(&["n2"], 3, "n3", 5);
    n1.called(submit("a")).skip();
    n1.fail("n3 SUBMIT a", CallFailure::Refused(Refusal::new(Code::AlreadyExists, "taken"))).is("
            reply 2: AlreadyExists
            note submission-answered a
            = following 3-n3, jac 0, at 3-n3#0
        ");
}

#[test]
fn a_submission_survives_the_death_of_the_leader_that_it_was_sent_to() {
    let mut n1 = Lone::following(&["n2"], 3, "n3", 5);
    n1.called(submit("a")).skip();
    n1.give(Input::LeaderEnded { stream: n1.up }).skip();
    n1.unreachable("n3 PING").only("= ").is("= seeking, jac 0, at 3-n3#0, 1 queued");
    n1.called(Request::Announce(announce(Purpose::Flood, "n4", leader(4, "n4", 0), 2))).is("
            reply 3: taken, follows 4-n4, reaches 0
            abandon a call
            call n2 COORDINATOR 4-n4 workers 2 within 200ms
            open 2 to n4
            up 2 JOIN n1 follows 4-n4 at 3-n3#0, jobs 0
            note following term 4
            = following 4-n4, not joined, jac 0, at 3-n3#0, 1 queued
        ");
    n1.joined(4, "n4").only("call").is("");
    n1.frame(Down::Heartbeat(heartbeat(4, "n4", 0, 5))).only("call").is("call n4 SUBMIT a passed on within 5000ms");
}

#[test]
fn what_was_passed_on_is_not_passed_on_again() {
    let mut n1 = Lone::following(&["n2"], 3, "n3", 5);
    n1.called(passed_on("a")).is("
            reply 2: FailedPrecondition
            = following 3-n3, jac 0, at 3-n3#0
        ");
}

#[test]
fn the_caller_of_a_submission_that_was_never_sent_takes_it_along() {
    let mut n1 = Lone::following(&["n2"], 3, "n3", 0);
    n1.called(submit("a")).skip();
    n1.give(Input::CallerGone { token: n1.token() }).is("= following 3-n3, jac 0, at 3-n3#0");
    n1.frame(Down::Heartbeat(heartbeat(3, "n3", 0, 2))).only("call").is("");
}

#[test]
fn a_submission_that_was_sent_stays_when_its_caller_is_gone() {
    let mut n1 = Lone::following(&["n2"], 3, "n3", 5);
    n1.called(submit("a")).skip();
    n1.give(Input::CallerGone { token: n1.token() }).only("= ").is("= following 3-n3, jac 0, at 3-n3#0, 1 queued");
    n1.unreachable("n3 SUBMIT a").only("= ").is("= following 3-n3, jac 0, at 3-n3#0, 1 queued");
    n1.pass(ms(20)).only("call").is("call n3 SUBMIT a passed on within 5000ms");
    n1.answer("n3 SUBMIT a", NO_ROOM).only("= ").is("= following 3-n3, jac 0, at 3-n3#0");
}

#[test]
fn a_leader_that_steps_down_sends_forwarded_ones_back_and_keeps_its_own() {
    let mut n1 = Lone::leading(&["n2"], 5, &["n2"]);
    n1.called(submit("a")).skip();
    n1.called(passed_on("b")).skip();
    n1.wait(ms(600));
    n1.give(Input::TimerFired).only("reply").is("reply 3: Unavailable, later");
    // It may have been admitted, so that a cancel is no withdrawal.
    n1.called(Request::CancelJob(query("a"))).only("reply 2").is("");
    assert_eq!(n1.worker.queue.waiting(), 1);
}

#[test]
fn a_queued_job_is_shown_as_queued_and_cancelled_for_both_callers() {
    let mut n1 = Lone::following(&["n2"], 3, "n3", 0);
    n1.called(submit("a")).skip();
    n1.called(Request::GetJob(query("a"))).only("reply").is("reply 3: a Queued 0/0");
    n1.called(Request::CancelJob(query("a"))).is("
            reply 2: Cancelled
            call n3 CANCEL a passed on within 5000ms
            = following 3-n3, jac 0, at 3-n3#0
        ");
    let unknown = Refusal::new(Code::NotFound, "there is no job a");
    n1.fail("n3 CANCEL a", CallFailure::Refused(unknown)).only("reply").is("reply 4: Cancelled");
}

#[test]
fn a_job_that_waits_for_room_at_the_leader_itself_is_cancelled_for_both_callers() {
    let mut n1 = Lone::leading_with(Settings { max_jobs_per_term: 1, ..quiet() }, &[], 5, &[]);
    n1.called(submit("a")).skip();
    n1.called(submit("b")).skip();
    n1.called(Request::CancelJob(query("b"))).only("reply").is("
            reply 3: Cancelled
            reply 4: Cancelled
        ");
}

#[test]
fn a_cancel_that_the_leader_refuses_for_another_reason_is_told_that_reason() {
    let mut n1 = Lone::following(&["n2"], 3, "n3", 0);
    n1.called(submit("a")).skip();
    n1.called(Request::CancelJob(query("a"))).skip();
    let full = Refusal::new(Code::ResourceExhausted, "too many wait");
    n1.fail("n3 CANCEL a", CallFailure::Refused(full)).only("reply").is("reply 3: ResourceExhausted");
}

#[test]
fn a_queued_job_that_another_worker_had_admitted_is_cancelled_at_the_leader() {
    let mut n1 = Lone::following(&["n2"], 3, "n3", 0);
    n1.called(submit("a")).skip();
    n1.called(Request::CancelJob(query("a"))).skip();
    let (mut records, number) = super::admitted_by(3, "n3", "a");
    super::end(&mut records, number.next());
    let mut leaders = Ledger::restore(node("n3"), records, Position::default(), Past::default());
    leaders.tell(number.next());
    let view = leaders.view(&job("a")).expect("it is there");
    n1.answer("n3 CANCEL a", Response::Job(view)).only("reply").is("reply 3: a Cancelled 0/4");
}

#[test]
fn a_queued_job_that_is_cancelled_while_nobody_leads_is_withdrawn_and_its_canceller_asked_to_try_again() {
    let mut n1 = Lone::linked(&["n2"]);
    n1.called(submit("a")).skip();
    n1.called(Request::CancelJob(query("a"))).only("reply").is("
            reply 1: Cancelled
            reply 2: Unavailable, later
        ");
    assert_eq!(n1.worker.queue.waiting(), 0);
}

#[test]
fn a_submission_that_came_back_for_want_of_room_is_cancelled_here() {
    let mut n1 = Lone::following(&["n2"], 3, "n3", 1);
    n1.called(submit("a")).skip();
    n1.answer("n3 SUBMIT a", NO_ROOM).skip();
    n1.called(Request::CancelJob(query("a"))).is("
            reply 2: Cancelled
            call n3 CANCEL a passed on within 5000ms
            = following 3-n3, jac 0, at 3-n3#0
        ");
}

#[test]
fn a_job_that_this_replica_knows_is_not_sent_in_a_circle_while_the_leader_is_not_active() {
    let mut n1 = Lone::following(&["n2"], 3, "n3", 5);
    let (records, number) = super::admitted_by(3, "n3", "a");
    let leadership = leadership(3, "n3", 0);
    let held = Number(0);
    n1.frame(Down::Batch(Batch { leadership, records, number, past: None, held, remembers: Jac(0) })).skip();
    n1.called(submit("a")).only("call").is("call n3 SUBMIT a passed on within 5000ms");
    n1.answer("n3 SUBMIT a", NO_ROOM).only("call").is("");
    n1.pass(ms(20)).only("call").is("call n3 SUBMIT a passed on within 5000ms");
}

#[test]
fn repeats_of_one_submission_fill_a_bound_however_long_it_takes_to_be_held() {
    let mut n1 = Lone::leading(&["n2"], 5, &["n2"]);
    n1.called(submit("a")).skip();
    for token in 1_000..999 + limits::CALLERS as u64 {
        n1.worker.on_submit(ReplyToken(token), submission("a"), &mut Effects::default());
    }
    n1.called(submit("a")).only("reply").is("reply 3: ResourceExhausted, later");
}

#[test]
fn a_leader_whose_jobs_are_done_and_held_steps_down_and_begins_the_next_election_itself() {
    let settings = Settings { max_jobs_per_term: 1, max_tasks: 1, ..quiet() };
    let mut n1 = Lone::leading_with(settings, &["n2", "n3"], 5, &["n2"]);
    n1.called(submit("a")).skip();
    n1.saved().skip();
    n1.result("n2 RUN a/0", 1_060).only("= ").is("= leading 5-n1, admitted 1, held 0, jac 1, at 5-n1#5");
    n1.sent(StreamId(101), ack(9)).only("= ").is("= leading 5-n1, admitted 1, held 3, jac 1, at 5-n1#5");
    n1.saved().is("
            call n2 ELECT n1-1-1 term 6 budget 200ms replaces 5-n1 within 197500us
            call n3 ELECT n1-1-1 term 6 budget 200ms replaces 5-n1 within 197500us
            down 101 HEARTBEAT 5-n1 held 5, room 0, admitted 1
            note job-ended a
            note leadership-ended term 5
            note election-started term 6
            moved a
            = electing, jac 1, at 5-n1#5
        ");
}

#[test]
fn a_lone_leader_rotates_within_a_moment() {
    let settings = Settings { max_jobs_per_term: 1, max_tasks: 1, ..quiet() };
    let mut n1 = Lone::leading_with(settings, &[], 5, &[]);
    n1.worker.members = Members::new(node("n1"));
    for id in ["a", "b"] {
        n1.called(submit(id)).skip();
    }
    n1.saved().skip();
    n1.computed(1, 1_060).skip();
    n1.saved().only("= ").is("
            = leading 6-n1/jac 1, not active, admitted 0, held 0, jac 1, at 6-n1/jac 1#5, 1 queued
        ");
    n1.pass(ms(1)).only("= ").is("= leading 6-n1/jac 1, admitted 1, held 5, jac 2, at 6-n1/jac 1#8");
}

#[test]
fn a_caller_of_nothing_changes_nothing() {
    let mut n1 = Lone::linked(&["n2"]);
    n1.give(Input::CallerGone { token: ReplyToken(77) }).is("= seeking, jac 0, at #0");
}

#[test]
fn a_query_by_its_whole_name_finds_no_other_payload_that_waits() {
    let mut n1 = Lone::following(&["n2"], 3, "n3", 0);
    n1.called(submit("a")).skip();
    let other = JobQuery { digest: Some(Digest([2; 32])), ..query("a") };
    n1.called(Request::GetJob(other.clone())).only("reply").is("");
    n1.called(Request::CancelJob(other)).only("reply").is("");
    let own = JobQuery { digest: Some(Digest([1; 32])), ..query("a") };
    n1.called(Request::GetJob(own.clone())).only("reply").is("reply 5: a Queued 0/0");
    n1.called(Request::CancelJob(own)).only("reply").is("reply 2: Cancelled");
}

#[test]
fn a_submission_that_the_leader_calls_late_is_told_so_if_it_has_a_deadline_and_tried_again_if_not() {
    // Its own clock may be behind the leader's by hours.
    let late = "reply 2: DeadlineExceeded";
    for (deadline, reply) in [(Some(Wall(1_100)), late), (Some(Wall(9_999_999)), late), (None, "")] {
        let mut n1 = Lone::following(&["n2"], 3, "n3", 1);
        n1.called(Request::SubmitJob(SubmitJob { deadline, ..submission("a") })).skip();
        n1.wait(ms(200));
        let late = CallFailure::Refused(Refusal::new(Code::DeadlineExceeded, "too late"));
        n1.fail("n3 SUBMIT a", late).only("reply").is(reply);
        assert_eq!(n1.worker.queue.waiting(), usize::from(deadline.is_none()));
    }
}

#[test]
fn a_follower_that_has_not_joined_neither_sends_on_nor_answers_from_its_replica() {
    let mut n1 = Lone::linked(&["n2"]);
    n1.called(Request::Announce(announce(Purpose::Flood, "n3", leader(3, "n3", 0), 3))).skip();
    n1.called(submit("a")).is("
            note submission-waits a
            = following 3-n3, not joined, jac 0, at #0, 1 queued
        ");
    n1.joined(3, "n3").skip();
    let (records, number) = super::admitted_by(3, "n3", "b");
    n1.frame(super::batch(3, "n3", records, number.0, number.0)).skip();
    n1.frame(Down::Rejoin(leader(4, "n3", 0))).skip();
    n1.called(submit("b")).is("
            note submission-waits b
            = following 4-n3, not joined, jac 0, at 3-n3#2, 2 queued
        ");
    n1.joined(4, "n3").skip();
    n1.frame(Down::Heartbeat(heartbeat(4, "n3", 0, 1))).only("call").is("call n3 SUBMIT a passed on within 5000ms");
}
