//! The ledger's records, in the one form in which they are stored and sent.

use std::collections::BTreeSet;
use std::time::Duration;

use super::fields::{bounded, cropped, list, maybe, micros, missing, need, node, number, sentence, trace, value};
use super::jobs::kind;
use super::{Malformed, v1};
use crate::protocol::ids::{JobKey, Leadership, Number};
use crate::protocol::ledger::{Attempt, Completion, Ended, Floors, Job, Outcome, Past, Record, Stamped, Task, Turn};
use crate::protocol::limits;
use crate::protocol::time::Wall;
use crate::protocol::view::Admission;

/// Admissions that one job may gather: one per side of a split, over all splits.
const ADMISSIONS: usize = 1_024;

impl From<&Stamped> for v1::Record {
    fn from(it: &Stamped) -> Self {
        let record = match &it.record {
            Record::Job(job) => v1::record::Record::Job(job.into()),
            Record::Payload(key, payload) => {
                v1::record::Record::Payload(v1::PayloadRecord { key: Some(key.into()), payload: Some(payload.into()) })
            }
            Record::Task(key, task) => v1::record::Record::Task(v1::TaskRecord {
                key: Some(key.into()),
                completion: task.completion.as_ref().map(Into::into),
                attempt: task.attempt.as_ref().map(Into::into),
                charged: task.charged,
            }),
            Record::Floors(floors) => v1::record::Record::Floors(v1::FloorsRecord {
                breakdown: floors.breakdown.as_ref().map(Into::into),
                line: floors.line.as_ref().map(Into::into),
                gone: floors.gone.0,
            }),
        };
        v1::Record { stamp: Some((&it.stamp).into()), record: Some(record) }
    }
}

impl TryFrom<v1::Record> for Stamped {
    type Error = Malformed;

    fn try_from(it: v1::Record) -> Result<Self, Malformed> {
        let stamp = need(it.stamp, "stamp")?;
        let record = match it.record {
            Some(v1::record::Record::Job(job)) => Record::Job(need(Some(job), "job")?),
            Some(v1::record::Record::Payload(it)) => {
                Record::Payload(need(it.key, "payload.key")?, need(it.payload, "payload.payload")?)
            }
            Some(v1::record::Record::Task(it)) => Record::Task(
                need(it.key, "task.key")?,
                Task {
                    completion: maybe(it.completion, "task.completion")?,
                    attempt: maybe(it.attempt, "task.attempt")?,
                    charged: it.charged,
                },
            ),
            Some(v1::record::Record::Floors(it)) => Record::Floors(Floors {
                breakdown: it.breakdown.map(|floor| floor_at(floor, "floors.breakdown")).transpose()?,
                line: it.line.map(|floor| floor_at(floor, "floors.line")).transpose()?,
                gone: Number(it.gone),
            }),
            None => return Err(missing("record")),
        };
        Ok(Stamped { stamp, record })
    }
}

impl From<&(Turn, JobKey)> for v1::Floor {
    fn from((turn, key): &(Turn, JobKey)) -> Self {
        v1::Floor { turn: turn.0, key: Some(key.into()) }
    }
}

fn floor_at(it: v1::Floor, name: &str) -> Result<(Turn, JobKey), Malformed> {
    let key = need(it.key, "key").map_err(|error| error.inside(name))?;
    Ok((turn(it.turn, name)?, key))
}

fn turn(given: u64, name: &str) -> Result<Turn, Malformed> {
    number(given, name, 0, Turn::LAST.0).map(Turn)
}

impl From<&Job> for v1::JobRecord {
    fn from(it: &Job) -> Self {
        v1::JobRecord {
            key: Some((&it.key).into()),
            kind: v1::Kind::from(it.kind).into(),
            submitted_at_ms: it.submitted_at.0,
            admissions: it.admissions.iter().map(Into::into).collect(),
            outcome: it.ended.as_ref().map(|ended| v1::Outcome {
                at_ms: ended.at.0,
                outcome: Some((&ended.outcome).into()),
                turn: ended.turn.0,
                completed: ended.completed,
                total: ended.total,
            }),
            deadline_ms: it.deadline.map(|at| at.0),
            trace_parent: it.trace.map(|trace| trace.to_string()),
        }
    }
}

impl TryFrom<v1::JobRecord> for Job {
    type Error = Malformed;

    fn try_from(it: v1::JobRecord) -> Result<Self, Malformed> {
        let key: JobKey = need(it.key, "key")?;
        let admissions: Vec<Admission> = list(it.admissions, "admissions", ADMISSIONS)?;
        if admissions.is_empty() {
            return Err(Malformed::new("admissions", "empty", "at least one"));
        }
        Ok(Job {
            key,
            kind: kind(it.kind)?,
            submitted_at: Wall(it.submitted_at_ms),
            admissions: BTreeSet::from_iter(admissions),
            deadline: it.deadline_ms.map(Wall),
            trace: it.trace_parent.map(|text| trace(&text, "trace_parent")).transpose()?,
            ended: maybe(it.outcome, "outcome")?,
        })
    }
}

impl TryFrom<v1::Outcome> for Ended {
    type Error = Malformed;

    fn try_from(it: v1::Outcome) -> Result<Self, Malformed> {
        let outcome = match it.outcome {
            Some(v1::outcome::Outcome::Succeeded(text)) => Outcome::Succeeded(value(&text, "succeeded")?),
            Some(v1::outcome::Outcome::Failed(text)) => Outcome::Failed(sentence(text, "failed")?),
            Some(v1::outcome::Outcome::Cancelled(v1::Cancelled {})) => Outcome::Cancelled,
            None => return Err(missing("outcome")),
        };
        let (at, turn) = (Wall(it.at_ms), turn(it.turn, "turn")?);
        Ok(Ended { outcome, at, turn, completed: it.completed, total: it.total })
    }
}

impl From<&Outcome> for v1::outcome::Outcome {
    fn from(it: &Outcome) -> Self {
        match it {
            Outcome::Cancelled => v1::outcome::Outcome::Cancelled(v1::Cancelled {}),
            Outcome::Failed(reason) => v1::outcome::Outcome::Failed(cropped(reason)),
            Outcome::Succeeded(answer) => v1::outcome::Outcome::Succeeded(answer.to_string()),
        }
    }
}

impl From<&Completion> for v1::Completion {
    fn from(it: &Completion) -> Self {
        v1::Completion {
            attempt: Some((&it.attempt).into()),
            worker_id: it.worker.to_string(),
            value: it.value.to_string(),
            took_us: micros(it.took),
        }
    }
}

impl TryFrom<v1::Completion> for Completion {
    type Error = Malformed;

    fn try_from(it: v1::Completion) -> Result<Self, Malformed> {
        Ok(Completion {
            attempt: need(it.attempt, "attempt")?,
            worker: node(&it.worker_id, "worker_id")?,
            value: value(&it.value, "value")?,
            took: Duration::from_micros(it.took_us),
        })
    }
}

impl From<&Attempt> for v1::Attempt {
    fn from(it: &Attempt) -> Self {
        v1::Attempt { name: Some((&it.name).into()), worker_id: it.worker.to_string(), ended: it.ended }
    }
}

impl TryFrom<v1::Attempt> for Attempt {
    type Error = Malformed;

    fn try_from(it: v1::Attempt) -> Result<Self, Malformed> {
        Ok(Attempt { name: need(it.name, "name")?, worker: node(&it.worker_id, "worker_id")?, ended: it.ended })
    }
}

impl From<&Past> for v1::Past {
    fn from(it: &Past) -> Self {
        let followed = |(leadership, left_at): &(Leadership, Number)| v1::Followed {
            leadership: Some(leadership.into()),
            left_at: left_at.0,
        };
        v1::Past { followed: it.parts().map(followed).collect() }
    }
}

impl TryFrom<v1::Past> for Past {
    type Error = Malformed;

    fn try_from(it: v1::Past) -> Result<Self, Malformed> {
        bounded(it.followed.len(), "followed", limits::PAST)?;
        let parts: Result<Vec<(Leadership, Number)>, Malformed> = it
            .followed
            .into_iter()
            .map(|it| Ok((need(it.leadership, "followed.leadership")?, Number(it.left_at))))
            .collect();
        Ok(Past::from_parts(parts?))
    }
}
