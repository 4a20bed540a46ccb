//! What a job's messages look like to a script, and that they only go forward.

use serde_json::Value;

/// The keys of a job, as the contract lists them (section 11); sorted, as they are read.
const KEYS: [&str; 16] = [
    "admissions",
    "answer",
    "completed",
    "error",
    "finished_at",
    "job_id",
    "kind",
    "leader",
    "number",
    "state",
    "submitted_at",
    "tasks",
    "term",
    "total",
    "trace_id",
    "workers",
];

/// Looks at all messages of a job that succeeded, and gives back the last one.
pub(crate) fn followed(messages: &[Value]) -> &Value {
    messages.iter().for_each(keys);
    for pair in messages.windows(2) {
        let number = |message: &Value| (message["term"].as_u64(), message["number"].as_u64());
        let count = |message: &Value, key: &str| message[key].as_u64().expect("a count");
        let [before, after] = pair else { unreachable!("windows of two") };
        assert!(number(before) <= number(after), "the number fell: {before} then {after}");
        let [old, new] = [(before, after), (after, before)].map(|(a, b)| count(a, "completed") * count(b, "total"));
        assert!(old <= new, "the share fell: {before} then {after}");
        assert_eq!(before["state"], "RUNNING", "only the last message is terminal");
    }
    let last = messages.last().expect("a message");
    assert_eq!((&last["state"], &last["completed"]), (&Value::from("SUCCEEDED"), &last["total"]), "{last}");
    last
}

/// Every key is there, and no other.
pub(crate) fn keys(job: &Value) {
    let mut found: Vec<&str> = job.as_object().expect("an object").keys().map(String::as_str).collect();
    found.sort_unstable();
    assert_eq!(found, KEYS);
}
