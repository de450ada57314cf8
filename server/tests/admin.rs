//! `tokkuri admin` against `tokkuri serve`: what is printed, and with which exit code.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

struct Serving {
    child: Child,
    directory: TempDir,
    http: String,
    grpc: String,
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn tokkuri() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tokkuri"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("TOKKURI_") {
            command.env_remove(name);
        }
    }
    command.stdin(Stdio::null());
    command
}

impl Serving {
    fn start(token: Option<&str>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut command = tokkuri();
        command.args([
            "serve",
            "--http",
            "127.0.0.1:0",
            "--grpc",
            "127.0.0.1:0",
            "--admin",
            "off",
            "--store",
            "memory",
        ]);
        command.envs(token.map(|token| ("TOKKURI_GRPC_TOKEN", token)));
        let mut child =
            command.current_dir(directory.path()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let field = |name: &str| line.split(' ').find_map(|field| field.strip_prefix(name)).unwrap().to_owned();
        Self { http: field("http="), grpc: field("grpc="), child, directory }
    }

    /// A task that waits for an answer.
    fn task(&self) -> String {
        let url = format!("http://{}/mcp", self.http);
        let output = tokkuri().args(["call", "ask_name", "--url", &url, "--detach"]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let id = text(&output).trim().to_owned();
        self.until(&["admin", "tasks", "--status", "input_required"], &id);
        id
    }

    fn run(&self, words: &[&str], token: Option<&str>) -> Output {
        let mut command = tokkuri();
        command.args(words).args(["--grpc", &self.grpc]).current_dir(self.directory.path());
        command.envs(token.map(|token| ("TOKKURI_GRPC_TOKEN", token))).output().unwrap()
    }

    fn ok(&self, words: &[&str]) -> String {
        let output = self.run(words, None);
        assert!(output.status.success(), "{words:?}: {output:?}");
        text(&output)
    }

    /// Runs it until it prints `says`.
    fn until(&self, words: &[&str], says: &str) {
        for _ in 0..500 {
            if self.ok(words).contains(says) {
                return;
            }
        }
        panic!("{words:?} never said {says}");
    }

    fn fails(&self, words: &[&str], token: Option<&str>, code: i32, says: &[&str]) {
        let output = self.run(words, token);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
        assert!(says.iter().all(|word| said.contains(word)), "{words:?}: {said}");
        assert_eq!(said.lines().count(), 1, "one line: {said}");
    }
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn tables_are_for_people_and_json_for_programs() {
    let serving = Serving::start(None);
    let id = serving.task();
    let table = serving.ok(&["admin", "tasks"]);
    assert!(table.starts_with("ID ") && table.contains(&id) && table.contains("input_required"), "{table}");
    let tasks = json(&serving.ok(&["admin", "tasks", "-o", "json"]));
    assert_eq!((&tasks[0]["taskId"], &tasks[0]["openQuestions"][0]), (&Value::from(&*id), &"name".into()));
    let task = json(&serving.ok(&["admin", "task", &id, "-o", "json"]));
    assert_eq!((&task["status"], task.get("arguments")), (&"input_required".into(), None));
    assert!(serving.ok(&["admin", "task", &id]).contains("waits for   name"));
    let nodes = json(&serving.ok(&["admin", "nodes", "-o", "json"]));
    assert_eq!((&nodes[0]["alive"], &nodes[0]["answering"]), (&true.into(), &true.into()));
    assert!(serving.ok(&["admin", "nodes"]).contains("alive"));
    let node = nodes[0]["id"].as_str().unwrap().to_owned();
    assert!(json(&serving.ok(&["admin", "drain", &node, "-o", "json"]))["drain"].is_string());
    assert!(serving.ok(&["admin", "undrain", &node]).contains("takes runs"));
    assert!(json(&serving.ok(&["admin", "metrics", "-o", "json"]))["samples"].is_array());
    assert_eq!(serving.ok(&["admin", "cancel", &id]), "cancelled\n");
    assert_eq!(json(&serving.ok(&["admin", "prune", "-o", "json"])), serde_json::json!({ "removed": 0 }));
}

#[test]
fn a_watch_in_a_pipe_is_a_line_for_every_change() {
    let serving = Serving::start(None);
    let id = serving.task();
    let mut command = tokkuri();
    command.args(["admin", "watch", "--current", "-o", "json", "--grpc", &serving.grpc]);
    let mut watch = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let first = json(&lines.next().unwrap().unwrap());
    assert_eq!((&first["taskId"], &first["status"]), (&Value::from(&*id), &"input_required".into()));
    serving.ok(&["admin", "cancel", &id]);
    let second = json(&lines.next().unwrap().unwrap());
    assert_eq!((&second["taskId"], &second["status"]), (&Value::from(&*id), &"cancelled".into()));
    watch.kill().unwrap();
    watch.wait().unwrap();
}

#[test]
fn a_drain_can_be_waited_for_until_nothing_runs_there() {
    let serving = Serving::start(None);
    let id = serving.task();
    let name = json(&serving.ok(&["admin", "nodes", "-o", "json"]))[0]["name"].as_str().unwrap().to_owned();
    let mut waiting = tokkuri();
    waiting.args(["admin", "drain", &name, "--wait", "--grpc", &serving.grpc]);
    let mut waiting = waiting.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut told = BufReader::new(waiting.stderr.take().unwrap()).lines();
    // As many as there were when its lease was renewed last: at first there may have been none.
    let runs = told.find(|line| line.as_ref().unwrap().contains("drains: 1 run there, 0 wait"));
    assert!(runs.is_some(), "the wait was over with a run alive");
    assert!(serving.ok(&["admin", "nodes"]).contains("draining, hands over in"));
    serving.ok(&["admin", "cancel", &id]);
    let output = waiting.wait_with_output().unwrap();
    assert!(output.status.success() && text(&output).contains("is drained: it can be stopped"), "{output:?}");
    assert!(serving.ok(&["admin", "nodes"]).contains(" drained "));
    assert_eq!(json(&serving.ok(&["admin", "drain", &name, "--wait", "-o", "json"]))["drained"], true);
}

#[test]
fn a_wait_for_a_drain_ends_when_the_drain_does() {
    let serving = Serving::start(None);
    serving.task();
    let name = json(&serving.ok(&["admin", "nodes", "-o", "json"]))[0]["name"].as_str().unwrap().to_owned();
    let mut waiting = tokkuri();
    waiting.args(["admin", "drain", &name, "--wait", "--grpc", &serving.grpc]);
    let mut waiting = waiting.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut told = BufReader::new(waiting.stderr.take().unwrap()).lines();
    assert!(told.next().unwrap().unwrap().contains("drains"));
    serving.ok(&["admin", "undrain", &name]);
    let why = told.last().unwrap().unwrap();
    assert!(why.contains("take runs again"), "{why}");
    assert_eq!(waiting.wait().unwrap().code(), Some(1));
}

#[test]
fn a_reader_that_has_had_enough_is_no_error() {
    let serving = Serving::start(None);
    let mut metrics = tokkuri();
    metrics.args(["admin", "metrics", "--grpc", &serving.grpc]);
    let mut metrics = metrics.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(metrics.stdout.take());
    let output = metrics.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

#[test]
fn what_fails_says_what_to_do() {
    let serving = Serving::start(Some("s3cret"));
    serving.fails(&["admin", "nodes"], None, 4, &["wants a token", "TOKKURI_GRPC_TOKEN"]);
    serving.fails(&["admin", "nodes"], Some("other"), 4, &["does not know this token"]);
    serving.fails(&["admin", "drain", "nowhere"], Some("s3cret"), 4, &["no node \"nowhere\"", "there are:"]);
    serving.fails(&["admin", "task", "nope"], Some("s3cret"), 4, &["no task \"nope\"", "tokkuri admin tasks"]);
    let output = tokkuri().args(["admin", "nodes", "--grpc", "127.0.0.1:1"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("127.0.0.1:1 cannot be reached") && said.contains("tokkuri serve"), "{said}");
    for wrong in [&["--grpc", "nonsense"][..], &["--ca", "missing.pem"], &["--token", "a\nb"]] {
        let output = tokkuri().args(["admin", "nodes"]).args(wrong).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{wrong:?}: {output:?}");
    }
    let payloads = Serving::start(None);
    let id = payloads.task();
    payloads.fails(&["admin", "task", &id, "--payloads"], None, 4, &["grpc.token"]);
}
