//! Nodes, as a table.

use std::io::{self, Write};
use std::time::Duration;

use prost_types::Timestamp;

use super::failure::Caller;
use super::table::Table;
use super::{Output, json, time};
use crate::cli::interrupt::Interrupts;
use crate::cli::show::Show;
use crate::cli::{Exit, Stop};
use crate::cluster::proto::{ListNodesRequest, ListNodesResponse, Node};

/// How often is asked whether a node is drained.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// All of them.
pub(super) fn table(answer: &ListNodesResponse) -> Table {
    let mut table =
        Table::new(&["NAME", "ID", "STATE", "RUNS", "QUEUED", "LEASE", "ADDRESS", "VERSION"], "there are no nodes");
    let now = answer.now.as_ref();
    for node in &answer.nodes {
        let mark = if node.answering { "*" } else { "" };
        table.row(vec![
            format!("{}{mark}", node.name),
            node.id.clone(),
            state(node, now),
            node.runs.to_string(),
            node.queued.to_string(),
            lease(node, now),
            node.address.clone().unwrap_or_else(|| "-".to_owned()),
            node.version.clone(),
        ]);
    }
    table
}

/// One that was drained or taken back.
pub(super) fn changed(out: &mut dyn Write, node: Option<&Node>, output: Output) -> io::Result<()> {
    let Some(node) = node else { return Ok(()) };
    match (output, &node.drain) {
        (Output::Json, _) => json::line(out, &json::node(node)),
        (Output::Table, Some(_)) if node.drained => {
            writeln!(out, "{} ({}) is drained: it can be stopped", node.name, node.id)
        }
        (Output::Table, Some(_)) => {
            writeln!(
                out,
                "{} ({}) is told to take no new runs; `tokkuri admin nodes` says when it is drained",
                node.name, node.id
            )
        }
        (Output::Table, None) => writeln!(out, "{} ({}) takes runs", node.name, node.id),
    }
}

/// Over once the node is drained, or when there is nothing to wait for any more.
pub(super) async fn drained(caller: &mut Caller, told: &Node) -> Result<Node, Stop> {
    let mut interrupts = Interrupts::listen();
    let mut show = Show::new(&told.name);
    let name = format!("{} ({})", told.name, told.id);
    loop {
        let nodes = caller.call(async |it| it.list_nodes(ListNodesRequest {}).await).await?.nodes;
        match nodes.into_iter().find(|node| node.id == told.id && node.alive) {
            Some(node) if node.drained => return Ok(node),
            Some(node) if node.drain.is_some() => {
                show.status(&format!("drains: {} run there, {} wait", node.runs, node.queued));
            }
            Some(_) => return Err(Stop::new(Exit::Failed, format!("somebody had {name} take runs again"))),
            None => {
                let line = format!("{name} is gone before it was drained: it was stopped, or its lease ran out");
                return Err(Stop::new(Exit::Failed, line));
            }
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK_AGAIN) => {}
            () = interrupts.next() => {
                let line = format!("{name} drains all the same; `tokkuri admin undrain` takes that back");
                return Err(Stop::new(Exit::Interrupted, line));
            }
        }
    }
}

fn state(node: &Node, now: Option<&Timestamp>) -> String {
    match (&node.drain, node.alive) {
        (_, false) => "lost".to_owned(),
        (Some(_), true) if node.drained => "drained".to_owned(),
        (None, true) => "alive".to_owned(),
        (Some(at), true) if time::ms(now) < time::ms(Some(at)) => {
            format!("draining, hands over {}", time::ago(now, Some(at)))
        }
        (Some(_), true) => "draining".to_owned(),
    }
}

fn lease(node: &Node, now: Option<&Timestamp>) -> String {
    // Where nobody else could take anything over, a lease has no end.
    const YEARS_MS: i64 = 10 * 365 * 86_400_000;
    match node.alive {
        true if time::ms(node.leased_until.as_ref()) - time::ms(now) > YEARS_MS => "holds".to_owned(),
        true => format!("ends {}", time::ago(now, node.leased_until.as_ref())),
        false => format!("ended {} ago", time::ago(now, node.leased_until.as_ref())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_says_whether_it_lives_and_drains() {
        let at = |seconds| Some(Timestamp { seconds, nanos: 0 });
        let node = |name: &str, alive, until, drain| Node {
            name: name.to_owned(),
            id: "0".repeat(16),
            alive,
            leased_until: at(until),
            drain,
            answering: name == "a",
            drained: name == "f",
            ..Node::default()
        };
        let nodes = vec![
            node("a", true, 110, None),
            node("b", true, 110, at(130)),
            node("c", true, 110, at(90)),
            node("d", false, 40, None),
            node("e", true, 253_402_300_799, None),
            node("f", true, 110, at(130)),
        ];
        let lines = table(&ListNodesResponse { nodes, now: at(100) }).lines(None);
        for (line, says) in lines[1..].iter().zip([
            &["a*", "alive", "ends in 10s"][..],
            &["b ", "draining, hands over in 30s"],
            &["c ", "draining "],
            &["d ", "lost", "ended 1m ago"],
            &["e ", "alive", "holds"],
            &["f ", "drained "],
        ]) {
            assert!(says.iter().all(|word| line.contains(word)), "{line}");
        }
    }
}
