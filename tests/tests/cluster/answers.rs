//! H09 at nodes that do not own the run.

use serde_json::json;
use tokkuri_tests::harness::client::accept;

use super::all_ways;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_at_other_nodes_reach_the_run_and_the_first_wins() {
    for (how, options) in all_ways() {
        let cluster = options.start(3);
        let [a, b, c] = [0, 1, 2].map(|node| cluster.client(node));
        for _ in 0..5 {
            let id = a.create("ask_many", json!({"n": 2, "parallel": true})).await;
            b.wait_questions(&id, &["q1", "q2"]).await;
            b.task_update(&id, json!({"q1": accept(json!({"name": "yes"}))})).await.acknowledged();
            c.task_update(&id, json!({"q1": accept(json!({"name": "no"}))})).await.acknowledged();
            for client in [&a, &b, &c] {
                assert_eq!(client.task_get(&id).await.questions(), ["q2"], "{how}");
            }
            b.task_update(&id, json!({"q2": accept(json!({"name": "ok"}))})).await.acknowledged();
            assert_eq!(c.wait_end(&id).await.task_text(), "yes,ok", "{how}");

            let id = a.create("ask_many", json!({"n": 2, "parallel": true})).await;
            c.wait_questions(&id, &["q1", "q2"]).await;
            let (one, two) = tokio::join!(
                b.task_update(&id, json!({"q1": accept(json!({"name": "one"}))})),
                c.task_update(&id, json!({"q1": accept(json!({"name": "two"}))})),
            );
            one.acknowledged();
            two.acknowledged();
            assert_eq!(a.task_get(&id).await.questions(), ["q2"], "{how}");
            c.task_update(&id, json!({"q2": accept(json!({"name": "last"}))})).await.acknowledged();
            let ended = b.wait_end(&id).await;
            assert!(["one,last", "two,last"].contains(&ended.task_text()), "{how}: {}", ended.body);
        }
        a.wait_runs(0).await;
    }
}
