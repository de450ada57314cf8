//! Core's words in the protocol's.

use prost_types::{Duration, Timestamp};
use tokkuri_core::task::{Phase, Status as TaskStatus, Task};
use tokkuri_core::time::Millis;
use tokkuri_core::wire::Json;
use tonic::Status;

use super::nodes::Nodes;
use crate::cluster::proto;
use crate::cluster::status::bad_field;

/// A task without what it carries.
pub(super) fn task(task: &Task<Json>, nodes: &Nodes) -> proto::Task {
    let origin = &task.origin;
    let owner = &origin.owner;
    proto::Task {
        id: task.id.to_string(),
        revision: task.revision.0,
        status: status(task.status()).into(),
        status_message: task.status_message.as_ref().map(ToString::to_string),
        tool: origin.tool.to_string(),
        owner: Some(proto::Owner {
            principal: owner.principal.to_string(),
            server: owner.server.to_string(),
            client: owner.client.to_string(),
            resource: owner.resource.to_string(),
        }),
        node_id: task.node.to_string(),
        node_name: nodes.name(task.node).map(str::to_owned),
        attempt: task.attempt.0,
        restartable: origin.restartable,
        created_at: Some(timestamp(origin.created)),
        updated_at: Some(timestamp(task.updated)),
        expires_at: Some(timestamp(task.expires())),
        scopes: origin.scopes.iter().map(ToString::to_string).collect(),
        open_questions: task
            .live()
            .map(|live| live.outstanding().map(|(key, _)| key.to_string()).collect())
            .unwrap_or_default(),
        error_code: match &task.phase {
            Phase::Failed(fault) => Some(fault.code),
            Phase::Live(_) | Phase::Completed(_) | Phase::Cancelled => None,
        },
        payloads: None,
    }
}

/// What a task carries.
pub(super) fn payloads(task: &Task<Json>) -> proto::TaskPayloads {
    let text = |json: &Json| json.as_str().to_owned();
    let mut payloads = proto::TaskPayloads::default();
    match &task.phase {
        Phase::Live(live) => {
            payloads.arguments_json = Some(text(&live.arguments));
            payloads.questions = live
                .questions
                .iter()
                .map(|(key, question)| {
                    let answer_json = question.answer.as_ref().map(text);
                    (key.to_string(), proto::Question { request_json: text(&question.request), answer_json })
                })
                .collect();
        }
        Phase::Completed(result) => payloads.result_json = Some(text(result)),
        Phase::Failed(fault) => {
            let data_json = fault.data.as_ref().map(text);
            payloads.fault = Some(proto::Fault { code: fault.code, message: fault.message.to_string(), data_json });
        }
        Phase::Cancelled => {}
    }
    payloads
}

pub(super) const fn status(status: TaskStatus) -> proto::TaskStatus {
    match status {
        TaskStatus::Working => proto::TaskStatus::Working,
        TaskStatus::InputRequired => proto::TaskStatus::InputRequired,
        TaskStatus::Completed => proto::TaskStatus::Completed,
        TaskStatus::Failed => proto::TaskStatus::Failed,
        TaskStatus::Cancelled => proto::TaskStatus::Cancelled,
    }
}

pub(super) fn statuses(wanted: &[i32]) -> Result<Vec<TaskStatus>, Status> {
    let status = |number: &i32| match proto::TaskStatus::try_from(*number) {
        Ok(proto::TaskStatus::Working) => Ok(TaskStatus::Working),
        Ok(proto::TaskStatus::InputRequired) => Ok(TaskStatus::InputRequired),
        Ok(proto::TaskStatus::Completed) => Ok(TaskStatus::Completed),
        Ok(proto::TaskStatus::Failed) => Ok(TaskStatus::Failed),
        Ok(proto::TaskStatus::Cancelled) => Ok(TaskStatus::Cancelled),
        Ok(proto::TaskStatus::Unspecified) | Err(_) => {
            Err(bad_field("filter.statuses", format!("there is no status {number}")))
        }
    };
    wanted.iter().map(status).collect()
}

pub(super) fn timestamp(at: Millis) -> Timestamp {
    // A task that never expires does so at the end of what a timestamp can say: 9999-12-31T23:59:59Z.
    const END: i64 = 253_402_300_799;
    let seconds = i64::try_from(at.0 / 1000).unwrap_or(END).min(END);
    Timestamp { seconds, nanos: i32::try_from(at.0 % 1000).unwrap_or(0) * 1_000_000 }
}

/// A duration of the protocol, in milliseconds.
pub(super) fn optional_ms(field: &str, duration: Option<Duration>) -> Result<Option<u64>, Status> {
    let Some(duration) = duration else { return Ok(None) };
    match std::time::Duration::try_from(duration) {
        Ok(duration) => Ok(Some(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))),
        Err(_) => Err(bad_field(field, "give a duration that is not negative")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_keep_their_milliseconds_and_end_where_timestamps_do() {
        assert_eq!(timestamp(Millis(1_788_249_600_123)), Timestamp { seconds: 1_788_249_600, nanos: 123_000_000 });
        assert_eq!(timestamp(Millis(u64::MAX)).seconds, 253_402_300_799);
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        assert_eq!(statuses(&[1, 5]).unwrap(), [TaskStatus::Working, TaskStatus::Cancelled]);
        for number in [0, 6, -1] {
            assert!(statuses(&[number]).unwrap_err().message().starts_with("filter.statuses"), "{number}");
        }
        let negative = Duration { seconds: -1, nanos: 0 };
        assert!(optional_ms("filter.older_than", Some(negative)).unwrap_err().message().contains("older_than"));
        assert_eq!(optional_ms("x", Some(Duration { seconds: 1, nanos: 5_000_000 })).unwrap(), Some(1005));
    }
}
