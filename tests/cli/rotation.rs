//! The rule that gives the project its rhythm: five jobs, then the one that has coordinated least.

use std::collections::BTreeMap;

use crate::messages::followed;
use crate::nodes::{Cluster, jacs};

#[test]
fn twelve_jobs_one_after_another_take_three_terms_and_their_jacs_sum_to_twelve() {
    let cluster = Cluster::start(5).formed();
    let mut terms: BTreeMap<(u64, String), Vec<u64>> = BTreeMap::new();
    for number in 1..=12_u64 {
        let messages = cluster.json(&["submit", "max", &number.to_string(), "-1"]);
        let last = followed(&messages);
        assert_eq!(last["answer"], number.to_string());
        let [admission] = last["admissions"].as_array().expect("admissions").as_slice() else {
            panic!("counted once: {last}")
        };
        let leader = admission["leader"].as_str().expect("text").to_owned();
        let places = terms.entry((admission["term"].as_u64().expect("a term"), leader)).or_default();
        places.push(admission["place"].as_u64().expect("a place"));
    }
    let counts: Vec<usize> = terms.values().map(Vec::len).collect();
    assert_eq!(counts, [5, 5, 2], "{terms:?}");
    for places in terms.values() {
        assert_eq!(*places, (1..=places.len() as u64).collect::<Vec<u64>>(), "{terms:?}");
    }
    cluster.shown_once(|shown| jacs(shown) == 12);
    let leaders: Vec<&String> = terms.keys().map(|(_, leader)| leader).collect();
    assert!(leaders[0] != leaders[1] && leaders[1] != leaders[2] && leaders[0] != leaders[2], "{leaders:?}");
    cluster.end();
}
