use std::collections::BTreeMap;

use tokkuri_core::id::{Attempt, NodeId, TaskId};
use tokkuri_core::procedure::{After, Seen};
use tokkuri_core::store::{Answer, Outcome, Unavailable};
use tokkuri_core::task::Effect;
use tokkuri_core::time::Millis;

use super::meters::{Kind, METRICS};
use super::*;
use crate::store::Reply;

/// Name, kind and labels of every metric, as the table in the module's documentation has them.
fn documented() -> BTreeMap<String, (String, Vec<String>)> {
    let rows = include_str!("../telemetry.rs").lines().filter_map(|line| line.strip_prefix("//! | `tokkuri_"));
    rows.map(|row| {
        let mut cells = row.split('|').map(str::trim);
        let name = format!("tokkuri_{}", cells.next().unwrap().trim_end_matches('`'));
        let kind = cells.next().unwrap().to_owned();
        let mut labels: Vec<_> =
            cells.next().unwrap().split(", ").filter(|l| !l.is_empty()).map(str::to_owned).collect();
        labels.sort();
        assert!(cells.next().unwrap().ends_with('.'), "{name} has a meaning");
        (name, (kind, labels))
    })
    .collect()
}

/// The same, as they are registered.
fn registered(metrics: &Metrics) -> BTreeMap<String, (String, Vec<String>)> {
    let text = metrics.render();
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let types: BTreeMap<_, _> = types.collect();
    let samples = metrics.samples();
    let labels = |name: &str| {
        let base = |sample: &Sample| {
            let whole = sample.name == name;
            whole || ["_bucket", "_sum", "_count"].iter().any(|end| sample.name.strip_suffix(end) == Some(name))
        };
        let mut labels: Vec<_> = samples
            .iter()
            .filter(|sample| base(sample))
            .flat_map(|sample| sample.labels.iter().map(|(name, _)| name.clone()))
            .filter(|label| label != "le")
            .collect();
        labels.sort();
        labels.dedup();
        labels
    };
    types.into_iter().map(|(name, kind)| (name.to_owned(), (kind.to_owned(), labels(name)))).collect()
}

#[test]
fn the_list_in_the_documentation_is_what_there_is() {
    let metrics = Metrics::new();
    let _meters = metrics.meters(["a"]);
    assert_eq!(documented(), registered(&metrics));
    for (name, kind, help) in METRICS {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        assert_eq!(documented()[*name].0, kind, "{name}");
        assert!(metrics.render().contains(&format!("# HELP {name} {help}\n")), "{name}");
        assert_eq!(name.ends_with("_total"), kind == "counter", "{name}");
    }
}

#[test]
fn servers_in_one_process_count_by_themselves() {
    let (one, other) = (Metrics::new(), Metrics::new());
    let (counting, _idle) = (one.meters([]), other.meters([]));
    counting.quota_refusals.increment(2);
    assert_eq!(value(&one, "tokkuri_quota_refusals_total", &[]), 2.0);
    assert_eq!(value(&other, "tokkuri_quota_refusals_total", &[]), 0.0);
}

#[test]
fn a_recorder_of_the_applications_is_told_the_same() {
    let theirs = PrometheusBuilder::new().build_recorder();
    let read = theirs.handle();
    let metrics = Metrics::new().also_to(theirs);
    let meters = metrics.meters(["a"]);
    meters.quota_refusals.increment(3);
    meters.streams_open.set(4.0);
    meters.store_took(StoreRequest::Load, std::time::Duration::from_millis(2));
    let text = read.render();
    assert!(text.contains("tokkuri_quota_refusals_total 3\n") && text.contains("tokkuri_streams_open 4\n"), "{text}");
    assert_eq!(value(&metrics, "tokkuri_streams_open", &[]), 4.0);
    assert_eq!(value(&metrics, "tokkuri_store_request_duration_seconds_count", &[("request", "load")]), 1.0);
}

#[test]
fn the_recorder_of_the_process_is_the_one_at_the_time_when_a_server_is_built() {
    let theirs = PrometheusBuilder::new().build_recorder();
    let read = theirs.handle();
    let metrics = Metrics::new().also_to(GlobalRecorder);
    let meters = ::metrics::with_local_recorder(&theirs, || metrics.meters([]));
    meters.quota_refusals.increment(5);
    assert!(read.render().contains("# HELP tokkuri_quota_refusals_total "));
    assert!(read.render().contains("tokkuri_quota_refusals_total 5\n"));
    assert_eq!(value(&metrics, "tokkuri_quota_refusals_total", &[]), 5.0);
}

#[test]
fn gauges_are_set_before_they_are_read() {
    let metrics = Metrics::new();
    let queued = metrics.meters([]).runs_queued;
    metrics.before_reading(move || queued.set(7.0));
    assert_eq!(value(&metrics, "tokkuri_runs_queued", &[]), 7.0);
}

#[test]
fn a_row_that_is_removed_has_expired_live_or_ended() {
    let metrics = Metrics::new();
    let meters = metrics.meters([]);
    let gone = |effects| After { id: TaskId::from_bytes([1; 18]), seen: Seen::Gone, effects };
    let told = Effect::Signal { node: NodeId(1), attempt: Attempt::FIRST };
    meters.stored(&gone(vec![Effect::Publish]));
    meters.stored(&gone(vec![Effect::Publish, told.clone()]));
    meters.stored(&gone(vec![Effect::Publish, told]));
    // A run that finds its task gone has removed nothing.
    meters.stored(&gone(Vec::new()));
    assert_eq!(value(&metrics, "tokkuri_tasks_expired_total", &[("was", "ended")]), 1.0);
    assert_eq!(value(&metrics, "tokkuri_tasks_expired_total", &[("was", "live")]), 2.0);
}

#[tokio::test]
async fn what_the_store_answers_is_counted_by_kind() {
    let metrics = Metrics::new();
    let meters = metrics.meters([]);
    let unavailable = Unavailable { why: "gone".into(), maybe_done: true };
    let answers = [
        (StoreRequest::Commit, Outcome::Conflict),
        (StoreRequest::Commit, Outcome::Committed),
        (StoreRequest::Commit, Outcome::Unavailable(unavailable)),
        (StoreRequest::Insert, Outcome::AtTheLimit),
        (StoreRequest::Renew, Outcome::Leased { until: Millis(2), drain: None }),
    ];
    for (n, (request, outcome)) in answers.into_iter().enumerate() {
        let answer = Answer { now: Millis(1), outcome };
        let reply = match n % 2 {
            0 => Reply::Now(answer.clone()),
            _ => Reply::Later(Box::pin(std::future::ready(answer.clone()))),
        };
        assert_eq!(meters.answer(request, reply).await, answer);
    }
    let commits = [("request", "commit")];
    assert_eq!(value(&metrics, "tokkuri_store_requests_total", &commits), 3.0);
    assert_eq!(value(&metrics, "tokkuri_store_unavailable_total", &commits), 1.0);
    assert_eq!(value(&metrics, "tokkuri_store_request_duration_seconds_count", &commits), 1.0, "one took I/O");
    for name in ["tokkuri_store_conflicts_total", "tokkuri_quota_refusals_total", "tokkuri_lease_renewals_total"] {
        assert_eq!(value(&metrics, name, &[]), 1.0, "{name}");
    }
}

fn value(metrics: &Metrics, name: &str, labels: &[(&str, &str)]) -> f64 {
    let is = |sample: &&Sample| {
        let has = |(name, value): &(&str, &str)| sample.labels.iter().any(|(n, v)| n == name && v == value);
        sample.name == name && sample.labels.len() == labels.len() && labels.iter().all(has)
    };
    metrics.samples().iter().find(is).unwrap_or_else(|| panic!("there is no {name}{labels:?}")).value
}
