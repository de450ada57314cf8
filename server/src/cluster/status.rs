//! What goes wrong, as gRPC says it: a code, words for people, and details for programs.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokkuri_core::id::TaskId;
use tokkuri_core::procedure::Written;
use tokkuri_core::store::Unavailable;
use tokkuri_core::task::{Rejected, Task};
use tokkuri_core::wire::Json;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, FieldViolation, StatusExt as _};

/// `ErrorInfo.domain` of everything here.
pub(crate) const DOMAIN: &str = "tokkuri";

/// After how long a store that failed may be asked again.
const RETRY: Duration = Duration::from_secs(1);

/// `ErrorInfo.reason`, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    TokenMissing,
    TokenWrong,
    PayloadsNotAllowed,
    NoSuchTask,
    NoSuchNode,
    NodeAmbiguous,
    NodeNotAlive,
    NodeSilent,
    TaskEnded,
    StaleAttempt,
    Undeclared,
    TooManyQuestions,
    Misfit,
    StoreUnavailable,
    ShuttingDown,
    BadRequest,
}

impl Reason {
    const fn words(self) -> (&'static str, Code) {
        match self {
            Self::TokenMissing => ("TOKEN_MISSING", Code::Unauthenticated),
            Self::TokenWrong => ("TOKEN_WRONG", Code::Unauthenticated),
            Self::PayloadsNotAllowed => ("PAYLOADS_NOT_ALLOWED", Code::PermissionDenied),
            Self::NoSuchTask => ("NO_SUCH_TASK", Code::NotFound),
            Self::NoSuchNode => ("NO_SUCH_NODE", Code::NotFound),
            Self::NodeAmbiguous => ("NODE_AMBIGUOUS", Code::FailedPrecondition),
            Self::NodeNotAlive => ("NODE_NOT_ALIVE", Code::FailedPrecondition),
            Self::NodeSilent => ("NODE_SILENT", Code::Unavailable),
            Self::TaskEnded => ("TASK_ENDED", Code::FailedPrecondition),
            Self::StaleAttempt => ("STALE_ATTEMPT", Code::Aborted),
            Self::Undeclared => ("UNDECLARED", Code::FailedPrecondition),
            Self::TooManyQuestions => ("TOO_MANY_QUESTIONS", Code::ResourceExhausted),
            Self::Misfit => ("MISFIT", Code::InvalidArgument),
            Self::StoreUnavailable => ("STORE_UNAVAILABLE", Code::Unavailable),
            Self::ShuttingDown => ("SHUTTING_DOWN", Code::Unavailable),
            Self::BadRequest => ("BAD_REQUEST", Code::InvalidArgument),
        }
    }
}

/// A refusal for this reason.
pub(crate) fn refuse(reason: Reason, message: impl Into<String>) -> Status {
    refuse_with(reason, message, [])
}

/// The same, with what a program may want to know.
pub(crate) fn refuse_with<const N: usize>(
    reason: Reason,
    message: impl Into<String>,
    known: [(&str, String); N],
) -> Status {
    let (word, code) = reason.words();
    let known: HashMap<String, String> = known.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    let mut details = ErrorDetails::with_error_info(word, DOMAIN, known);
    if reason == Reason::StoreUnavailable {
        details.set_retry_info(Some(RETRY));
    }
    Status::with_error_details(code, message, details)
}

/// A field that makes no sense.
pub(crate) fn bad_field(field: &str, what: impl Into<String>) -> Status {
    let what = what.into();
    let (word, code) = Reason::BadRequest.words();
    let mut details = ErrorDetails::with_error_info(word, DOMAIN, HashMap::new());
    details.set_bad_request(vec![FieldViolation::new(field, &what)]);
    Status::with_error_details(code, format!("{field}: {what}"), details)
}

/// There is no such task, or there is none any more.
pub(crate) fn no_such_task(id: &str) -> Status {
    // What was asked for may be anything.
    let id: String = id.chars().take(64).collect();
    refuse_with(Reason::NoSuchTask, format!("there is no task {id:?} (any more)"), [("task", id.clone())])
}

/// The store failed.
pub(crate) fn unavailable(unavailable: &Unavailable) -> Status {
    let done = if unavailable.maybe_done { "; it may have been done all the same" } else { "" };
    refuse(Reason::StoreUnavailable, format!("{unavailable}{done}"))
}

/// What came of a write.
pub(crate) fn written(id: TaskId, written: Written<Json>) -> Result<Arc<Task<Json>>, Status> {
    match written {
        Written::Done(task) => Ok(task),
        Written::Absent => Err(no_such_task(id.encoded().as_str())),
        Written::Rejected { why, .. } => Err(rejected(id, &why)),
        Written::Unavailable(why) => Err(unavailable(&why)),
        // No scope is asked of an operator.
        Written::LacksScope { needed } => {
            Err(Status::permission_denied(format!("the task needs the scopes {}", needed.join(" "))))
        }
    }
}

/// Why a task refused, as a status: the one place where that is said.
fn rejected(id: TaskId, rejected: &Rejected) -> Status {
    let reason = match rejected {
        Rejected::Expired => return no_such_task(id.encoded().as_str()),
        Rejected::Ended => Reason::TaskEnded,
        Rejected::StaleAttempt => Reason::StaleAttempt,
        Rejected::Undeclared { .. } => Reason::Undeclared,
        Rejected::TooManyQuestions { .. } => Reason::TooManyQuestions,
        Rejected::Misfit { .. } => Reason::Misfit,
    };
    refuse_with(reason, rejected.to_string(), [("task", id.to_string())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_it_to_people_and_to_programs() {
        let status = refuse_with(Reason::NoSuchNode, "there is no node x", [("known", "a, b".to_owned())]);
        assert_eq!((status.code(), status.message()), (Code::NotFound, "there is no node x"));
        let info = status.get_details_error_info().unwrap();
        assert_eq!((info.reason.as_str(), info.domain.as_str()), ("NO_SUCH_NODE", "tokkuri"));
        assert_eq!(info.metadata["known"], "a, b");
    }

    #[test]
    fn a_field_that_makes_no_sense_is_named() {
        let status = bad_field("page_size", "give 1000 at most");
        assert_eq!(status.code(), Code::InvalidArgument);
        let violations = status.get_details_bad_request().unwrap().field_violations;
        assert_eq!(violations[0].field, "page_size");
    }

    #[test]
    fn a_store_that_fails_may_be_asked_again() {
        let status = unavailable(&Unavailable { why: "full".into(), maybe_done: true });
        assert_eq!(status.code(), Code::Unavailable);
        assert!(status.message().contains("full") && status.message().contains("may have been done"));
        assert_eq!(status.get_details_retry_info().unwrap().retry_delay, Some(RETRY));
    }

    #[test]
    fn an_expired_task_is_refused_like_one_that_never_was() {
        let id = TaskId::from_bytes([1; 18]);
        let (expired, absent) = (rejected(id, &Rejected::Expired), no_such_task(&id.to_string()));
        assert_eq!((expired.code(), expired.message()), (absent.code(), absent.message()));
        assert_eq!(expired.details(), absent.details());
    }
}
