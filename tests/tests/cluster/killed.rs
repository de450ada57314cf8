//! kill -9 of the owner between any two of its steps: a task that waits for a place, one that is stored and not begun, about to ask,
//! about to end, told of a cancel or an answer and not yet aware of it. `lost` has those that work and that ask.

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokkuri_tests::harness::client::accept;
use tokkuri_tests::harness::raw::Connection;
use tokkuri_tests::harness::{Client, Cluster, Reply};

use super::WAITING;
use super::lost::{counted, short_lease, was_lost};

/// Whether the store has no task that lives.
fn nothing_lives(cluster: &Cluster, at: usize) {
    let live = cluster.admin_json(at, &["tasks", "--all", "--status", "working,input_required"]);
    assert_eq!(live, json!([]));
}

/// Waits until this attempt of the task is stored.
async fn is_attempt(cluster: &Cluster, at: usize, id: &str, attempt: u32) {
    let read = |_: &Reply| cluster.admin_json(at, &["task", id])["attempt"] == attempt;
    cluster.client(at).wait(id, &format!("attempt {attempt}"), read).await;
}

async fn answer(client: &Client, id: &str, key: &str, name: &str) {
    client.task_update(id, json!({key: accept(json!({"name": name}))})).await.acknowledged();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_for_a_place_on_a_node_that_is_killed_ends_or_runs_elsewhere() {
    let mut cluster = short_lease().setting("tasks.max_runs", 1).start(2);
    let (a, b) = (cluster.client(0), cluster.client(1));
    // The survivor has no place either for what it will take over: that waits once more.
    let busy = b.create("gate", json!({"name": "g"})).await;
    let runs = a.create("restartable", json!({"name": "runs", "ms": 600_000})).await;
    a.wait_counter("runs", |counter| counter.started == 1).await;
    let mut waits = Vec::new();
    for n in 0..3 {
        waits.push(a.create("restartable", json!({"name": "waits", "ms": n})).await);
    }
    let mut once = Vec::new();
    for n in 0..3 {
        once.push(a.create("count", json!({"name": "once", "ms": n})).await);
    }
    let stopped = a.create("restartable", json!({"name": "waits", "ms": 0})).await;
    for id in waits.iter().chain(&once) {
        assert_eq!(b.task_get(id).await.result()["statusMessage"], WAITING);
    }
    b.task_cancel(&stopped).await.acknowledged();
    let cancelled = b.task_get(&stopped).await;

    cluster.kill(0).await;
    // Nobody but the dead node knew that these had not begun.
    for id in &once {
        was_lost(&b.wait_end(id).await);
    }
    for id in waits.iter().chain([&runs]) {
        is_attempt(&cluster, 1, id, 2).await;
        b.wait(id, "its turn to wait", |reply| reply.result()["statusMessage"] == WAITING).await;
    }
    assert_eq!(counted(&cluster, "waits").await, (0, 0), "they wait");
    b.task_cancel(&runs).await.acknowledged();
    b.open("g").await;
    assert_eq!(b.wait_end(&busy).await.task_status(), "completed");
    for id in &waits {
        assert_eq!(b.wait_end(id).await.task_text(), "counted");
    }
    assert_eq!(counted(&cluster, "waits").await, (3, 3), "each once");
    assert_eq!(counted(&cluster, "once").await, (0, 0));
    assert_eq!(counted(&cluster, "runs").await, (0, 0), "it was cancelled while it waited");
    assert_eq!(b.task_get(&stopped).await.raw(&["result"]), cancelled.raw(&["result"]));
    nothing_lives(&cluster, 1);
    b.wait_runs(0).await;
}

/// One heir after the other is killed while the tasks wait there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_that_is_inherited_twice_is_worked_off_once() {
    let mut cluster = short_lease().setting("tasks.max_runs", 1).start(2);
    let mut busy = Vec::new();
    let take_the_place = async |client: &Client| {
        let id = client.create("gate", json!({"name": "g"})).await;
        client.wait_runs(1).await;
        id
    };
    for node in 0..2 {
        busy.push(take_the_place(&cluster.client(node)).await);
    }
    let mut waits = Vec::new();
    for n in 0..4 {
        waits.push(cluster.client(0).create("restartable", json!({"name": "waits", "ms": n})).await);
    }
    for (node, heir, attempt) in [(0, 1, 2), (1, 0, 3)] {
        cluster.kill(node).await;
        for id in &waits {
            is_attempt(&cluster, heir, id, attempt).await;
        }
        cluster.start(node);
        if node == 0 {
            busy.push(take_the_place(&cluster.client(node)).await);
        }
    }
    let (a, b) = (cluster.client(0), cluster.client(1));
    assert_eq!(counted(&cluster, "waits").await, (0, 0), "they wait");
    a.open("g").await;
    for id in &waits {
        assert_eq!(b.wait_end(id).await.task_text(), "counted");
    }
    assert_eq!(counted(&cluster, "waits").await, (4, 4), "each once");
    let [first, second, third] = [0, 1, 2].map(|n: usize| busy[n].clone());
    for lost in [first, second] {
        was_lost(&b.task_get(&lost).await);
    }
    assert_eq!(b.wait_end(&third).await.task_status(), "completed");
    nothing_lives(&cluster, 1);
}

/// The points are those at which the test bed can hold a node.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_killed_between_two_steps_leaves_no_half_of_one() {
    let mut cluster = short_lease().start(2);
    let (a, b) = (cluster.client(0), cluster.client(1));
    let held = async |point: &str, tool: &str, arguments: Value| {
        let before = a.held(point).await;
        a.hold(point).await;
        let id = a.create(tool, arguments).await;
        a.wait_held_by(point, before + 1).await;
        id
    };
    // It has ended, and nobody has heard of it.
    let ended = held("before_end_write", "count", json!({"name": "ended", "ms": 0})).await;
    let ended_again = held("before_end_write", "restartable", json!({"name": "ended again", "ms": 0})).await;
    for name in ["ended", "ended again"] {
        assert_eq!(a.counter(name).await.finished, 1);
    }
    // It is about to ask, or has asked and waits for no answer yet.
    let asks = held("before_ask_write", "ask", json!({"message": "Who?"})).await;
    let asks_again = held("before_ask_write", "restartable_ask", json!({"name": "asks", "n": 1})).await;
    let asked = held("after_ask_write", "restartable_ask", json!({"name": "asked", "n": 1})).await;
    answer(&b, &asked, "q1", "Ada").await;
    for id in [&asks, &asks_again] {
        assert!(b.task_get(id).await.questions().is_empty(), "it is not asked yet");
    }
    // They are stored, and neither begun nor answered for.
    let mut unanswered = Vec::new();
    for (n, (tool, name)) in [("count", "unbegun"), ("restartable", "unbegun again")].into_iter().enumerate() {
        a.hold("before_register").await;
        let mut connection = Connection::open(cluster.node(0).http()).await;
        connection.write(&a.tool(tool, json!({"name": name, "ms": 0})).to_http()).await;
        a.wait_held_by("before_register", n as u64 + 1).await;
        unanswered.push(connection);
    }

    cluster.kill(0).await;
    for id in [&ended, &asks] {
        was_lost(&b.wait_end(id).await);
    }
    assert_eq!(b.wait_end(&ended_again).await.task_text(), "counted");
    b.wait_questions(&asks_again, &["q1"]).await;
    answer(&b, &asks_again, "q1", "Bob").await;
    assert_eq!(b.wait_end(&asks_again).await.task_text(), "Bob");
    assert_eq!(b.wait_end(&asked).await.task_text(), "Ada", "what was answered is not asked again");
    b.wait_counter("unbegun again", |counter| counter.finished == 1).await;
    for (name, times) in
        [("ended again", 1), ("asks", 1), ("asked", 1), ("unbegun again", 1), ("ended", 0), ("unbegun", 0)]
    {
        assert_eq!(counted(&cluster, name).await, (times, times), "{name}");
    }
    b.wait_runs(0).await;
    nothing_lives(&cluster, 1);
}

/// It stands still while others are told that a cancel or an answer is taken, and never gets to know.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_before_the_owner_heard_of_it_outlives_the_owner() {
    let mut cluster = short_lease().start(2);
    let (a, b) = (cluster.client(0), cluster.client(1));
    // Under way: acknowledged, and its run takes its time.
    let stubborn = a.create("stubborn", json!({"ms": 9_000})).await;
    a.wait_runs(1).await;
    b.task_cancel(&stubborn).await.acknowledged();
    let cancelled = a.create("restartable", json!({"name": "cancelled", "ms": 600_000})).await;
    a.wait_counter("cancelled", |counter| counter.started == 1).await;
    let asking = a.create("restartable_ask", json!({"name": "asking", "n": 2})).await;
    let dismissed = a.create("restartable_ask", json!({"name": "dismissed", "n": 1})).await;
    for id in [&asking, &dismissed] {
        b.wait_questions(id, &["q1"]).await;
    }

    cluster.freeze(0);
    b.task_cancel(&cancelled).await.acknowledged();
    answer(&b, &asking, "q1", "Ada").await;
    answer(&b, &dismissed, "q1", "Bob").await;
    b.task_cancel(&dismissed).await.acknowledged();
    let before = [&stubborn, &cancelled, &dismissed];
    let mut ends = Vec::new();
    for id in before {
        let read = b.task_get(id).await;
        assert_eq!(read.task_status(), "cancelled");
        ends.push(read);
    }
    cluster.kill(0).await;

    b.wait_questions(&asking, &["q2"]).await;
    answer(&b, &asking, "q2", "Cy").await;
    assert_eq!(b.wait_end(&asking).await.task_text(), "Ada,Cy");
    // All of the lost node's were looked at by then.
    for (id, end) in before.into_iter().zip(&ends) {
        assert_eq!(b.task_get(id).await.raw(&["result"]), end.raw(&["result"]));
    }
    for name in ["cancelled", "dismissed"] {
        assert_eq!(counted(&cluster, name).await, (0, 0), "{name}");
    }
    b.wait_runs(0).await;
    nothing_lives(&cluster, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_that_races_with_a_cancel_leaves_one_outcome() {
    let mut cluster = short_lease().start(3);
    for round in 0..3 {
        let [a, b, c] = [0, 1, 2].map(|node| cluster.client(node));
        let name = format!("r{round}");
        let mut tasks = Vec::new();
        for tool in ["restartable", "count"] {
            tasks.push(a.create(tool, json!({"name": name, "ms": 600_000})).await);
        }
        let lost = a.create("slow", json!({"ms": 600_000})).await;
        a.wait_counter(&name, |counter| counter.started == 2).await;
        let cancels = join_all(tasks.iter().map(|id| b.task_cancel(id)));
        let (cancelled, ()) = tokio::join!(cancels, cluster.kill(0));
        for reply in cancelled {
            reply.acknowledged();
        }
        // By then the dead node's tasks are swept.
        was_lost(&c.wait_end(&lost).await);
        for id in &tasks {
            for client in [&b, &c] {
                assert_eq!(client.task_get(id).await.task_status(), "cancelled");
            }
        }
        assert_eq!(counted(&cluster, &name).await, (0, 0));
        nothing_lives(&cluster, 1);
        cluster.start(0);
    }
}
