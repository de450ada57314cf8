//! What the nodes count.

use serde_json::{Value, json};

use super::table::Table;
use crate::cluster::proto::{GetMetricsResponse, MetricSample};

/// As a table.
pub(super) fn table(answer: &GetMetricsResponse) -> Table {
    let mut table = Table::new(&["NAME", "LABELS", "VALUE"], "nothing was counted yet");
    for sample in &answer.samples {
        table.row(vec![sample.name.clone(), labels(sample), sample.value.to_string()]);
    }
    table
}

/// As JSON.
pub(super) fn json(answer: &GetMetricsResponse) -> Value {
    let samples: Vec<Value> = answer
        .samples
        .iter()
        .map(|sample| json!({ "name": sample.name, "labels": sample.labels, "value": sample.value }))
        .collect();
    let silent: Vec<Value> =
        answer.silent.iter().map(|node| json!({ "id": node.id, "name": node.name, "why": node.why })).collect();
    json!({ "samples": samples, "answered": answer.answered, "silent": silent })
}

fn labels(sample: &MetricSample) -> String {
    sample.labels.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}
