//! The key under which a record is stored.
//!
//! Owns its bytes: a job's records lie together, the job first, then its payload, then its tasks in order.

use crate::protocol::ids::JobKey;
use crate::protocol::ledger::{RecordName, Stamped};

const JOB: u8 = 0;
const PAYLOAD: u8 = 1;
const TASK: u8 = 2;

/// The key of a record with this name; no two names share one.
pub(super) fn of_name(name: &RecordName) -> Vec<u8> {
    match name {
        // No id begins with a zero.
        RecordName::Floors => vec![0],
        RecordName::Job(job) => of_job(job, JOB),
        RecordName::Payload(job) => of_job(job, PAYLOAD),
        RecordName::Task(task) => {
            let mut key = of_job(&task.job, TASK);
            key.extend_from_slice(&task.slices.to_be_bytes());
            key.extend_from_slice(&task.slice.to_be_bytes());
            key
        }
    }
}

/// The key of this record.
pub(super) fn of_record(stamped: &Stamped) -> Vec<u8> {
    of_name(&stamped.record.name())
}

fn of_job(job: &JobKey, part: u8) -> Vec<u8> {
    let id = job.id.as_str().as_bytes();
    let mut key = Vec::with_capacity(id.len() + 42);
    key.extend_from_slice(id);
    // No id holds a zero, so that none is the beginning of another one with its digest.
    key.push(0);
    key.extend_from_slice(&job.digest.0);
    key.push(part);
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::ids::{Digest, JobId, TaskKey};

    #[test]
    fn the_records_of_a_job_lie_together_in_order_and_all_keys_differ() {
        let job = |id: &str, digest| JobKey { id: JobId::new(id).expect("a good id"), digest: Digest([digest; 32]) };
        let task = |job: JobKey, slices, slice| RecordName::Task(TaskKey { job, slices, slice });
        let mut in_order = vec![RecordName::Floors];
        for job in [job("a", 0), job("a", 45), job("a-", 0), job("a0", 0), job("b", 0)] {
            in_order.push(RecordName::Job(job.clone()));
            in_order.push(RecordName::Payload(job.clone()));
            in_order.extend([(8, 0), (8, 7), (300, 2), (300, 299)].map(|(of, slice)| task(job.clone(), of, slice)));
        }
        let keys: Vec<Vec<u8>> = in_order.iter().map(of_name).collect();
        assert!(keys.is_sorted_by(|one, next| one < next), "{keys:?}");
    }
}
