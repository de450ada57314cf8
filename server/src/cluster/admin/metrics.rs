//! What the nodes count: one node's figures, or the sum over all that answer in time.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use tokkuri_core::store::NodeState;
use tonic::{Request, Status};

use super::nodes::Nodes;
use crate::cluster::connect::Credentials;
use crate::cluster::proto::admin_client::AdminClient;
use crate::cluster::proto::{GetMetricsRequest, GetMetricsResponse, MetricSample, SilentNode};
use crate::cluster::status::{Reason, refuse};
use crate::engine::Engine;

/// How long the other nodes have.
const DEADLINE: Duration = Duration::from_secs(2);

/// Says that a question comes from a node already, and must not be passed on.
const PASSED_ON: &str = "tokkuri-passed-on";

type Samples = Vec<MetricSample>;

/// The answer.
pub(super) async fn metrics(
    engine: &Engine,
    credentials: &Credentials,
    request: Request<GetMetricsRequest>,
) -> Result<GetMetricsResponse, Status> {
    let passed_on = request.metadata().contains_key(PASSED_ON);
    let nodes = Nodes::read(engine).await?;
    let Some(node) = request.into_inner().node else { return Ok(all(engine, credentials, &nodes).await) };
    let state = nodes.living(&node)?;
    let samples = if state.node.id == nodes.me() {
        Ok(local(engine))
    } else if passed_on {
        Err("another node answers at its address".to_owned())
    } else {
        ask(credentials, state).await
    };
    match samples {
        Ok(samples) => Ok(GetMetricsResponse { samples, answered: vec![state.node.name.to_string()], silent: vec![] }),
        Err(why) => Err(refuse(Reason::NodeSilent, format!("the node {node:?} does not answer: {why}"))),
    }
}

/// The sum over all nodes that live.
async fn all(engine: &Engine, credentials: &Credentials, nodes: &Nodes) -> GetMetricsResponse {
    let others: Vec<&NodeState> = nodes.alive().filter(|state| state.node.id != nodes.me()).collect();
    let answers = join_all(others.iter().map(|state| ask(credentials, state))).await;
    let mut answered: Vec<String> = nodes.name(nodes.me()).map(str::to_owned).into_iter().collect();
    let (mut silent, mut samples) = (Vec::new(), vec![local(engine)]);
    for (state, answer) in others.into_iter().zip(answers) {
        match answer {
            Ok(theirs) => {
                answered.push(state.node.name.to_string());
                samples.push(theirs);
            }
            Err(why) => {
                silent.push(SilentNode { id: state.node.id.to_string(), name: state.node.name.to_string(), why });
            }
        }
    }
    GetMetricsResponse { samples: sum(samples), answered, silent }
}

/// What this node counts.
fn local(engine: &Engine) -> Samples {
    let samples = engine.metrics().samples().into_iter();
    samples.map(|it| MetricSample { name: it.name, labels: it.labels.into_iter().collect(), value: it.value }).collect()
}

/// What another node counts.
async fn ask(credentials: &Credentials, state: &NodeState) -> Result<Samples, String> {
    let Some(address) = &state.node.address else {
        return Err("it says of no address at which it is reached (grpc.advertise)".to_owned());
    };
    let channel = credentials.channel(address).map_err(|error| error.to_string())?;
    let mut request = Request::new(GetMetricsRequest { node: Some(state.node.id.to_string()) });
    request.metadata_mut().insert(PASSED_ON, tonic::metadata::MetadataValue::from_static("1"));
    match tokio::time::timeout(DEADLINE, AdminClient::new(channel).get_metrics(request)).await {
        Ok(Ok(answer)) => Ok(answer.into_inner().samples),
        Ok(Err(status)) => Err(format!("{address}: {}", status.message())),
        Err(_) => Err(format!("{address}: no answer within {} ms", DEADLINE.as_millis())),
    }
}

/// Adds up what has the same name and labels.
fn sum(samples: Vec<Samples>) -> Samples {
    let mut sums: BTreeMap<(String, BTreeMap<String, String>), f64> = BTreeMap::new();
    for MetricSample { name, labels, value } in samples.into_iter().flatten() {
        *sums.entry((name, labels)).or_default() += value;
    }
    sums.into_iter().map(|((name, labels), value)| MetricSample { name, labels, value }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(name: &str, label: &str, value: f64) -> MetricSample {
        MetricSample { name: name.to_owned(), labels: [("l".to_owned(), label.to_owned())].into(), value }
    }

    #[test]
    fn what_has_the_same_name_and_labels_is_added_up() {
        let sums = sum(vec![
            vec![sample("b", "x", 1.0), sample("a", "x", 2.0)],
            vec![sample("a", "x", 3.0), sample("a", "y", 4.0)],
        ]);
        assert_eq!(sums, [sample("a", "x", 5.0), sample("a", "y", 4.0), sample("b", "x", 1.0)]);
    }
}
