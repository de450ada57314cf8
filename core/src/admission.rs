//! Whether a `tools/call` becomes a task, runs in the request, or is refused: one decision table.

use serde::{Deserialize, Serialize};

/// What a tool says about being run as a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskMode {
    /// Never a task.
    #[default]
    None,
    /// A task if the request declares the extension, else it runs like any other tool.
    Optional,
    /// Only as a task.
    Required,
}

/// The era of the protocol that a request speaks (MCP 2026-07-28, Versioning).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Era {
    /// 2026-07-28 and later: every request carries its own version and capabilities.
    Modern,
    /// 2025-11-25 and before: a session made by `initialize`.
    Earlier,
}

/// What is known about a call when it is to be admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    /// The tool's mode.
    pub mode: TaskMode,
    /// `tasks.enabled`.
    pub tasks_enabled: bool,
    /// The era of the request.
    pub era: Era,
    /// Whether the request declares `io.modelcontextprotocol/tasks`.
    pub declares_tasks: bool,
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Admission {
    /// A task, if its owner has room for one; see [`at_the_limit`].
    Task,
    /// The tool runs in the request.
    Inline,
    /// -32021 with the tasks extension as the required capability.
    NeedsTasks,
    /// The earlier era knows no tasks: an `isError` result that says so.
    NotInThisEra,
}

/// The table.
pub const fn decide(call: Call) -> Admission {
    match (call.mode, call.tasks_enabled, call.era) {
        (TaskMode::None, _, _) | (_, false, _) | (TaskMode::Optional, true, Era::Earlier) => Admission::Inline,
        (TaskMode::Required, true, Era::Earlier) => Admission::NotInThisEra,
        (TaskMode::Optional, true, Era::Modern) if call.declares_tasks => Admission::Task,
        (TaskMode::Optional, true, Era::Modern) => Admission::Inline,
        (TaskMode::Required, true, Era::Modern) if call.declares_tasks => Admission::Task,
        (TaskMode::Required, true, Era::Modern) => Admission::NeedsTasks,
    }
}

/// What becomes of a call that would be a task, if its owner's live tasks have reached their limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AtTheLimit {
    /// An optional tool runs in the request.
    Inline,
    /// A required one is refused (-32600).
    Refused,
}

/// The fall-back at the limit.
pub const fn at_the_limit(mode: TaskMode) -> AtTheLimit {
    match mode {
        TaskMode::Required => AtTheLimit::Refused,
        TaskMode::None | TaskMode::Optional => AtTheLimit::Inline,
    }
}

/// Whether a tool is listed to clients of this era: a tool that they could only be refused is not.
pub const fn is_listed(mode: TaskMode, tasks_enabled: bool, era: Era) -> bool {
    !matches!(decide(Call { mode, tasks_enabled, era, declares_tasks: true }), Admission::NotInThisEra)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table() {
        use Admission::*;
        use Era::*;
        let rows = [
            // mode, enabled, era, declares → admission
            (TaskMode::None, true, Modern, true, Inline),
            (TaskMode::Optional, true, Modern, true, Task),
            (TaskMode::Optional, true, Modern, false, Inline),
            (TaskMode::Optional, true, Earlier, false, Inline),
            (TaskMode::Optional, true, Earlier, true, Inline),
            (TaskMode::Required, true, Modern, true, Task),
            (TaskMode::Required, true, Modern, false, NeedsTasks),
            (TaskMode::Required, true, Earlier, false, NotInThisEra),
            (TaskMode::Required, false, Modern, false, Inline),
            (TaskMode::Required, false, Earlier, false, Inline),
            (TaskMode::Optional, false, Modern, true, Inline),
        ];
        for (mode, tasks_enabled, era, declares_tasks, want) in rows {
            let call = Call { mode, tasks_enabled, era, declares_tasks };
            assert_eq!(decide(call), want, "{call:?}");
        }
    }

    #[test]
    fn only_a_required_tool_is_hidden_and_only_from_the_earlier_era() {
        assert!(!is_listed(TaskMode::Required, true, Era::Earlier));
        assert!(is_listed(TaskMode::Required, true, Era::Modern));
        assert!(is_listed(TaskMode::Required, false, Era::Earlier));
        assert!(is_listed(TaskMode::Optional, true, Era::Earlier));
    }
}
