//! The house: which package may know which, and that core reaches nothing outside itself.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Who may depend on whom, tests included. A package that is not here has no place in the house yet.
const ARROWS: &[(&str, &[&str])] = &[
    ("tokkuri-core", &[]),
    ("tokkuri-model", &["tokkuri-core"]),
    ("tokkuri-server", &["tokkuri-core"]),
    ("tokkuri-tests", &["tokkuri-server"]),
    ("tokkuri-benches", &["tokkuri-server"]),
];

/// What core may be built on: nothing that knows a clock, a thread or a socket without being asked to.
const CORE_MAY_USE: &[&str] = &["jiff", "serde", "serde_json", "smol_str", "thiserror"];

/// Words that core's code has no use for. Comments and tests may use them.
const FOREIGN: &[&str] = &[
    "std::time",
    "std::thread",
    "std::fs",
    "std::net",
    "std::io",
    "std::env",
    "std::process",
    "std::sync",
    "std::os",
    "Instant::now",
    "SystemTime",
    "Timestamp::now",
    "Zoned::now",
    "getrandom",
    "rand::",
    "RandomState",
    "HashMap",
    "HashSet",
    "async fn",
    "async move",
    "async {",
    ".await",
    "Future for",
    "tokio",
    "futures",
    "println!",
    "eprintln!",
];

#[test]
fn the_arrows_between_the_packages_hold() {
    let members = members();
    assert!(members.contains_key("tokkuri-core") && members.contains_key("tokkuri-server"), "{members:?}");
    for (name, dependencies) in &members {
        let Some((_, allowed)) = ARROWS.iter().find(|(package, _)| package == name) else {
            panic!("{name} is not in the table of arrows");
        };
        for dependency in dependencies.iter().filter(|dependency| members.contains_key(*dependency)) {
            assert!(allowed.contains(&dependency.as_str()), "{name} must not know {dependency}");
        }
    }
}

#[test]
fn core_is_built_on_no_more_than_it_may_use() {
    let core = package("tokkuri-core");
    for dependency in core["dependencies"].as_array().unwrap().iter().filter(|d| d["kind"].is_null()) {
        // The shim that loom explores comes in under a private cfg only.
        if dependency["target"].is_string() {
            continue;
        }
        let name = dependency["name"].as_str().unwrap();
        assert!(CORE_MAY_USE.contains(&name), "core must not be built on {name}");
        assert_eq!(dependency["uses_default_features"], false, "{name} would bring std");
        let features: Vec<&str> = dependency["features"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert!(!features.contains(&"std"), "{name}: {features:?}");
    }
}

#[test]
fn core_is_no_std() {
    let lib = fs::read_to_string(root().join("core/src/lib.rs")).unwrap();
    let code = code_of(&lib);
    assert!(code.contains("#![no_std]") || code.contains("no_std)]"), "core/src/lib.rs says no_std");
}

#[test]
fn core_mentions_no_clock_randomness_thread_io_or_async() {
    let mut files = Vec::new();
    rust_files(&root().join("core/src"), &mut files);
    assert!(files.iter().any(|file| file.ends_with("lib.rs")), "{files:?}");
    let mut found = Vec::new();
    for file in files {
        let inside = file.strip_prefix(root().join("core/src")).unwrap();
        // The one module made by hand for concurrency, under the feature `std`.
        let first = inside.components().next().unwrap().as_os_str().to_string_lossy().into_owned();
        let tests = inside.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with("tests"))
            || inside.components().any(|part| part.as_os_str() == "tests");
        if first.starts_with("signal") || tests {
            continue;
        }
        let code = code_of(&fs::read_to_string(&file).unwrap());
        found.extend(foreign_words(&code).into_iter().map(|word| format!("{}: {word}", inside.display())));
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn no_package_is_named_core() {
    assert!(!members().contains_key("core"), "a package named core shadows the language's");
}

/// The scan itself: it has to find what it looks for, and only in code.
#[test]
fn the_scan_finds_foreign_words_in_code_only() {
    let found = |source: &str| foreign_words(&code_of(source));
    assert_eq!(found("use std::time::Duration;"), ["std::time"]);
    assert_eq!(found("let x = a.await; // fine"), [".await"]);
    assert_eq!(found("/* thread */ let url = \"http://x\"; Instant::now()"), ["Instant::now"]);
    assert!(found("// std::time is no use\n/// `tokio` neither\n//! std::io").is_empty());
    assert!(found("fn f() {}\n#[cfg(test)]\nmod tests { use std::thread; }").is_empty());
    assert!(found("let a = \"std::time\";").is_empty());
    assert!(found("let a = r#\"say \"std::time\" twice\"#;").is_empty());
    assert_eq!(
        found("let a = r#\"\"\"#; std::time; let b = '\"'; let c = '\\\"'; tokio; let d = \"\\\"\"; rand::x"),
        ["std::time", "rand::", "tokio"]
    );
}

fn foreign_words(code: &str) -> Vec<&'static str> {
    FOREIGN.iter().copied().filter(|word| code.contains(word)).collect()
}

/// The source without comments, texts and the tests at its end.
fn code_of(source: &str) -> String {
    let mut rest = source.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let mut code = String::new();
    while let Some(c) = rest.chars().next() {
        let word = code.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let hashes = rest.strip_prefix('r').map_or(0, |rest| rest.len() - rest.trim_start_matches('#').len());
        let raw = !word && rest.strip_prefix('r').is_some_and(|rest| rest[hashes..].starts_with('"'));
        let skipped = if rest.starts_with("//") {
            rest.find('\n')
        } else if rest.starts_with("/*") {
            rest.find("*/").map(|at| at + 2)
        } else if raw {
            let close = format!("\"{}", "#".repeat(hashes));
            rest[hashes + 2..].find(&close).map(|at| hashes + 2 + at + close.len())
        } else if c == '"' {
            let mut escaped = false;
            let close = rest[1..].find(|c| {
                let end = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                end
            });
            close.map(|at| at + 2)
        } else if rest.starts_with("'\"'") || rest.starts_with("'\\\"'") {
            rest[1..].find('\'').map(|at| at + 2)
        } else {
            code.push(c);
            Some(c.len_utf8())
        };
        rest = &rest[skipped.unwrap_or(rest.len())..];
    }
    code
}

fn rust_files(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn package(name: &str) -> Value {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().unwrap();
    packages.iter().find(|package| package["name"] == name).unwrap_or_else(|| panic!("no package {name}")).clone()
}

/// The packages of the workspace, and what each depends on.
fn members() -> BTreeMap<String, BTreeSet<String>> {
    let name = |value: &Value| value["name"].as_str().unwrap().to_owned();
    let packages = metadata()["packages"].take();
    let packages = packages.as_array().unwrap().iter();
    packages
        .map(|package| (name(package), package["dependencies"].as_array().unwrap().iter().map(name).collect()))
        .collect()
}

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}
