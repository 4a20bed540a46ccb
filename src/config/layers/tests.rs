//! Layers of settings: which one wins, and how mistakes are told (section 2 of the contract).

use std::io::Write;

use tempfile::NamedTempFile;

use super::*;

fn file(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().expect("a temporary file");
    file.write_all(text.as_bytes()).expect("room for a few bytes");
    file
}

fn sources(file: Option<&Path>, environment: &[(&str, &str)], flags: &[(&'static str, &str)]) -> Sources {
    Sources {
        file: file.map(Path::to_owned),
        environment: environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        flags: flags.iter().map(|(name, value)| (*name, (*value).to_owned())).collect(),
    }
}

fn told(sources: &Sources) -> Vec<String> {
    load(sources).expect_err("something bad").0.iter().map(ToString::to_string).collect()
}

fn origin(effective: &Effective, name: &str) -> (String, String) {
    let shown = find(&effective.shown, name).expect("a setting");
    (shown.text.clone(), shown.origin.to_string())
}

#[test]
fn without_a_word_from_anyone_every_setting_has_its_default() {
    let effective = load(&sources(None, &[], &[])).expect("defaults are allowed");
    assert_eq!(effective.shown.len(), TABLE.len());
    assert!(effective.shown.iter().all(|shown| shown.origin == Origin::Default));
    let settings = effective.settings;
    assert_eq!(settings.heartbeat_interval, Duration::from_millis(150));
    assert_eq!(settings.max_numbers, 2_000_000);
    assert_eq!(settings.peers, []);
    assert_eq!(settings.advertise.to_string(), format!("{}:7400", settings.node_id));
}

#[test]
fn the_later_layer_wins_and_is_named_as_the_origin() {
    let file = file("lease_ttl = '5s'\nqueue = 7\nmax_tasks = 8\nmax_attempts = 9\npeers = ['a:1', 'b:2']\n");
    let path = file.path().to_str().expect("a readable path");
    let environment = [("FLOODLINE_CONFIG", path), ("FLOODLINE_MAX_TASKS", "16"), ("FLOODLINE_MAX_ATTEMPTS", "17")];
    let effective = load(&sources(None, &environment, &[("max_attempts", "27")])).expect("all allowed");
    let settings = &effective.settings;
    assert_eq!((settings.lease_ttl, settings.queue), (Duration::from_secs(5), 7));
    assert_eq!((settings.max_tasks, settings.max_attempts), (16, 27));
    assert_eq!(settings.peers.iter().map(ToString::to_string).collect::<Vec<_>>(), ["a:1", "b:2"]);
    let pair = |text: &str, origin: &str| (text.to_owned(), origin.to_owned());
    assert_eq!(origin(&effective, "queue"), pair("7", &format!("file {path}")));
    assert_eq!(origin(&effective, "max_tasks"), pair("16", "environment FLOODLINE_MAX_TASKS"));
    assert_eq!(origin(&effective, "max_attempts"), pair("27", "flag --max-attempts"));
    assert_eq!(origin(&effective, "lease_renew"), pair("2s", "default"));
}

#[test]
fn the_advertised_port_follows_the_listening_one_unless_it_is_given() {
    let environment = [("FLOODLINE_LISTEN", "127.0.0.1:7411")];
    let effective = load(&sources(None, &environment, &[])).expect("all allowed");
    assert!(effective.settings.advertise.as_str().ends_with(":7411"), "{}", effective.settings.advertise);
    let effective = load(&sources(None, &environment, &[("advertise", "here:1")])).expect("all allowed");
    assert_eq!(effective.settings.advertise.as_str(), "here:1");
}

#[test]
fn an_empty_variable_counts_as_not_set_and_an_empty_flag_does_not() {
    let environment = [("FLOODLINE_PEERS", "a:1"), ("FLOODLINE_QUEUE", ""), ("FLOODLINE_CONFIG", "")];
    let effective = load(&sources(None, &environment, &[("peers", "")])).expect("all allowed");
    assert_eq!((effective.settings.queue, effective.settings.peers.len()), (256, 0));
    assert_eq!(origin(&effective, "peers").1, "flag --peers");
    assert_eq!(
        told(&sources(None, &[], &[("queue", "")])),
        ["--queue=\"\" is not allowed: give a whole number from 1 to 100000"]
    );
}

#[test]
fn all_bad_values_are_told_at_once_each_under_the_name_that_the_person_used() {
    let file = file("role = 'boss'\nqueue = 0\nlease_tll = '1s'\nmin_links = [1]\n");
    let path = file.path().display().to_string();
    let environment = [
        ("FLOODLINE_HEARTBEAT_INTERVAL", "150"),
        ("FLOODLINE_LISTEN", "localhost"),
        ("FLOODLINE_PEERS", "a:1,b"),
        ("FLOODLINE_LEESE_RENEW", "1s"),
        ("FLOODLINE_ZZZ", "1"),
        ("FLOODLINE_LEASE_RENEW", "10s"),
    ];
    let flags = [("cluster", "no spaces"), ("max_numbers", "-1"), ("log_level", "loud")];
    assert_eq!(
        told(&sources(Some(file.path()), &environment, &flags)),
        [
            "FLOODLINE_LEESE_RENEW is not a setting: did you mean FLOODLINE_LEASE_RENEW?".to_owned(),
            "FLOODLINE_ZZZ is not a setting: `floodline config --help` lists them".to_owned(),
            format!("lease_tll in {path} is not a setting: did you mean lease_ttl?"),
            format!("role=\"boss\" in {path} is not allowed: give bootstrap or worker"),
            "--cluster=\"no spaces\" is not allowed: give 1 to 63 letters, digits, '-', '_' or '.'".to_owned(),
            "FLOODLINE_LISTEN=\"localhost\" is not allowed: give an IP address and a port, such as 0.0.0.0:7400".to_owned(),
            "FLOODLINE_PEERS=\"a:1,b\" is not allowed: give hosts and ports, comma-separated, such as \
             node-1:7400,node-2:7400"
                .to_owned(),
            "FLOODLINE_HEARTBEAT_INTERVAL=\"150\" is not allowed: give a time from 10ms to 10s, such as 150ms, 2s or 1m"
                .to_owned(),
            format!("min_links=\"[1]\" in {path} is not allowed: give a whole number from 1 to 64"),
            "--max-numbers=\"-1\" is not allowed: give a whole number from 1 to 10000000".to_owned(),
            format!("queue=\"0\" in {path} is not allowed: give a whole number from 1 to 100000"),
            "--log-level=\"loud\" is not allowed: give error, warn, info, debug or trace".to_owned(),
            "FLOODLINE_LEASE_RENEW=\"10s\" is not allowed: it must be below lease_ttl, which is 8s (default)".to_owned(),
        ]
    );
}

#[test]
fn of_two_times_that_do_not_go_together_the_one_that_was_changed_is_told() {
    let one = |name, value| told(&sources(None, &[(name, value)], &[]));
    assert_eq!(
        one("FLOODLINE_LEASE_TTL", "1s"),
        ["FLOODLINE_LEASE_TTL=\"1s\" is not allowed: it must be above lease_renew, which is 2s (default)"]
    );
    assert_eq!(
        one("FLOODLINE_HEARTBEAT_INTERVAL", "250ms"),
        [
            "FLOODLINE_HEARTBEAT_INTERVAL=\"250ms\" is not allowed: it must be below half of election_timeout_min, which is \
          500ms (default)"
        ]
    );
    assert_eq!(
        one("FLOODLINE_ELECTION_TIMEOUT_MIN", "200ms"),
        [
            "FLOODLINE_ELECTION_TIMEOUT_MIN=\"200ms\" is not allowed: it must be above twice heartbeat_interval, which is \
          150ms (default)"
        ]
    );
    assert_eq!(
        one("FLOODLINE_ELECTION_TIMEOUT_MIN", "2s"),
        ["FLOODLINE_ELECTION_TIMEOUT_MIN=\"2s\" is not allowed: it must be at most election_timeout_max, which is 1s \
          (default)"]
    );
    assert!(load(&sources(None, &[("FLOODLINE_ELECTION_TIMEOUT_MIN", "1s")], &[])).is_ok(), "equal ends are a range");
}

#[test]
fn a_file_that_is_missing_or_no_toml_is_named_with_the_reason() {
    let missing = Path::new("/nowhere/floodline.toml");
    assert_eq!(
        told(&sources(Some(missing), &[("FLOODLINE_QUEUE", "0")], &[])),
        [
            "settings file /nowhere/floodline.toml: No such file or directory (os error 2); name another one in \
             FLOODLINE_CONFIG, or mend it",
            "FLOODLINE_QUEUE=\"0\" is not allowed: give a whole number from 1 to 100000",
        ]
    );
    let file = file("queue = \n");
    let lines = told(&sources(Some(file.path()), &[], &[]));
    assert_eq!(lines.len(), 1);
    assert!(lines[0].contains("line 1, column 9") && !lines[0].contains('\n'), "{lines:?}");
}

#[test]
fn what_kubernetes_says_of_a_service_named_floodline_is_nobodys_mistake() {
    let environment = [
        ("FLOODLINE_SERVICE_HOST", "10.0.0.1"),
        ("FLOODLINE_SERVICE_PORT", "7400"),
        ("FLOODLINE_SERVICE_PORT_GRPC", "7400"),
        ("FLOODLINE_PORT", "tcp://10.0.0.1:7400"),
        ("FLOODLINE_PORT_7400_TCP", "tcp://10.0.0.1:7400"),
        ("FLOODLINE_PORT_7400_TCP_ADDR", "10.0.0.1"),
        ("FLOODLINE_PEERS_PORT_7400_TCP_PROTO", "tcp"),
        ("FLOODLINE_NODE", "a:1"),
    ];
    assert!(load(&sources(None, &environment, &[])).is_ok());
    assert_eq!(
        told(&sources(None, &[("FLOODLINE_PORT", "7400")], &[])),
        ["FLOODLINE_PORT is not a setting: `floodline config --help` lists them"]
    );
}

#[test]
fn a_value_of_the_wrong_kind_in_the_file_is_shown_as_it_stands() {
    let file = file("cluster = 7\nnode_id = true\nlease_ttl = 8\nqueue = 1.5\n[bootstrap]\na = 1\n");
    let path = file.path().display().to_string();
    let lines = told(&sources(Some(file.path()), &[], &[]));
    let start = |name: &str, text: &str| format!("{name}=\"{text}\" in {path} is not allowed: give ");
    let starts = [start("bootstrap", "{...}"), start("lease_ttl", "8"), start("queue", "1.5")];
    assert_eq!(lines.len(), starts.len(), "{lines:?}");
    assert!(lines.iter().zip(&starts).all(|(line, start)| line.starts_with(start)), "{lines:?}");
}
