//! Each rule finds what was planted, and lets its nearest allowed neighbour pass.

use super::*;

fn told(rule: fn(&Source) -> Vec<Fault>, path: &str, text: &str) -> Vec<String> {
    rule(&Source::new(path, text)).iter().map(ToString::to_string).collect()
}

fn passes(rule: fn(&Source) -> Vec<Fault>, path: &str, text: &str) {
    assert_eq!(told(rule, path, text), Vec::<String>::new(), "{path}: {text}");
}

fn function(name: &str, lines: usize) -> String {
    format!("pub(crate) async fn {name}(\n    list: [u8; 3],\n) -> u8 {{\n{}}}\n", "    a();\n".repeat(lines - 4))
}

#[test]
fn a_file_without_a_doc_or_with_a_name_that_says_nothing_is_found() {
    assert_eq!(told(module_doc, "src/a.rs", "use b;\n"), ["src/a.rs:1: begins without a module doc"]);
    passes(module_doc, "src/a.rs", "//! Owns b.\n");
    passes(module_doc, "Makefile", "all:\n");
    assert_eq!(
        told(file_name, "src/wire/utils.rs", ""),
        ["src/wire/utils.rs:1: the name `utils` says nothing of what is in it"]
    );
    passes(file_name, "src/wire/json.rs", "");
}

#[test]
fn a_long_file_is_found_but_its_tests_do_not_count() {
    let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "    // a\n".repeat(600));
    passes(file_length, "src/a.rs", &("a;\n".repeat(500) + &tests));
    assert_eq!(
        told(file_length, "src/a.rs", &("a;\n".repeat(501) + &tests)),
        ["src/a.rs:1: 501 lines without tests; 500 is the most"]
    );
}

#[test]
fn a_long_function_is_found_with_its_line() {
    let text = format!("trait A {{\n    fn a(&self, list: [u8; 2]);\n}}\n{}{}", function("b", 70), function("c", 71));
    assert_eq!(told(function_length, "src/a.rs", &text), ["src/a.rs:74: a function of 71 lines; 70 is the most"]);
    passes(function_length, "src/a.rs", &format!("// fn a\nstatic A: fn() = b;\n{}", "x {\n".repeat(90)));
}

#[test]
fn an_impure_word_is_found_in_code_of_a_pure_module_alone() {
    for (word, text) in [
        ("async", "pub async fn a() {}"),
        ("await", "b.await;"),
        ("HashMap", "use std::collections::{BTreeMap, HashMap};"),
        ("Instant", "let now = Instant::now();"),
        ("std::fs", "std::fs::read(a);"),
        ("println", "println!();"),
        ("rand", "rand::random();"),
        ("log", "log::warn!();"),
        ("tracing", "tracing::info!();"),
    ] {
        assert_eq!(
            told(purity, "src/protocol/a.rs", text),
            [format!("src/protocol/a.rs:1: `{word}` in a pure module")]
        );
        passes(purity, "src/node/a.rs", text);
        passes(purity, "src/protocol/a.rs", &format!("// {text}\nlet a = r#\"{text}\"#;\n"));
        passes(purity, "src/protocol/a.rs", &format!("#[cfg(test)]\nmod tests {{\n    {text}\n}}\n"));
    }
    passes(purity, "src/jobs/a.rs", "let log = n.log2(); let print = print(x); let operand = 1; catalog::a();");
}

#[test]
fn a_pure_module_whose_head_denies_too_little_is_found() {
    let head = "#![deny(\n    clippy::disallowed_methods,\n    clippy::disallowed_types,\n    clippy::wildcard_enum_match_arm\n)]\n";
    passes(denials, "src/jobs/mod.rs", head);
    passes(denials, "src/jobs/max.rs", "");
    passes(denials, "src/node/mod.rs", "");
    assert_eq!(
        told(denials, "src/jobs/mod.rs", &head.replace("clippy::disallowed_types,", "")),
        ["src/jobs/mod.rs:1: the head of a pure module does not deny clippy::disallowed_types"]
    );
    assert_eq!(told(denials, "src/guarantees/mod.rs", &format!("// {}", head.replace('\n', " "))).len(), 3);
}

#[test]
fn what_is_left_for_later_is_found_wherever_it_stands() {
    let mark = concat!("TO", "DO");
    assert_eq!(
        told(nothing_open, "Makefile", &format!("a:\n# {mark}: b\n")),
        [format!("Makefile:2: {mark}: do it, or leave it out")]
    );
    passes(nothing_open, "src/a.rs", "fn to_do() {} // todomvc\n");
}

#[test]
fn a_test_that_sleeps_or_never_runs_is_found() {
    let slept = "tests/a/main.rs:1: a test sleeps: wait for an event, with a bound";
    assert_eq!(told(honest_tests, "tests/a/main.rs", "tokio::time::sleep(second).await;\n"), [slept]);
    assert_eq!(told(honest_tests, "tests/a/main.rs", "use std::thread::sleep;\n"), [slept]);
    let text = "sleep(a);\n#[cfg(test)]\nmod tests {\n    #[test]\n    #[ignore = \"slow\"]\n    fn a() {}\n}\n";
    assert_eq!(told(honest_tests, "src/a.rs", text), ["src/a.rs:5: a test is ignored: make it run, or leave it out"]);
    passes(honest_tests, "tests/a/main.rs", "// sleep\nfn sleeper_wakes() { asleep(\"sleep\"); }\n");
}

#[test]
fn a_metric_spelt_elsewhere_is_found() {
    let text = "const A: &str = \"floodline_jobs\";\n";
    assert_eq!(told(metric_names, "src/node/a.rs", text), ["src/node/a.rs:1: only telemetry/names.rs spells a metric"]);
    passes(metric_names, "src/telemetry/names.rs", text);
    passes(metric_names, "src/wire/mod.rs", "include_file_descriptor_set!(\"floodline_v1\"); // \"floodline_jobs\"\n");
}

#[test]
fn generated_types_elsewhere_and_channels_without_bound_are_found() {
    let text = "tonic::include_proto!(\"a\");\n";
    assert_eq!(told(owners, "src/grpc/mod.rs", text), ["src/grpc/mod.rs:1: only `wire` knows generated types"]);
    passes(owners, "src/wire/mod.rs", text);
    assert_eq!(
        told(owners, "src/node/a.rs", "mpsc::unbounded_channel();"),
        ["src/node/a.rs:1: a channel without a bound"]
    );
}
