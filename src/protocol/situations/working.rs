//! Jobs on a few workers (sections 7 and 8): what is acknowledged is finished, whoever dies meanwhile.

use std::collections::BTreeMap;

use crate::protocol::ids::{Jac, Number, Term};
use crate::protocol::testkit::network::Fate;
use crate::protocol::testkit::{Network, job, ms, task};

const THREE: [&str; 3] = ["n1", "n2", "n3"];
const LINKS: [&str; 3] = ["n1-n2", "n2-n3", "n3-n1"];

/// Three that follow n1 in term 1.
fn settled() -> Network {
    let mut net = Network::new(&THREE, &LINKS);
    net.elect("n2");
    net.pass(ms(10));
    assert_eq!(net.leaders(), "n1: 1-n1, n2: 1-n1, n3: 1-n1");
    net
}

/// All that live show the job so.
#[track_caller]
fn all_show(net: &Network, id: &str, expected: &str) {
    for name in THREE {
        if net.is_up(name) {
            assert_eq!(net.shown(name, id), expected, "at {name}");
        }
    }
}

/// All that live have equal replicas.
#[track_caller]
fn are_equal(net: &Network) {
    let up: Vec<&str> = THREE.into_iter().filter(|name| net.is_up(name)).collect();
    for name in &up {
        let (one, first) = (&net.worker(name).ledger, &net.worker(up[0]).ledger);
        assert_eq!(one.hashes(), first.hashes(), "at {name}");
        assert_eq!(one.position(), first.position(), "at {name}");
        assert_eq!(one.past(), first.past(), "at {name}");
    }
}

#[test]
fn a_job_submitted_anywhere_is_acknowledged_computed_and_shown_everywhere() {
    let mut net = settled();
    let token = net.submit("n3", "j");
    net.pass(ms(200));
    assert_eq!(net.answered(token).map(|text| text.starts_with("held, j")), Some(true));
    all_show(&net, "j", "j Succeeded = 1060 12/12");
    are_equal(&net);
}

#[test]
fn twelve_jobs_take_three_terms_of_five_and_the_jacs_say_so() {
    let mut net = settled();
    for at in 0..12 {
        let token = net.submit(THREE[at % 3], &format!("j{at}"));
        assert!(net.until(ms(2_000), |net| net.answered(token).is_some()), "{}", net.leaders());
        net.pass(ms(50));
    }
    let jacs: Vec<u64> = THREE.iter().map(|name| net.worker(name).jac.0).collect();
    assert_eq!(jacs.iter().sum::<u64>(), 12);
    assert!(jacs.iter().all(|jac| *jac <= 5), "{jacs:?}");
    for at in 0..12 {
        all_show(&net, &format!("j{at}"), "j# Succeeded = 1060 12/12".replace('#', &at.to_string()).as_str());
    }
    are_equal(&net);
}

#[test]
fn submissions_of_one_instant_from_everywhere_fill_each_term_exactly_and_none_is_refused() {
    let mut net = settled();
    let tokens: Vec<_> = (0..14).map(|at| net.submit(THREE[at % 3], &format!("j{at}"))).collect();
    assert!(net.until(ms(5_000), |net| tokens.iter().all(|token| net.answered(*token).is_some())));
    assert!(tokens.iter().all(|token| net.answered(*token).is_some_and(|text| text.starts_with("held"))));
    let mut places = BTreeMap::new();
    for at in 0..14 {
        let view = net.worker("n1").ledger.view(&job(&format!("j{at}"))).expect("it is there");
        assert_eq!(view.admissions.len(), 1);
        let admission = &view.admissions[0];
        places.entry((admission.term, admission.leader.clone())).or_insert_with(Vec::new).push(admission.place);
    }
    for (leadership, mut places) in places {
        places.sort_unstable();
        let all: Vec<u32> = (1..=u32::try_from(places.len()).expect("a few")).collect();
        assert!(places == all && places.len() <= 5, "{leadership:?}: {places:?}");
    }
}

#[test]
fn a_leader_killed_mid_job_costs_no_finished_work() {
    let mut net = settled();
    net.rule(|text| if text.starts_with("n3 computes") { Fate::Hold } else { Fate::Deliver });
    net.submit("n2", "j");
    net.pass(ms(20));
    let done = |net: &Network, name: &str| net.worker(name).ledger.completions(&job("j"), 12).count();
    let before = done(&net, "n2");
    assert!(before >= 10, "only n3 is slow: {before}");
    net.kill("n1");
    net.pass(ms(300));
    net.release();
    net.pass(ms(300));
    all_show(&net, "j", "j Succeeded = 1060 12/12");
    let again = (0..12).filter(|slice| {
        let record = net.worker("n2").ledger.task(&task("j", 12, *slice)).expect("it was done");
        record.completion.as_ref().is_some_and(|done| done.attempt.number > 1)
    });
    assert!(again.count() <= 12 - before, "what was done is not done again");
}

#[test]
fn a_worker_killed_mid_task_loses_its_tasks_to_others() {
    let mut net = settled();
    net.rule(|text| if text.starts_with("n3 computes") { Fate::Hold } else { Fate::Deliver });
    net.submit("n1", "j");
    net.kill("n3");
    net.pass(ms(200));
    all_show(&net, "j", "j Succeeded = 1060 12/12");
}

#[test]
fn a_submission_sent_to_a_leader_that_dies_is_admitted_by_the_next() {
    let mut net = settled();
    net.rule(|text| if text.contains("SUBMIT j passed on") { Fate::Hold } else { Fate::Deliver });
    let token = net.submit("n3", "j");
    net.kill("n1");
    net.rule(|_| Fate::Deliver);
    net.pass(ms(1_000));
    assert_eq!(net.answered(token).map(|text| text.starts_with("held")), Some(true), "{:?}", net.answered(token));
    all_show(&net, "j", "j Succeeded = 1060 8/8");
}

#[test]
fn an_admission_that_no_follower_got_comes_back_with_its_leader_s_disk() {
    let mut net = settled();
    net.rule(|text| if text.contains("n1 > ") && text.contains("BATCH") { Fate::Hold } else { Fate::Deliver });
    let token = net.submit("n1", "j");
    net.kill("n1");
    net.rule(|_| Fate::Deliver);
    net.pass(ms(300));
    assert_eq!(net.answered(token), None, "it was held by one only");
    all_show(&net, "j", "Unknown");
    net.restart("n1");
    net.pass(ms(2_000));
    all_show(&net, "j", "j Succeeded = 1060 12/12");
    are_equal(&net);
    assert_eq!(net.worker("n1").jac, Jac(1));
}

#[test]
fn an_admission_that_was_not_journalled_is_forgotten_with_its_jac() {
    let mut net = settled();
    net.rule(|text| if text.starts_with("n1 saves") { Fate::Hold } else { Fate::Deliver });
    let token = net.submit("n1", "j");
    assert!(net.logged("BATCH 1-n1#").iter().all(|line| !line.contains("job j")), "it is not sent before it is saved");
    net.kill("n1");
    net.rule(|_| Fate::Deliver);
    net.pass(ms(300));
    net.restart("n1");
    net.pass(ms(2_000));
    assert_eq!(net.answered(token), None);
    all_show(&net, "j", "Unknown");
    assert_eq!(net.worker("n1").jac, Jac(0));
}

#[test]
fn two_sides_of_a_split_both_work_and_become_one_with_all_jobs_of_both() {
    let mut net = settled();
    net.submit("n1", "before");
    net.pass(ms(100));
    net.cut("n3", "n1");
    net.cut("n3", "n2");
    net.pass(ms(1_500));
    net.submit("n3", "there");
    net.submit("n2", "here");
    net.submit("n3", "both");
    net.submit("n2", "both");
    net.pass(ms(500));
    assert_eq!(net.shown("n3", "there"), "there Succeeded = 1060 4/4");
    assert_eq!(net.shown("n2", "here"), "here Succeeded = 1060 8/8");
    net.heal();
    net.meet("n3", "n1");
    net.pass(ms(2_000));
    assert!(net.one_leader().is_some(), "{}", net.leaders());
    are_equal(&net);
    all_show(&net, "there", "there Succeeded = 1060 4/4");
    all_show(&net, "here", "here Succeeded = 1060 8/8");
    let both = net.worker("n1").ledger.view(&job("both")).expect("it is there");
    assert_eq!((both.admissions.len(), both.answer.map(|answer| answer.0)), (2, Some(1_060)));
}

#[test]
fn the_side_that_reaches_more_stays_and_counts_on_its_admissions() {
    let mut net = settled();
    net.submit("n1", "before");
    net.pass(ms(100));
    net.cut("n3", "n1");
    net.cut("n3", "n2");
    net.pass(ms(1_500));
    assert!(net.worker("n3").is_leading() && net.worker("n1").is_leading());
    net.heal();
    net.meet("n3", "n1");
    net.pass(ms(2_000));
    let one = net.one_leader().expect("they agree");
    assert_eq!(one.leader.as_str(), "n1");
    assert!(one.term > Term(2), "above both: {}", one.term);
    assert_eq!(net.worker("n1").cluster().admitted, 1);
}

#[test]
fn a_follower_that_was_away_joins_by_position_and_gets_what_changed_only() {
    let mut net = settled();
    net.submit("n1", "old");
    net.pass(ms(100));
    net.kill("n3");
    net.submit("n1", "new");
    net.pass(ms(100));
    net.log.clear();
    net.restart("n3");
    net.pass(ms(1_500));
    are_equal(&net);
    let joins = net.logged("BATCH joins");
    assert_eq!(joins.len(), 1, "{joins:?}");
    assert!(joins[0].contains("job new") && !joins[0].contains("job old"), "{joins:?}");
}

#[test]
fn everything_killed_at_once_and_started_again_resumes_the_unfinished_job() {
    let mut net = settled();
    net.rule(|text| if text.contains(" computes") { Fate::Hold } else { Fate::Deliver });
    let token = net.submit("n2", "j");
    net.pass(ms(50));
    assert!(net.answered(token).is_some_and(|text| text.starts_with("held")));
    for name in THREE {
        net.kill(name);
    }
    net.rule(|_| Fate::Deliver);
    for name in THREE {
        net.restart(name);
    }
    net.pass(ms(2_000));
    all_show(&net, "j", "j Succeeded = 1060 12/12");
    are_equal(&net);
    assert!(net.worker("n1").ledger.number() > Number(0));
}
