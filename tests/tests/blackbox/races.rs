//! Things that happen at once: one outcome, whichever wins.

use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokkuri_tests::harness::client::accept;
use tokkuri_tests::harness::{Client, Store};

use super::bed;

const AT_ONCE: u64 = 8;

/// A round takes longer on several nodes.
fn rounds() -> u64 {
    if Store::from_env() == Store::Cluster { 250 } else { 1000 }
}

/// H05: completion and cancel released together.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_completion_and_a_cancel_that_race_leave_one_outcome() {
    let server = bed().start();
    let mut lanes = JoinSet::new();
    for lane in 0..AT_ONCE {
        // A connection pool each, so that the two requests of a round do not queue behind other rounds.
        let client = server.client();
        lanes.spawn(async move {
            let mut cancelled = 0;
            for round in (lane..rounds()).step_by(AT_ONCE as usize) {
                cancelled += u64::from(one_outcome(&client, round).await);
            }
            cancelled
        });
    }
    let cancelled: u64 = lanes.join_all().await.iter().sum();
    assert!(cancelled > 0 && cancelled < rounds(), "both outcomes have to occur: {cancelled} were cancelled");
    server.client().wait_runs(0).await;
}

/// One round; whether the cancel won.
async fn one_outcome(client: &Client, round: u64) -> bool {
    let gate = format!("g{round}");
    let id = client.create("gate", json!({"name": gate})).await;
    // From "the cancel is first" to "the completion is first".
    let (head_start, late) = match round % 8 {
        n @ 0..4 => (Duration::from_millis(n), Duration::ZERO),
        n => (Duration::ZERO, Duration::from_millis(8 * (n - 4))),
    };
    let open = async {
        sleep(head_start).await;
        client.open(&gate).await;
    };
    let cancel = async {
        sleep(late).await;
        client.task_cancel(&id).await
    };
    let ((), ack) = tokio::join!(open, cancel);
    ack.acknowledged();
    let first = client.task_get(&id).await;
    let status = first.task_status();
    assert!(
        matches!(status, "cancelled" | "completed"),
        "a cancel that was acknowledged has ended the task: {}",
        first.body
    );

    let (one, two) = tokio::join!(client.task_cancel(&id), client.task_cancel(&id));
    one.acknowledged();
    two.acknowledged();
    for _ in 0..2 {
        let again = client.task_get(&id).await;
        assert_eq!(again.raw(&["result"]), first.raw(&["result"]), "round {round}");
    }
    status == "cancelled"
}

/// H05: two cancels at once.
#[tokio::test]
async fn two_cancels_at_once_are_one() {
    let server = bed().start();
    let client = server.client();
    for _ in 0..50 {
        let id = client.create("slow", json!({"ms": 60_000})).await;
        let (one, two) = tokio::join!(client.task_cancel(&id), client.task_cancel(&id));
        one.acknowledged();
        two.acknowledged();
        let first = client.task_get(&id).await;
        assert_eq!(first.task_status(), "cancelled");
        assert_eq!(client.task_get(&id).await.raw(&["result"]), first.raw(&["result"]));
    }
    client.wait_runs(0).await;
}

/// H09: two answers to one key at once.
#[tokio::test]
async fn of_two_answers_at_once_one_wins_and_both_are_acknowledged() {
    let server = bed().start();
    let client = server.client();
    for _ in 0..50 {
        let id = client.create("ask_many", json!({"n": 2, "parallel": true})).await;
        client.wait_questions(&id, &["q1", "q2"]).await;
        let (one, two) = tokio::join!(
            client.task_update(&id, json!({"q1": accept(json!({"name": "one"}))})),
            client.task_update(&id, json!({"q1": accept(json!({"name": "two"}))})),
        );
        one.acknowledged();
        two.acknowledged();
        assert_eq!(client.task_get(&id).await.questions(), ["q2"]);
        client.task_update(&id, json!({"q2": accept(json!({"name": "last"}))})).await.acknowledged();
        let ended = client.wait_end(&id).await;
        assert!(["one,last", "two,last"].contains(&ended.task_text()), "{}", ended.body);
    }
}

/// H10: answers that come as soon as a question can be read, while the tool may not wait yet. The node does not look at the
/// store by itself here: a wake-up that was lost stays lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_wake_up_is_lost_between_the_question_and_the_wait() {
    let server = bed().setting("tasks.poll_interval_ms", 600_000).start();
    let mut lanes = JoinSet::new();
    for _ in 0..4 {
        let client = server.client();
        lanes.spawn(async move {
            for _ in 0..10 {
                let id = client.create("ask_many", json!({"n": 10, "parallel": false})).await;
                for n in 1..=10 {
                    let key = format!("q{n}");
                    // No pause between looks: the answer has to come early.
                    while client.task_get(&id).await.questions() != [key.as_str()] {}
                    client.task_update(&id, json!({key: accept(json!({"name": n.to_string()}))})).await.acknowledged();
                }
                assert_eq!(client.wait_end(&id).await.task_text(), "1,2,3,4,5,6,7,8,9,10");
            }
        });
    }
    lanes.join_all().await;
}

/// H10, held between "question stored" and "tool waits".
#[tokio::test]
async fn an_answer_that_comes_before_the_tool_waits_is_not_lost() {
    let server = bed().setting("tasks.poll_interval_ms", 600_000).start();
    let client = server.client();
    client.hold("after_ask_write").await;
    let id = client.create("ask", json!({"message": "Who?"})).await;
    client.wait_held("after_ask_write").await;
    client.wait_questions(&id, &["ask"]).await;
    client.task_update(&id, json!({"ask": accept(json!({"name": "Ada"}))})).await.acknowledged();
    assert_eq!(client.task_get(&id).await.task_status(), "working");
    client.release("after_ask_write").await;
    assert_eq!(client.wait_end(&id).await.task_text(), "hello Ada");
}

/// H10, held there while the task is cancelled.
#[tokio::test]
async fn a_cancel_that_comes_before_the_tool_waits_is_not_lost() {
    let server = bed().setting("tasks.poll_interval_ms", 600_000).start();
    let client = server.client();
    for point in ["before_ask_write", "after_ask_write"] {
        client.hold(point).await;
        let id = client.create("ask", json!({"message": "Who?"})).await;
        client.wait_held(point).await;
        client.task_cancel(&id).await.acknowledged();
        client.release(point).await;
        client.wait_runs(0).await;
        let read = client.task_get(&id).await;
        assert_eq!((read.task_status(), read.questions().len()), ("cancelled", 0), "{}", read.body);
    }
}

/// H10, held just before the second question is stored: until then there is nothing to answer.
#[tokio::test]
async fn what_is_said_before_a_question_is_no_answer_to_it() {
    let server = bed().setting("tasks.poll_interval_ms", 600_000).start();
    let client = server.client();
    let id = client.create("ask_many", json!({"n": 2, "parallel": false})).await;
    client.wait_questions(&id, &["q1"]).await;
    client.hold_task("before_ask_write", &id).await;
    client.task_update(&id, json!({"q1": accept(json!({"name": "a"}))})).await.acknowledged();
    client.wait_held("before_ask_write").await;
    let early = json!({"q1": accept(json!({"name": "again"})), "q2": accept(json!({"name": "early"}))});
    client.task_update(&id, early).await.acknowledged();
    let read = client.task_get(&id).await;
    assert_eq!((read.task_status(), read.questions().len()), ("working", 0), "{}", read.body);
    client.release("before_ask_write").await;
    let asked = client.wait_questions(&id, &["q2"]).await;
    for _ in 0..20 {
        assert_eq!(client.task_get(&id).await.raw(&["result"]), asked.raw(&["result"]));
    }
    client.task_update(&id, json!({"q2": accept(json!({"name": "b"}))})).await.acknowledged();
    assert_eq!(client.wait_end(&id).await.task_text(), "a,b");
}

/// H10: a question asked right after an answer.
#[tokio::test]
async fn no_wake_up_is_stale() {
    let server = bed().setting("tasks.poll_interval_ms", 50).start();
    let client = server.client();
    let id = client.create("ask_many", json!({"n": 2, "parallel": false})).await;
    client.wait_questions(&id, &["q1"]).await;
    client.task_update(&id, json!({"q1": accept(json!({"name": "a"}))})).await.acknowledged();
    let asked = client.wait_questions(&id, &["q2"]).await;
    // Twenty poll intervals in which nothing may happen.
    for _ in 0..100 {
        assert_eq!(client.task_get(&id).await.raw(&["result"]), asked.raw(&["result"]));
        sleep(Duration::from_millis(10)).await;
    }
    client.task_update(&id, json!({"q2": accept(json!({"name": "b"}))})).await.acknowledged();
    assert_eq!(client.wait_end(&id).await.task_text(), "a,b");
}

/// A cancel and an answer at once: the task is cancelled, whatever the answer did.
#[tokio::test]
async fn a_cancel_wins_over_an_answer() {
    let server = bed().start();
    let client = server.client();
    for _ in 0..50 {
        let id = client.create("ask_many", json!({"n": 2, "parallel": false})).await;
        client.wait_questions(&id, &["q1"]).await;
        let answer = json!({"q1": accept(json!({"name": "a"}))});
        let (answered, cancelled) = tokio::join!(client.task_update(&id, answer), client.task_cancel(&id));
        answered.acknowledged();
        cancelled.acknowledged();
        let read = client.task_get(&id).await;
        assert_eq!(read.task_status(), "cancelled");
        assert_eq!(client.task_get(&id).await.raw(&["result"]), read.raw(&["result"]));
    }
    client.wait_runs(0).await;
}
