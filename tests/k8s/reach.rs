//! Who reaches what: jobs from outside and from inside, and what a stranger gets to.

use super::command::{eventually, run};
use super::deployment::{Deployment, Forwarding, inside, told};
use super::outside::{ANSWER_OF_LARGE, LARGE};

/// What a node says to somebody who speaks gRPC to its HTTP port: it answered.
fn answered(node: &str) -> bool {
    let done = run(&mut inside(node).command(&["health"]));
    assert!([Some(0), Some(3)].contains(&done.code), "{done:?}");
    let unanswered = ["refused", "in time", "timed out", "unreachable"];
    done.code == Some(0) || !unanswered.iter().any(|sign| done.err.to_lowercase().contains(sign))
}

#[test]
fn jobs_come_from_outside_and_inside_and_a_stranger_reaches_nothing_but_the_port_of_clients() {
    let deployment = Deployment::apply();
    let forwarding = Forwarding::open();
    assert_eq!(forwarding.client.submit(&LARGE), ANSWER_OF_LARGE);
    forwarding.close();
    assert_eq!(deployment.client.submit(&["max", "3", "-7", "12"]), "12");

    let closed = ["bootstrap:7400", "floodline:8080", "worker-0.peers:8080"];
    for open in ["floodline:7400", "worker-0.peers:7400"] {
        assert!(answered(open), "{open} is for everybody");
    }
    for closed in closed {
        assert!(!answered(closed), "{closed} is not for strangers");
    }
    // It is the policies that close them.
    told(&["delete", "networkpolicies", "--all"]);
    for closed in closed {
        eventually(&format!("reaching {closed} without policies"), || answered(closed).then_some(()));
    }
}
