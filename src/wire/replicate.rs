//! The frames of Replicate, whole. Cutting and joining large ones is `frames`' part.

use super::fields::{links, list, maybe, missing, need, texts};
use super::{Malformed, v1};
use crate::protocol::ids::{Incarnation, Jac, JobKey, Number};
use crate::protocol::limits;
use crate::protocol::message::{Batch, Down, Heartbeat, Up};

use v1::{follower_frame as follower, leader_frame as leader};

impl From<&Up> for v1::FollowerFrame {
    fn from(it: &Up) -> Self {
        let frame = match it {
            Up::Join { status, position, jobs } => follower::Frame::Join(v1::Join {
                status: Some(status.into()),
                position: Some(position.into()),
                jobs: *jobs,
            }),
            Up::Hashes(jobs) => {
                let hash = |(key, hash): &(JobKey, u64)| v1::JobHash { key: Some(key.into()), hash: *hash };
                follower::Frame::Hashes(v1::Hashes { jobs: jobs.iter().map(hash).collect() })
            }
            Up::Upload(records) => {
                follower::Frame::Upload(v1::Upload { records: records.iter().map(Into::into).collect() })
            }
            Up::Ack { number, jac, running, links } => follower::Frame::Ack(v1::Ack {
                number: number.map(|number| number.0),
                jac: jac.0,
                running: *running,
                links: texts(links),
            }),
        };
        v1::FollowerFrame { frame: Some(frame) }
    }
}

/// Lists of jobs and records are bounded by the size of a frame alone.
impl TryFrom<v1::FollowerFrame> for Up {
    type Error = Malformed;

    fn try_from(it: v1::FollowerFrame) -> Result<Self, Malformed> {
        match it.frame {
            Some(follower::Frame::Join(it)) => Ok(Up::Join {
                status: need(it.status, "join.status")?,
                position: need(it.position, "join.position")?,
                jobs: it.jobs,
            }),
            Some(follower::Frame::Hashes(it)) => {
                let hash = |it: v1::JobHash| Ok((need(it.key, "hashes.jobs.key")?, it.hash));
                Ok(Up::Hashes(it.jobs.into_iter().map(hash).collect::<Result<_, Malformed>>()?))
            }
            Some(follower::Frame::Upload(it)) => Ok(Up::Upload(list(it.records, "upload.records", usize::MAX)?)),
            Some(follower::Frame::Ack(it)) => Ok(Up::Ack {
                number: it.number.map(Number),
                jac: Jac(it.jac),
                running: it.running,
                links: links(&it.links)?,
            }),
            Some(follower::Frame::Part(_)) => Err(Malformed::new("frame", "a part", "a whole frame")),
            None => Err(missing("frame")),
        }
    }
}

impl From<&Down> for v1::LeaderFrame {
    fn from(it: &Down) -> Self {
        let frame = match it {
            Down::Superseded(by) => leader::Frame::Superseded(by.0),
            Down::NotLeader(following) => {
                leader::Frame::NotLeader(v1::NotLeader { following: following.as_ref().map(Into::into) })
            }
            Down::Rejoin(to) => leader::Frame::Rejoin(to.into()),
            Down::WantRecords(after) => leader::Frame::WantRecords(after.0),
            Down::WantHashes => leader::Frame::WantHashes(v1::WantHashes {}),
            Down::WantJobs(jobs) => {
                leader::Frame::WantJobs(v1::WantJobs { jobs: jobs.iter().map(Into::into).collect() })
            }
            Down::Batch(batch) => leader::Frame::Batch(batch.into()),
            Down::Heartbeat(beat) => leader::Frame::Heartbeat(beat.into()),
            Down::Roster(workers) => {
                leader::Frame::Roster(v1::Roster { workers: workers.iter().map(Into::into).collect() })
            }
        };
        v1::LeaderFrame { frame: Some(frame) }
    }
}

/// Lists of jobs and records are bounded by the size of a frame alone.
impl TryFrom<v1::LeaderFrame> for Down {
    type Error = Malformed;

    fn try_from(it: v1::LeaderFrame) -> Result<Self, Malformed> {
        match it.frame {
            Some(leader::Frame::Superseded(by)) => Ok(Down::Superseded(Incarnation(by))),
            Some(leader::Frame::NotLeader(it)) => Ok(Down::NotLeader(maybe(it.following, "not_leader.following")?)),
            Some(leader::Frame::Rejoin(it)) => Ok(Down::Rejoin(need(Some(it), "rejoin")?)),
            Some(leader::Frame::WantRecords(after)) => Ok(Down::WantRecords(Number(after))),
            Some(leader::Frame::WantHashes(v1::WantHashes {})) => Ok(Down::WantHashes),
            Some(leader::Frame::WantJobs(it)) => Ok(Down::WantJobs(list(it.jobs, "want_jobs.jobs", usize::MAX)?)),
            Some(leader::Frame::Batch(it)) => Ok(Down::Batch(need(Some(it), "batch")?)),
            Some(leader::Frame::Heartbeat(it)) => Ok(Down::Heartbeat(need(Some(it), "heartbeat")?)),
            Some(leader::Frame::Roster(it)) => Ok(Down::Roster(list(it.workers, "roster.workers", limits::MEMBERS)?)),
            Some(leader::Frame::Part(_)) => Err(Malformed::new("frame", "a part", "a whole frame")),
            None => Err(missing("frame")),
        }
    }
}

impl From<&Batch> for v1::Batch {
    fn from(it: &Batch) -> Self {
        v1::Batch {
            leadership: Some((&it.leadership).into()),
            records: it.records.iter().map(Into::into).collect(),
            number: it.number.0,
            past: it.past.as_ref().map(Into::into),
            held: it.held.0,
            remembers_jac: it.remembers.0,
        }
    }
}

impl TryFrom<v1::Batch> for Batch {
    type Error = Malformed;

    fn try_from(it: v1::Batch) -> Result<Self, Malformed> {
        Ok(Batch {
            leadership: need(it.leadership, "leadership")?,
            records: list(it.records, "records", usize::MAX)?,
            number: Number(it.number),
            past: maybe(it.past, "past")?,
            held: Number(it.held),
            remembers: Jac(it.remembers_jac),
        })
    }
}

impl From<&Heartbeat> for v1::LeaderHeartbeat {
    fn from(it: &Heartbeat) -> Self {
        v1::LeaderHeartbeat {
            leadership: Some((&it.leadership).into()),
            held: it.held.0,
            room: it.room,
            admitted: it.admitted,
        }
    }
}

impl TryFrom<v1::LeaderHeartbeat> for Heartbeat {
    type Error = Malformed;

    fn try_from(it: v1::LeaderHeartbeat) -> Result<Self, Malformed> {
        Ok(Heartbeat {
            leadership: need(it.leadership, "leadership")?,
            held: Number(it.held),
            room: it.room,
            admitted: it.admitted,
        })
    }
}
