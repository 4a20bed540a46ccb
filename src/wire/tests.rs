//! Every message comes back as it went, and what is malformed is refused with its field named.

pub(crate) mod samples;

use std::fmt::Debug;

use prost::Message;

use super::{Malformed, NamedCluster, v1};
use crate::jobs::Payload;
use crate::protocol::ids::{Identity, Leadership, Member};
use crate::protocol::ledger::Stamped;
use crate::protocol::limits;
use crate::protocol::message::*;
use crate::protocol::progress::Cursor;
use crate::protocol::view::{Event, JobView};
use samples::Samples;

/// Sends messages of one kind there and back, through their bytes.
fn goes_and_comes<C, P>(make: impl Fn(&mut Samples) -> C)
where
    C: PartialEq + Debug + TryFrom<P, Error = Malformed>,
    P: Message + Default + for<'a> From<&'a C>,
{
    for seed in 0..100 {
        let sent = make(&mut Samples::new(seed));
        let bytes = P::from(&sent).encode_to_vec();
        let parsed = P::decode(bytes.as_slice()).expect("what was encoded");
        let received = C::try_from(parsed).expect("a well-formed message");
        assert_eq!(received, sent, "seed {seed}");
    }
}

#[test]
fn every_message_comes_back_as_it_went() {
    goes_and_comes::<Identity, v1::Identity>(Samples::identity);
    goes_and_comes::<Member, v1::Member>(Samples::member);
    goes_and_comes::<Leadership, v1::Leadership>(Samples::leadership);
    goes_and_comes::<Leader, v1::Leader>(Samples::leader);
    goes_and_comes::<Status, v1::Status>(Samples::status);
    goes_and_comes::<Elect, v1::ElectRequest>(Samples::elect);
    goes_and_comes::<ElectAnswer, v1::ElectResponse>(Samples::elect_answer);
    goes_and_comes::<Announce, v1::AnnounceRequest>(Samples::announce);
    goes_and_comes::<AnnounceAnswer, v1::AnnounceResponse>(Samples::announce_answer);
    goes_and_comes::<Payload, v1::Payload>(Samples::payload);
    goes_and_comes::<SubmitJob, v1::SubmitJobRequest>(Samples::submission);
    goes_and_comes::<Submitted, v1::SubmitJobResponse>(|it| Submitted::Held(it.job().into()));
    goes_and_comes::<Submitted, v1::SubmitJobResponse>(|_| Submitted::NoRoom);
    goes_and_comes::<JobQuery, v1::GetJobRequest>(Samples::query);
    goes_and_comes::<JobQuery, v1::CancelJobRequest>(Samples::query);
    goes_and_comes::<ListJobs, v1::ListJobsRequest>(Samples::listing);
    goes_and_comes::<Cursor, v1::Cursor>(Samples::cursor);
    goes_and_comes::<ExecuteTask, v1::ExecuteTaskRequest>(Samples::execute);
    goes_and_comes::<CancelTask, v1::CancelTaskRequest>(Samples::cancel_task);
    goes_and_comes::<TaskAnswer, v1::ExecuteTaskResponse>(Samples::task_answer);
    goes_and_comes::<JobView, v1::Job>(Samples::job);
    goes_and_comes::<NamedCluster, v1::Cluster>(Samples::named_cluster);
    goes_and_comes::<Event, v1::Event>(Samples::happening);
    goes_and_comes::<Stamped, v1::Record>(Samples::record);
    goes_and_comes::<Up, v1::FollowerFrame>(Samples::up);
    goes_and_comes::<Down, v1::LeaderFrame>(Samples::down);
    goes_and_comes::<MembershipEvent, v1::WatchMembershipResponse>(Samples::membership);
    goes_and_comes::<DirectoryAnswer, v1::LeaseAnswer>(Samples::lease);
}

/// What is said of a message that was well-formed until `spoil` had it.
fn refused<C, P>(make: impl Fn(&mut Samples) -> C, spoil: impl FnOnce(&mut P)) -> String
where
    C: Debug + TryFrom<P, Error = Malformed>,
    P: for<'a> From<&'a C>,
{
    let mut message = P::from(&make(&mut Samples::new(7)));
    spoil(&mut message);
    C::try_from(message).expect_err("a refusal").to_string()
}

#[test]
fn a_malformed_field_is_named_with_its_value_and_what_is_allowed() {
    let bad_id = refused(Samples::member, |it: &mut v1::Member| it.node_id = "a b".to_owned());
    assert_eq!(bad_id, "node_id is \"a b\"; allowed is 1 to 253 letters, digits, '-', '_' or '.'");
    let zero = refused(Samples::member, |it: &mut v1::Member| it.concurrency = 0);
    assert_eq!(zero, "concurrency is 0; allowed is 1 to 65536");
    let unset = refused(Samples::elect, |it: &mut v1::ElectRequest| it.from = None);
    assert_eq!(unset, "from is not set; allowed is a value");
    let purpose = refused(Samples::announce, |it: &mut v1::AnnounceRequest| it.purpose = 9);
    assert_eq!(purpose, "purpose is 9; allowed is 1 to 4");
    let unspecified = refused(Samples::job, |it: &mut v1::Job| it.state = 0);
    assert_eq!(unspecified, "state is 0; allowed is 1 to 5");
    let budget = refused(Samples::elect, |it: &mut v1::ElectRequest| it.budget_us = 10_000_001);
    assert_eq!(budget, "budget_us is 10000001; allowed is 0 to 10000000");
    let limit = refused(Samples::listing, |it: &mut v1::ListJobsRequest| it.limit = 101);
    assert_eq!(limit, "limit is 101; allowed is 0 to 100");
    let empty = refused(Samples::submission, |it: &mut v1::SubmitJobRequest| it.payload = Some(v1::Payload::default()));
    assert_eq!(empty, "payload.kind is not set; allowed is max, primecount or primesum");
    let slice = refused(Samples::execute, |it: &mut v1::ExecuteTaskRequest| {
        it.task = Some(v1::TaskKey { slices: 4, slice: 4, ..it.task.take().unwrap_or_default() });
    });
    assert_eq!(slice, "task.slice is 4; allowed is 0 to 3");
    let frame = refused(Samples::up, |it: &mut v1::FollowerFrame| it.frame = None);
    assert_eq!(frame, "frame is not set; allowed is a value");
}

#[test]
fn a_list_above_its_bound_is_refused() {
    let edge = v1::Edge { from_id: "a".to_owned(), to_id: "b".to_owned() };
    let around = refused(Samples::elect, |it: &mut v1::ElectRequest| it.around = vec![edge; limits::EDGES + 1]);
    assert_eq!(around, "around is a list of 257; allowed is at most 256");
    let links = refused(Samples::status, |it: &mut v1::Status| it.links = vec!["a".to_owned(); limits::LINKS + 1]);
    assert_eq!(links, "links is a list of 33; allowed is at most 32");
    let edge = v1::Edge { from_id: "a".to_owned(), to_id: String::new() };
    let inner = refused(Samples::elect, |it: &mut v1::ElectRequest| it.around = vec![edge]);
    assert!(inner.starts_with("around[0].to_id is \"\"; allowed is "), "{inner}");
}

#[test]
fn a_leader_that_is_not_of_its_leadership_is_refused() {
    let other = Samples::new(8).member();
    let error = refused(Samples::leader, |it: &mut v1::Leader| it.member = Some((&other).into()));
    assert!(error.starts_with(&format!("member is {}; allowed is the leader itself, ", other.identity())), "{error}");
}

#[test]
fn a_digest_that_a_caller_could_forge_is_not_even_sent() {
    let job = Samples::new(3).submission();
    let forged = SubmitJob {
        key: crate::protocol::ids::JobKey { digest: Default::default(), ..job.key.clone() },
        ..job.clone()
    };
    let received = SubmitJob::try_from(v1::SubmitJobRequest::from(&forged)).expect("a well-formed message");
    assert_eq!(received, job);
}

#[test]
fn no_bytes_make_a_conversion_panic() {
    for seed in 0..300 {
        let mut samples = Samples::new(seed);
        let mut bytes = v1::FollowerFrame::from(&samples.up()).encode_to_vec();
        for _ in 0..4 {
            let (at, byte) = (samples.number() as usize, samples.number() as u8);
            if let Some(len) = std::num::NonZeroUsize::new(bytes.len()) {
                bytes[at % len] = byte;
            }
        }
        // Either outcome is right, as long as there is one.
        if let Ok(frame) = v1::FollowerFrame::decode(bytes.as_slice()) {
            drop(Up::try_from(frame));
        }
        if let Ok(frame) = v1::LeaderFrame::decode(bytes.as_slice()) {
            drop(Down::try_from(frame));
        }
        if let Ok(request) = v1::ElectRequest::decode(bytes.as_slice()) {
            drop(Elect::try_from(request));
        }
    }
}
