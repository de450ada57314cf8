use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};

use super::super::half_written::ENDING;
use super::super::testing::{Client, call, failure, structured, wait};
use super::*;

fn export_files(root: &Path) -> Tool {
    tool(Arc::new(Root::open(root).unwrap()))
}

fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    for (path, text) in [("src/a", "one"), ("src/deep/b", "two"), ("src/target/made", "no"), ("old.tar.gz", "precious")]
    {
        let path = place.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    place
}

/// What is in an archive.
fn contents(archive: &Path) -> BTreeMap<String, String> {
    let file = fs::File::open(archive).unwrap();
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(file));
    let entries = archive.entries().unwrap().map(|entry| {
        let mut entry = entry.unwrap();
        let mut text = String::new();
        entry.read_to_string(&mut text).unwrap();
        (entry.path().unwrap().display().to_string(), text)
    });
    entries.collect()
}

fn half_written(dir: &Path) -> usize {
    let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().ends_with(ENDING)).count()
}

fn answer(overwrite: bool) -> Value {
    json!({ "action": "accept", "content": { "overwrite": overwrite } })
}

#[tokio::test]
async fn an_archive_holds_the_files_and_nothing_else_is_left() {
    let place = place();
    let tool = export_files(place.path());
    let client = Client::default();
    let result = call(&tool, json!({ "path": "src", "to": "out.tar.gz" }), &client).await.unwrap();
    let report = structured(&tool, &result);
    let out = place.path().join("out.tar.gz");
    assert_eq!(contents(&out), BTreeMap::from([("a", "one"), ("deep/b", "two")].map(|(k, v)| (k.into(), v.into()))));
    assert_eq!(report["bytes"], fs::metadata(&out).unwrap().len());
    assert_eq!((&report["count"], &report["total"], &report["overwritten"]), (&json!(2), &json!(6), &json!(false)));
    assert_eq!(half_written(place.path()), 0);
    assert_eq!(client.asked().len(), 0);
    assert_eq!(client.told(), ["0/2 a", "1/2 deep/b", "2/2 written"]);
}

#[tokio::test]
async fn a_file_is_replaced_only_after_a_yes() {
    for (said, replaced) in [
        (answer(true), true),
        (answer(false), false),
        (json!({ "action": "decline" }), false),
        (json!({ "action": "cancel" }), false),
    ] {
        let place = place();
        let (tool, client) = (export_files(place.path()), Client::answering(said.clone()));
        let result = call(&tool, json!({ "path": "src", "to": "old.tar.gz" }), &client).await.unwrap();
        assert_eq!(result.is_error, !replaced, "{said}: {result:?}");
        let asked = client.asked();
        assert_eq!(asked.len(), 1);
        assert_eq!(asked[0]["params"]["message"], "old.tar.gz is there already (8 B). Replace it?");
        let old = place.path().join("old.tar.gz");
        match replaced {
            true => assert_eq!(contents(&old).len(), 2),
            false => assert_eq!(fs::read_to_string(&old).unwrap(), "precious"),
        }
        assert_eq!(half_written(place.path()), 0);
    }
}

#[tokio::test]
async fn a_client_that_cannot_be_asked_keeps_its_file() {
    let place = place();
    let tool = export_files(place.path());
    let said = failure(call(&tool, json!({ "path": "src", "to": "old.tar.gz" }), &Client::default()).await);
    assert!(said.contains("export to another name"), "{said}");
    assert_eq!(fs::read_to_string(place.path().join("old.tar.gz")).unwrap(), "precious");
}

#[tokio::test]
async fn an_archive_does_not_hold_itself() {
    let place = place();
    let tool = export_files(place.path());
    let client = Client::answering(answer(true));
    for _ in 0..2 {
        call(&tool, json!({ "path": ".", "to": "./src/out.tar.gz" }), &client).await.unwrap();
    }
    let held = contents(&place.path().join("src/out.tar.gz"));
    assert_eq!(held.keys().collect::<Vec<_>>(), ["old.tar.gz", "src/a", "src/deep/b"]);
}

#[tokio::test]
async fn nothing_outside_the_root_is_read_or_written() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("root");
    fs::create_dir_all(root.join("in/dir")).unwrap();
    fs::write(place.path().join("secret"), "secret").unwrap();
    fs::write(root.join("in/file"), "in").unwrap();
    symlink("../../secret", root.join("in/link")).unwrap();
    symlink("..", root.join("up")).unwrap();
    symlink("../victim", root.join("out.tar.gz")).unwrap();
    let tool = export_files(&root);
    let client = Client::answering(answer(true));
    for (path, to, text) in [
        ("..", "x", "outside the root"),
        ("in", "../x", "outside the root"),
        ("in", "/tmp/x", "outside the root"),
        ("in", "up/x", "symbolic link"),
        ("up", "x", "symbolic link"),
        ("in", "out.tar.gz", "symbolic link"),
        ("none", "x", "no such directory"),
        ("in", "none/x", "no such directory"),
        ("in/file", "x", "is not a directory"),
        ("in", "in/file/x", "is not a directory"),
        ("in", "in/dir", "where the name of a file is needed"),
        ("in", ".", "where the name of a file is needed"),
    ] {
        let said = failure(call(&tool, json!({ "path": path, "to": to }), &client).await);
        assert!(said.contains(text), "{path} to {to}: {said}");
    }
    assert!(client.asked().is_empty());
    let result = call(&tool, json!({ "path": "in", "to": "x" }), &client).await.unwrap();
    assert_eq!(structured(&tool, &result)["symlinks"], 1);
    assert_eq!(contents(&root.join("x")).keys().collect::<Vec<_>>(), ["file"]);
    let mut left: Vec<_> = fs::read_dir(place.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["root", "secret"]);
}

#[tokio::test]
async fn a_file_that_appears_meanwhile_is_left_alone() {
    let place = place();
    let appears = place.path().join("out.tar.gz");
    let watched = appears.clone();
    let client = Client::watching(move |told| {
        if told.starts_with("0/") {
            fs::write(&watched, "somebody else's").unwrap();
        }
    });
    let tool = export_files(place.path());
    let said = failure(call(&tool, json!({ "path": "src", "to": "out.tar.gz" }), &client).await);
    assert!(said.contains("was left alone"), "{said}");
    assert_eq!(fs::read_to_string(&appears).unwrap(), "somebody else's");
    assert_eq!(half_written(place.path()), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_in_the_middle_of_a_large_file_removes_the_half_written_archive() {
    let place = place();
    // It takes no space, and would take minutes.
    fs::File::create(place.path().join("src/large")).unwrap().set_len(64 << 30).unwrap();
    let tool = export_files(place.path());
    let client = Client::answering(answer(true));
    let run = tokio::spawn({
        let client = client.clone();
        async move { call(&tool, json!({ "path": "src", "to": "old.tar.gz" }), &client).await }
    });
    client.until(|told| told.contains("large (")).await;
    assert_eq!(half_written(place.path()), 1);
    run.abort();
    assert!(run.await.unwrap_err().is_cancelled());
    wait(|| half_written(place.path()) == 0).await;
    client.alone().await;
    assert_eq!(fs::read_to_string(place.path().join("old.tar.gz")).unwrap(), "precious");
}

#[tokio::test]
async fn a_panic_in_the_middle_removes_the_half_written_archive() {
    let place = place();
    let tool = export_files(place.path());
    let client = Client::watching(|told| assert!(!told.starts_with("1/"), "on purpose"));
    let run = tokio::spawn(async move { call(&tool, json!({ "path": "src", "to": "out.tar.gz" }), &client).await });
    assert!(run.await.unwrap_err().is_panic());
    assert_eq!(half_written(place.path()), 0);
}

#[tokio::test]
async fn a_file_of_another_export_that_is_not_whole_is_not_exported() {
    let place = place();
    fs::write(place.path().join(format!("src/.x{ENDING}")), "half").unwrap();
    let tool = export_files(place.path());
    call(&tool, json!({ "path": "src", "to": "out" }), &Client::default()).await.unwrap();
    assert_eq!(contents(&place.path().join("out")).keys().collect::<Vec<_>>(), ["a", "deep/b"]);
}

#[tokio::test]
async fn a_part_is_exported_only_where_a_part_was_wanted() {
    let place = place();
    let tool = export_files(place.path());
    let arguments = json!({ "path": "src", "to": "out", "max_files": 1 });
    let result = call(&tool, arguments, &Client::default()).await.unwrap();
    assert_eq!(structured(&tool, &result)["truncated"], true);
    assert_eq!(contents(&place.path().join("out")).keys().collect::<Vec<_>>(), ["a"]);
}
