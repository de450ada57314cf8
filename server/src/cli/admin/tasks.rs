//! Tasks: lists of them, and one in full.

use std::io::{self, Write};

use prost_types::Timestamp;

use super::failure::Caller;
use super::table::{Table, cell_text};
use super::{json, time};
use crate::cli::Stop;
use crate::cli::show::printable;
use crate::cluster::proto::{ListTasksRequest, Owner, Task, TaskFilter};

/// Tasks that were listed.
#[derive(Debug, Default)]
pub(super) struct Listed {
    pub(super) tasks: Vec<Task>,
    pub(super) now: Option<Timestamp>,
    /// There are more than were wanted.
    pub(super) more: bool,
}

/// As many as are wanted, the oldest first.
pub(super) async fn list(caller: &mut Caller, filter: TaskFilter, limit: usize) -> Result<Listed, Stop> {
    let mut listed = Listed::default();
    let mut request = ListTasksRequest { filter: Some(filter), ..ListTasksRequest::default() };
    loop {
        let wanted = limit.saturating_sub(listed.tasks.len());
        request.page_size = u32::try_from(wanted.clamp(1, 1000)).unwrap_or(1000);
        let page = caller.call(async |it| it.list_tasks(request.clone()).await).await?;
        listed.tasks.extend(page.tasks);
        listed.now = page.now;
        listed.more = !page.next_page_token.is_empty();
        if !listed.more || listed.tasks.len() >= limit {
            break;
        }
        request.page_token = page.next_page_token;
    }
    listed.tasks.truncate(limit);
    listed.tasks.sort_by_key(|task| time::ms(task.created_at.as_ref()));
    Ok(listed)
}

/// A list as a table.
pub(super) fn table(listed: &Listed) -> Table {
    let head = ["ID", "STATUS", "TOOL", "OWNER", "NODE", "AGE", "CHANGED", "EXPIRES", "MESSAGE"];
    let mut table = Table::new(&head, "no tasks");
    for task in &listed.tasks {
        let ago = |at: &Option<Timestamp>| time::ago(listed.now.as_ref(), at.as_ref());
        table.row(vec![
            task.id.clone(),
            json::status(task).to_owned(),
            task.tool.clone(),
            owner(task.owner.as_ref()),
            node(task),
            ago(&task.created_at),
            ago(&task.updated_at),
            ago(&task.expires_at),
            task.status_message.clone().unwrap_or_default(),
        ]);
    }
    table
}

/// One task in full.
pub(super) fn print(out: &mut dyn Write, task: &Task) -> io::Result<()> {
    let mut line = |name: &str, text: &str| writeln!(out, "{name:<12}{}", cell_text(text));
    line("task", &task.id)?;
    line("status", json::status(task))?;
    if let Some(message) = &task.status_message {
        line("message", message)?;
    }
    line("tool", &task.tool)?;
    if let Some(owner) = &task.owner {
        let parts = [
            ("owner", &owner.principal),
            ("server", &owner.server),
            ("client", &owner.client),
            ("resource", &owner.resource),
        ];
        for (name, value) in parts.into_iter().filter(|(_, value)| !value.is_empty()) {
            line(name, value)?;
        }
    }
    let again = if task.restartable { ", may be run again elsewhere" } else { "" };
    line("node", &format!("{} (attempt {}{again})", node(task), task.attempt))?;
    line("created", &time::iso(task.created_at.as_ref()))?;
    line("updated", &format!("{} (revision {})", time::iso(task.updated_at.as_ref()), task.revision))?;
    line("expires", &time::iso(task.expires_at.as_ref()))?;
    if !task.scopes.is_empty() {
        line("scopes", &task.scopes.join(" "))?;
    }
    for key in &task.open_questions {
        line("waits for", key)?;
    }
    if let Some(code) = task.error_code {
        line("error code", &code.to_string())?;
    }
    let Some(payloads) = &task.payloads else { return Ok(()) };
    if let Some(arguments) = &payloads.arguments_json {
        line("arguments", arguments)?;
    }
    for (key, question) in &payloads.questions {
        line("asked", &format!("{key}: {}", question.request_json))?;
        if let Some(answer) = &question.answer_json {
            line("answered", &format!("{key}: {answer}"))?;
        }
    }
    if let Some(result) = &payloads.result_json {
        line("result", result)?;
    }
    if let Some(fault) = &payloads.fault {
        line("error", &fault.message)?;
        if let Some(data) = &fault.data_json {
            line("data", data)?;
        }
    }
    Ok(())
}

/// An owner in few words: the principal, and the client if there is one.
pub(super) fn owner(owner: Option<&Owner>) -> String {
    let Some(owner) = owner else { return "-".to_owned() };
    match owner.client.is_empty() {
        true => printable(&owner.principal),
        false => printable(&format!("{} via {}", owner.principal, owner.client)),
    }
}

/// The node's name, or its id if nobody knows that any more.
pub(super) fn node(task: &Task) -> String {
    task.node_name.clone().unwrap_or_else(|| task.node_id.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::proto::{TaskPayloads, TaskStatus};

    fn task() -> Task {
        Task {
            id: "T1".to_owned(),
            status: TaskStatus::InputRequired.into(),
            status_message: Some("2/3\u{1b}[31m".to_owned()),
            tool: "export".to_owned(),
            owner: Some(Owner { principal: "ada".to_owned(), client: "cli".to_owned(), ..Owner::default() }),
            node_id: "00000000000000ff".to_owned(),
            attempt: 2,
            created_at: Some(Timestamp { seconds: 40, nanos: 0 }),
            expires_at: Some(Timestamp { seconds: 160, nanos: 0 }),
            open_questions: vec!["who".to_owned()],
            ..Task::default()
        }
    }

    #[test]
    fn a_list_tells_who_what_where_and_since_when() {
        let now = Some(Timestamp { seconds: 100, nanos: 0 });
        let lines = table(&Listed { tasks: vec![task()], now, more: false }).lines(None);
        for word in ["T1", "input_required", "export", "ada via cli", "00000000000000ff", "1m", "in 1m", "2/3\u{fffd}"]
        {
            assert!(lines[1].contains(word), "{word} in {}", lines[1]);
        }
    }

    #[test]
    fn payloads_are_printed_if_they_came() {
        let mut one = task();
        let text = |task: &Task| {
            let mut out = Vec::new();
            print(&mut out, task).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert!(text(&one).contains("waits for   who\n") && !text(&one).contains("arguments"));
        one.payloads = Some(TaskPayloads { arguments_json: Some("{\"a\":1}".to_owned()), ..TaskPayloads::default() });
        assert!(text(&one).contains("arguments   {\"a\":1}\n"), "{}", text(&one));
    }
}
