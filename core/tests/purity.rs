//! Core reaches no clock, no randomness, no thread and no I/O: its sources name none, and neither does anything it depends on
//! by more than name.

use std::fs;
use std::path::{Path, PathBuf};

/// What no machine may name. `signal` may use std's mutex; it is held to the rest.
const FORBIDDEN: &[&str] = &[
    "std::time",
    "std::thread",
    "std::fs",
    "std::net",
    "std::env",
    "std::process",
    "std::io",
    "SystemTime",
    "Instant",
    "thread_rng",
    "rand::",
    "getrandom",
    "RandomState",
    "HashMap",
    "HashSet",
    "tokio",
    "async fn",
    "async move",
    ".await",
    "println!",
    "eprintln!",
    "dbg!",
    "unsafe ",
    "extern crate std",
    "Timestamp::now",
    "Zoned::now",
];

/// The dependencies, all of them `no_std` + `alloc` as the workspace asks for them.
const DEPENDENCIES: &[&str] = &["smol_str", "serde", "serde_json", "jiff", "thiserror"];

fn package() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the sources are there") {
        let path = entry.expect("the sources can be listed").path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

/// The part of a file that is compiled into the library, without comments.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let tests = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    text[..tests]
        .lines()
        .enumerate()
        .map(|(i, line)| (i + 1, line.split_once("//").map_or(line, |(code, _)| code)))
        .filter(|(_, line)| !line.trim().is_empty())
}

fn offences(name: &str, text: &str) -> Vec<String> {
    let in_signal = name.starts_with("signal");
    let mut found = Vec::new();
    for (number, line) in code(text) {
        for word in FORBIDDEN.iter().filter(|word| line.contains(**word)) {
            found.push(format!("{name}:{number} names {word}"));
        }
        if !in_signal && line.contains("std::") {
            found.push(format!("{name}:{number} names std; outside of signal it is core or alloc"));
        }
    }
    found
}

#[test]
fn the_machines_reach_no_clock_no_randomness_no_thread_and_no_io() {
    let root = package().join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    assert!(files.len() > 20, "the scan sees the sources: {files:?}");
    let mut found = Vec::new();
    for file in files {
        let name = file.strip_prefix(&root).expect("it is below").to_string_lossy().replace('\\', "/");
        if name != "signal/tests.rs" {
            found.extend(offences(&name, &fs::read_to_string(&file).expect("sources are text")));
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn the_scan_sees_what_it_looks_for() {
    let text = "use std::time::Instant;\n// std::fs in a comment\nasync fn f() { g().await }\n#[cfg(test)]\nmod tests {\n    use std::fs;\n}\n";
    let found = offences("task.rs", text);
    for what in
        ["task.rs:1 names std::time", "task.rs:1 names Instant", "task.rs:3 names async fn", "task.rs:3 names .await"]
    {
        assert!(found.iter().any(|it| it == what), "{what}: {found:?}");
    }
    assert!(!found.iter().any(|it| it.starts_with("task.rs:2") || it.starts_with("task.rs:6")), "{found:?}");
}

/// The tables of a manifest whose names begin with `table`, line by line.
fn entries(manifest: &str, table: &str) -> Vec<(String, String)> {
    let mut inside = false;
    let mut entries = Vec::new();
    for line in manifest.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[') {
            inside = name.trim_end_matches(']') == table;
            // A table of its own, for one dependency or one target, would slip by. Only loom may: it explores `signal`.
            let odd =
                name.starts_with("dependencies.") || (name.starts_with("target.") && !name.contains("tokkuri_loom"));
            assert!(!odd, "dependencies are one plain table, not [{name}");
        } else if inside && let Some((name, value)) = line.split_once('=') {
            let name = name.trim().split('.').next().unwrap_or_default();
            entries.push((name.to_owned(), value.trim().to_owned()));
        }
    }
    entries
}

#[test]
fn core_depends_on_a_few_no_std_crates_and_nothing_else() {
    let manifest = fs::read_to_string(package().join("Cargo.toml")).expect("the manifest is there");
    let names: Vec<_> = entries(&manifest, "dependencies").into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, DEPENDENCIES);

    let workspace = fs::read_to_string(package().join("../Cargo.toml")).expect("the workspace's manifest is there");
    let listed = entries(&workspace, "workspace.dependencies");
    for name in DEPENDENCIES {
        let (_, how) = listed.iter().find(|(it, _)| it == name).expect("it is a dependency of the workspace");
        assert!(how.contains("default-features = false"), "{name} = {how}");
        assert!(!how.contains("\"std\""), "{name} = {how}");
    }
    let root = fs::read_to_string(package().join("src/lib.rs")).expect("the root is there");
    assert!(root.contains("no_std") && root.contains("#![forbid(unsafe_code)]"));
}
