//! Every pod replaced, one after the other, and some taken away, while clients hand in jobs.

use super::command::say;
use super::deployment::{Deployment, WORKERS, told};
use super::outside::Load;

#[test]
fn a_rolling_restart_and_a_scaling_down_fail_no_submission() {
    let deployment = Deployment::apply();
    let load = Load::start(&deployment.client, 2);
    load.goes_on(10);
    for workload in ["statefulset/worker", "deployment/bootstrap"] {
        told(&["rollout", "restart", workload]);
        deployment.rolled_out();
        load.goes_on(10);
    }
    deployment.client.settles(WORKERS);
    deployment.scale(2);
    deployment.client.settles(2);
    load.goes_on(10);
    let tally = load.end();
    say(format_args!(
        "{} submissions, {} failed, while every pod was replaced and two were taken away",
        tally.succeeded,
        tally.failed.len()
    ));
    assert!(tally.failed.is_empty(), "{:?}", tally.failed);
}
