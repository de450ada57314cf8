//! gRPC for operators, on one server: what is listed, shown, cancelled, watched.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tokkuri_server::cluster::proto::admin_client::AdminClient;
use tokkuri_server::cluster::proto::{
    CancelTaskRequest, DrainNodeRequest, GetMetricsRequest, GetTaskRequest, ListNodesRequest, ListTasksRequest,
    PruneRequest, Task, TaskFilter, TaskStatus, UndrainNodeRequest, WatchTasksRequest, WatchTasksResponse,
};
use tokkuri_server::cluster::{Credentials, Shown};
use tokkuri_server::config::Secret;
use tokkuri_tests::harness::client::accept;
use tokkuri_tests::harness::{DEADLINE, Server};
use tonic::{Code, Streaming};
use tonic_types::StatusExt as _;

use super::{NEVER, bed};

/// A client that shows nothing.
pub(crate) fn stranger(server: &Server) -> AdminClient<Shown> {
    admin(server, &Credentials::none())
}

/// A client that shows a token.
pub(crate) fn with_token(server: &Server, token: &str) -> AdminClient<Shown> {
    admin(server, &Credentials::none().with_token(&Secret::new(token)).unwrap())
}

pub(crate) fn admin(server: &Server, credentials: &Credentials) -> AdminClient<Shown> {
    let address = server.grpc().expect("it listens for gRPC").to_string();
    AdminClient::new(credentials.channel(&address).unwrap()).max_decoding_message_size(64 << 20)
}

fn filter(change: impl FnOnce(&mut TaskFilter)) -> Option<TaskFilter> {
    let mut filter = TaskFilter::default();
    change(&mut filter);
    Some(filter)
}

async fn listed(admin: &mut AdminClient<Shown>, filter: Option<TaskFilter>) -> BTreeSet<String> {
    let request = ListTasksRequest { filter, ..ListTasksRequest::default() };
    let page = admin.list_tasks(request).await.unwrap().into_inner();
    assert_eq!(page.next_page_token, "");
    page.tasks.into_iter().map(|task| task.id).collect()
}

fn set<const N: usize>(ids: [&String; N]) -> BTreeSet<String> {
    ids.into_iter().cloned().collect()
}

fn seconds(seconds: i64) -> Option<prost_types::Duration> {
    Some(prost_types::Duration { seconds, nanos: 0 })
}

async fn next(stream: &mut Streaming<WatchTasksResponse>) -> WatchTasksResponse {
    let next = tokio::time::timeout(DEADLINE, stream.message()).await.expect("a change within the deadline");
    next.unwrap().expect("the watch goes on")
}

/// The next change of one task.
async fn next_of(stream: &mut Streaming<WatchTasksResponse>, id: &str) -> Task {
    loop {
        let task = next(stream).await.task.expect("a change is of a task");
        if task.id == id {
            return task;
        }
    }
}

#[tokio::test]
async fn tasks_are_listed_by_status_tool_owner_node_and_age() {
    let server = bed().start();
    let (client, mut admin) = (server.near(), stranger(&server));
    let works = client.create("gate", json!({"name": "g"})).await;
    let asks = client.create("ask", json!({"message": "who?"})).await;
    let ended = client.create("slow", json!({"ms": 0})).await;
    client.wait_questions(&asks, &["ask"]).await;
    client.wait_end(&ended).await;
    let all = set([&works, &asks, &ended]);
    assert_eq!(listed(&mut admin, None).await, all);
    let statuses = |statuses: &[TaskStatus]| {
        let statuses = statuses.iter().map(|status| i32::from(*status)).collect();
        filter(|it| it.statuses = statuses)
    };
    assert_eq!(listed(&mut admin, statuses(&[TaskStatus::Working])).await, set([&works]));
    let two = [TaskStatus::InputRequired, TaskStatus::Completed];
    assert_eq!(listed(&mut admin, statuses(&two)).await, set([&asks, &ended]));
    assert_eq!(listed(&mut admin, filter(|it| it.tool = Some("ask".into()))).await, set([&asks]));
    assert_eq!(listed(&mut admin, filter(|it| it.principal = Some("nobody".into()))).await, BTreeSet::new());
    assert_eq!(listed(&mut admin, filter(|it| it.older_than = seconds(3600))).await, BTreeSet::new());
    assert_eq!(listed(&mut admin, filter(|it| it.younger_than = seconds(3600))).await, all);
    assert_eq!(listed(&mut admin, filter(|it| it.older_than = seconds(0))).await, all);

    let one = admin.get_task(GetTaskRequest { id: asks.clone(), include_payloads: false }).await.unwrap().into_inner();
    let (owner, node) = (one.owner.unwrap(), one.node_id);
    assert_eq!(listed(&mut admin, filter(|it| it.principal = Some(owner.principal))).await, all);
    assert_eq!(listed(&mut admin, filter(|it| it.node = Some(node))).await, all);
    assert_eq!(listed(&mut admin, filter(|it| it.node = Some("00000000000000ff".into()))).await, BTreeSet::new());
    let request = ListTasksRequest { filter: filter(|it| it.node = Some("no-such-node".into())), ..Default::default() };
    assert_eq!(admin.list_tasks(request).await.unwrap_err().code(), Code::NotFound);
}

#[tokio::test]
async fn pages_are_whole_and_their_tokens_are_checked() {
    let server = bed().start();
    let (client, mut admin) = (server.client(), stranger(&server));
    let mut ids = BTreeSet::new();
    for n in 0..7 {
        ids.insert(client.create(if n == 3 { "gate" } else { "slow" }, json!({"name": "g", "ms": 0})).await);
    }
    let mut request = ListTasksRequest { page_size: 3, ..ListTasksRequest::default() };
    let (mut seen, mut pages, mut token) = (Vec::new(), Vec::new(), String::new());
    loop {
        request.page_token = token;
        let page = admin.list_tasks(request.clone()).await.unwrap().into_inner();
        pages.push(page.tasks.len());
        seen.extend(page.tasks.into_iter().map(|task| task.id));
        token = page.next_page_token;
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(pages, [3, 3, 1]);
    assert_eq!(seen.len(), 7, "none twice");
    assert_eq!(seen.into_iter().collect::<BTreeSet<_>>(), ids);

    let first = admin.list_tasks(ListTasksRequest { page_size: 3, ..Default::default() }).await.unwrap().into_inner();
    let good = first.next_page_token;
    for (field, request) in [
        ("page_token", ListTasksRequest { page_token: "nonsense".into(), ..Default::default() }),
        ("page_token", ListTasksRequest { page_token: good[1..].to_owned(), ..Default::default() }),
        (
            "page_token",
            ListTasksRequest {
                page_token: good.clone(),
                filter: filter(|it| it.tool = Some("slow".into())),
                ..Default::default()
            },
        ),
        ("page_size", ListTasksRequest { page_size: 1001, ..Default::default() }),
        ("filter.statuses", ListTasksRequest { filter: filter(|it| it.statuses = vec![77]), ..Default::default() }),
        (
            "filter.older_than",
            ListTasksRequest { filter: filter(|it| it.older_than = seconds(-1)), ..Default::default() },
        ),
    ] {
        let refused = admin.list_tasks(request).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
        let violations = refused.get_details_bad_request().expect("details").field_violations;
        assert_eq!(violations[0].field, field);
    }
}

#[tokio::test]
async fn payloads_leave_only_if_asked_for() {
    let server = bed().setting("grpc.token", "s3cret").start();
    let (client, mut admin) = (server.client(), with_token(&server, "s3cret"));
    let asks = client.create("ask", json!({"message": "SECRET-QUESTION"})).await;
    client.wait_questions(&asks, &["ask"]).await;
    let plain = admin.get_task(GetTaskRequest { id: asks.clone(), include_payloads: false }).await.unwrap();
    let plain = plain.into_inner();
    assert_eq!((plain.status(), plain.open_questions.as_slice()), (TaskStatus::InputRequired, &["ask".to_owned()][..]));
    assert!(plain.payloads.is_none() && !format!("{plain:?}").contains("SECRET"));

    let ask = GetTaskRequest { id: asks.clone(), include_payloads: true };
    let payloads = admin.get_task(ask.clone()).await.unwrap().into_inner().payloads.unwrap();
    let json = |text: Option<String>| serde_json::from_str::<Value>(&text.expect("a text")).unwrap();
    assert_eq!(json(payloads.arguments_json)["message"], "SECRET-QUESTION");
    assert!(payloads.questions["ask"].request_json.contains("SECRET-QUESTION"));
    assert_eq!(payloads.questions["ask"].answer_json, None);

    client.task_update(&asks, json!({"ask": accept(json!({"name": "Ada"}))})).await.acknowledged();
    client.wait_end(&asks).await;
    let payloads = admin.get_task(ask).await.unwrap().into_inner().payloads.unwrap();
    assert_eq!(json(payloads.result_json)["content"][0]["text"], "hello Ada");
    assert!(payloads.arguments_json.is_none() && payloads.questions.is_empty(), "they ended with the task");

    let nul = client.create("nul", json!({})).await;
    let read = client.wait_end(&nul).await;
    let payloads =
        admin.get_task(GetTaskRequest { id: nul, include_payloads: true }).await.unwrap().into_inner().payloads;
    assert_eq!(payloads.unwrap().result_json.as_deref(), Some(read.raw(&["result", "result"])), "byte for byte");

    let fails = client.create("fail", json!({"code": -32050, "message": "no luck", "data": [1]})).await;
    client.wait_end(&fails).await;
    let failed = admin.get_task(GetTaskRequest { id: fails, include_payloads: true }).await.unwrap().into_inner();
    assert_eq!((failed.status(), failed.error_code), (TaskStatus::Failed, Some(-32050)));
    let fault = failed.payloads.unwrap().fault.unwrap();
    assert_eq!((fault.code, fault.message.as_str(), fault.data_json.as_deref()), (-32050, "no luck", Some("[1]")));
}

#[tokio::test]
async fn an_operator_cancels_whosever_task() {
    let server = bed().start();
    let (client, mut admin) = (server.client(), stranger(&server));
    let id = client.create("count", json!({"name": "c", "ms": 60_000})).await;
    client.wait_counter("c", |counter| counter.started == 1).await;
    let cancelled = admin.cancel_task(CancelTaskRequest { id: id.clone() }).await.unwrap().into_inner();
    assert_eq!(cancelled.status(), TaskStatus::Cancelled);
    assert_eq!(client.task_get(&id).await.task_status(), "cancelled");
    client.wait_counter("c", |counter| counter.cancelled == 1).await;
    let again = admin.cancel_task(CancelTaskRequest { id }).await.unwrap().into_inner();
    assert_eq!((again.status(), again.revision), (TaskStatus::Cancelled, cancelled.revision));

    let ended = client.create("slow", json!({"ms": 0})).await;
    client.wait_end(&ended).await;
    let late = admin.cancel_task(CancelTaskRequest { id: ended }).await.unwrap().into_inner();
    assert_eq!(late.status(), TaskStatus::Completed, "an end stays what it is");

    for id in [NEVER, "no id at all", ""] {
        let absent = admin.cancel_task(CancelTaskRequest { id: id.to_owned() }).await.unwrap_err();
        assert_eq!(absent.code(), Code::NotFound);
        assert_eq!(absent.get_details_error_info().unwrap().reason, "NO_SUCH_TASK");
    }
}

#[tokio::test]
async fn a_watch_tells_changes_in_order_and_the_end_of_each_task() {
    let server = bed().start();
    let (client, mut admin) = (server.client(), stranger(&server));
    let before = client.create("gate", json!({"name": "before"})).await;
    let request = WatchTasksRequest { filter: None, include_current: false };
    let mut changes = admin.watch_tasks(request).await.unwrap().into_inner();

    let asks = client.create("ask", json!({"message": "who?"})).await;
    let mut revision = 0;
    let mut statuses = Vec::new();
    let mut answered = false;
    loop {
        let task = next_of(&mut changes, &asks).await;
        assert!(task.revision > revision, "{} after {revision}", task.revision);
        revision = task.revision;
        let status = task.status();
        statuses.push(status);
        if status == TaskStatus::InputRequired && !answered {
            answered = true;
            client.task_update(&asks, json!({"ask": accept(json!({"name": "Ada"}))})).await.acknowledged();
        }
        if status == TaskStatus::Completed {
            break;
        }
    }
    assert!(statuses.contains(&TaskStatus::InputRequired), "{statuses:?}");

    client.task_cancel(&before).await.acknowledged();
    assert_eq!(next_of(&mut changes, &before).await.status(), TaskStatus::Cancelled);

    // A burst: whatever was taken together, every task's end is told, once, and last.
    let mut open = BTreeSet::new();
    for _ in 0..40 {
        open.insert(client.create("slow", json!({"ms": 20})).await);
    }
    let mut ended = BTreeSet::new();
    while !open.is_empty() {
        let task = next(&mut changes).await.task.unwrap();
        assert!(!ended.contains(&task.id), "a task was told of after its end");
        if task.status() == TaskStatus::Completed {
            assert!(open.remove(&task.id));
            ended.insert(task.id);
        }
    }
}

#[tokio::test]
async fn a_watch_can_begin_with_what_is_there_and_keep_to_a_filter() {
    let server = bed().start();
    let (client, mut admin) = (server.client(), stranger(&server));
    let there = client.create("gate", json!({"name": "g"})).await;
    client.create("slow", json!({"ms": 0})).await;
    let request = WatchTasksRequest { filter: filter(|it| it.tool = Some("gate".into())), include_current: true };
    let mut changes = admin.watch_tasks(request).await.unwrap().into_inner();
    let first = next(&mut changes).await;
    assert!(first.current);
    assert_eq!(first.task.unwrap().id, there);
    client.create("slow", json!({"ms": 0})).await;
    let second = client.create("gate", json!({"name": "h"})).await;
    let change = next(&mut changes).await;
    assert_eq!((change.task.unwrap().id, change.current), (second, false));
}

#[tokio::test]
async fn a_watch_ends_with_its_server_and_says_so() {
    let mut server = bed().start();
    let mut admin = stranger(&server);
    let mut changes = admin.watch_tasks(WatchTasksRequest::default()).await.unwrap().into_inner();
    server.terminate(DEADLINE).await;
    let ended = changes.message().await.unwrap_err();
    assert_eq!(ended.code(), Code::Unavailable, "{ended:?}");
}

#[tokio::test]
async fn the_node_is_listed_with_its_runs_and_can_be_drained() {
    let server = bed().setting("tasks.poll_interval_ms", 50).start();
    let (client, mut admin) = (server.near(), stranger(&server));
    client.create("gate", json!({"name": "g"})).await;
    client.wait_runs(1).await;
    let node = loop {
        let nodes = admin.list_nodes(ListNodesRequest {}).await.unwrap().into_inner().nodes;
        assert_eq!(nodes.len(), server.nodes());
        // It says so when it renews its lease.
        if let Some(node) = nodes.into_iter().find(|it| it.name == server.node() && it.runs == 1) {
            break node;
        }
        tokio::time::sleep(tokkuri_tests::harness::LOOK_AGAIN).await;
    };
    assert!(node.alive && node.answering && node.drain.is_none());
    let request = DrainNodeRequest { node: node.id.clone(), deadline: seconds(30) };
    let drained = admin.drain_node(request).await.unwrap().into_inner().node.unwrap();
    assert!(drained.drain.is_some());
    let back = admin.undrain_node(UndrainNodeRequest { node: node.id }).await.unwrap().into_inner().node.unwrap();
    assert!(back.drain.is_none());
    let unknown = admin.undrain_node(UndrainNodeRequest { node: "nowhere".into() }).await.unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);
    let known = &unknown.get_details_error_info().unwrap().metadata["known"];
    assert!(known.split(", ").any(|it| it == node.name), "{known}");
}

#[tokio::test]
async fn figures_are_summed_over_the_nodes() {
    let server = bed().start();
    let (client, mut admin) = (server.client(), stranger(&server));
    client.create("gate", json!({"name": "g"})).await;
    let nodes = admin.list_nodes(ListNodesRequest {}).await.unwrap().into_inner().nodes;
    let names: BTreeSet<String> = nodes.iter().map(|node| node.name.clone()).collect();
    let sum = admin.get_metrics(GetMetricsRequest { node: None }).await.unwrap().into_inner();
    let one = admin.get_metrics(GetMetricsRequest { node: Some(nodes[0].id.clone()) }).await.unwrap().into_inner();
    assert_eq!((sum.answered.into_iter().collect(), sum.silent), (names, vec![]));
    assert_eq!(one.answered, [nodes[0].name.clone()]);
    let names = |samples: Vec<tokkuri_server::cluster::proto::MetricSample>| {
        samples.into_iter().map(|sample| (sample.name, sample.labels)).collect::<BTreeSet<_>>()
    };
    let created = sum.samples.iter().find(|it| it.name == "tokkuri_tasks_created_total" && it.labels["tool"] == "gate");
    assert_eq!(created.expect("tasks are counted").value, 1.0);
    assert_eq!(names(sum.samples), names(one.samples));
    let unknown = admin.get_metrics(GetMetricsRequest { node: Some("nowhere".into()) }).await.unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);
}

#[tokio::test]
async fn pruning_leaves_what_has_not_expired() {
    let server = bed().start();
    let (client, mut admin) = (server.client(), stranger(&server));
    let id = client.create("slow", json!({"ms": 0})).await;
    client.wait_end(&id).await;
    assert_eq!(admin.prune(PruneRequest {}).await.unwrap().into_inner().removed, 0);
    assert_eq!(client.task_get(&id).await.task_status(), "completed");
}
