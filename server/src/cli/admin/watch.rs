//! Tasks as they change: a live view at a terminal, lines in a pipe.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use prost_types::Timestamp;
use tonic::Streaming;

use super::failure::Caller;
use super::table::{Table, cell_text, size};
use super::tasks::{node, owner};
use super::{Output, json, time};
use crate::cli::Exit;
use crate::cli::interrupt::Interrupts;
use crate::cluster::proto::{Task, TaskFilter, WatchTasksRequest, WatchTasksResponse};

/// How often a live view is drawn, at most.
const FRAME: Duration = Duration::from_millis(100);

/// How many tasks a live view remembers.
const REMEMBERED: usize = 10_000;

pub(super) async fn run(
    caller: &mut Caller,
    out: &mut dyn Write,
    filter: TaskFilter,
    current: bool,
    output: Output,
    terminal: bool,
) -> anyhow::Result<Exit> {
    let mut interrupts = Interrupts::listen();
    let live = terminal && output == Output::Table;
    let request = WatchTasksRequest { filter: Some(filter), include_current: current || live };
    let stream = caller.call(async |it| it.watch_tasks(request.clone()).await).await?;
    let watched = async {
        match live {
            true => {
                let _screen = Screen::take(out)?;
                view(stream, out).await
            }
            false => lines(stream, out, output).await,
        }
    };
    tokio::select! {
        ended = watched => match ended {
            Ok(()) => Ok(Exit::Ok),
            Err(Failed::Call(status)) => Err(caller.explain(&status).into()),
            Err(Failed::Write(error)) => Err(error.into()),
        },
        () = interrupts.next() => Ok(Exit::Interrupted),
    }
}

/// Why a watch ended before it was told to.
enum Failed {
    Call(tonic::Status),
    Write(io::Error),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Self::Write(error)
    }
}

impl From<tonic::Status> for Failed {
    fn from(status: tonic::Status) -> Self {
        Self::Call(status)
    }
}

async fn lines(mut stream: Streaming<WatchTasksResponse>, out: &mut dyn Write, output: Output) -> Result<(), Failed> {
    while let Some(answer) = stream.message().await? {
        if answer.missed > 0 {
            eprintln!("warning: changes of {} tasks came too fast and were missed", answer.missed);
        }
        let Some(task) = &answer.task else { continue };
        match output {
            Output::Json => json::line(out, &json::task(task))?,
            Output::Table => {
                writeln!(out, "{}", one_line(task))?;
                out.flush()?;
            }
        }
    }
    Ok(())
}

fn one_line(task: &Task) -> String {
    let message = task.status_message.as_deref().unwrap_or_default();
    let line = format!(
        "{}  {}  {:<14}  {}  {}  {}  {}",
        time::iso(task.updated_at.as_ref()),
        task.id,
        json::status(task),
        task.tool,
        owner(task.owner.as_ref()),
        node(task),
        cell_text(message)
    );
    line.trim_end().to_owned()
}

/// Draws until the stream ends.
async fn view(mut stream: Streaming<WatchTasksResponse>, out: &mut dyn Write) -> Result<(), Failed> {
    let mut view = View::default();
    let mut frame = tokio::time::interval(FRAME);
    frame.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut drawn = tokio::time::Instant::now();
    loop {
        tokio::select! {
            answer = stream.message() => match answer? {
                Some(answer) => view.take(answer),
                None => return Ok(()),
            },
            // Ages grow although nothing changes.
            _ = frame.tick(), if view.changed || drawn.elapsed() >= Duration::from_secs(1) => {
                let (width, height) = size();
                write!(out, "\u{1b}[H\u{1b}[2J{}", view.draw(now(), width, height.unwrap_or(24)).join("\r\n"))?;
                out.flush()?;
                view.changed = false;
                drawn = tokio::time::Instant::now();
            }
        }
    }
}

/// What a live view shows: the latest state of each task, what changed last first.
#[derive(Debug, Default)]
struct View {
    tasks: BTreeMap<String, (u64, Task)>,
    /// Counts changes.
    turn: u64,
    missed: u64,
    changed: bool,
}

impl View {
    fn take(&mut self, answer: WatchTasksResponse) {
        self.missed += answer.missed;
        self.changed = true;
        let Some(task) = answer.task else { return };
        self.turn += 1;
        self.tasks.insert(task.id.clone(), (self.turn, task));
        if self.tasks.len() > REMEMBERED
            && let Some(oldest) = self.tasks.values().min_by_key(|(turn, _)| *turn).map(|(_, task)| task.id.clone())
        {
            self.tasks.remove(&oldest);
        }
    }

    fn draw(&self, now: Timestamp, width: Option<usize>, height: usize) -> Vec<String> {
        let mut counts = BTreeMap::new();
        let there = self.tasks.values().filter(|(_, task)| time::ms(Some(&now)) < time::ms(task.expires_at.as_ref()));
        let mut tasks: Vec<&(u64, Task)> = there.collect();
        for (_, task) in &tasks {
            *counts.entry(json::status(task)).or_insert(0_u64) += 1;
        }
        let counts: Vec<String> = counts.iter().map(|(status, count)| format!("{count} {status}")).collect();
        let missed = if self.missed > 0 { format!(", {} missed", self.missed) } else { String::new() };
        tasks.sort_by_key(|(turn, _)| std::cmp::Reverse(*turn));
        let mut table = Table::new(
            &["ID", "STATUS", "TOOL", "OWNER", "NODE", "AGE", "CHANGED", "MESSAGE"],
            "no task has changed yet",
        );
        for (_, task) in tasks.into_iter().take(height.saturating_sub(4)) {
            let ago = |at: &Option<Timestamp>| time::ago(Some(&now), at.as_ref());
            table.row(vec![
                task.id.clone(),
                json::status(task).to_owned(),
                task.tool.clone(),
                owner(task.owner.as_ref()),
                node(task),
                ago(&task.created_at),
                ago(&task.updated_at),
                task.status_message.clone().unwrap_or_default(),
            ]);
        }
        let head = format!("tasks: {}{missed}    (Ctrl-C leaves)", counts.join(", "));
        [head, String::new()].into_iter().chain(table.lines(width)).collect()
    }
}

fn now() -> Timestamp {
    Timestamp::from(std::time::SystemTime::now())
}

/// The terminal's other screen. What was there before comes back when this is dropped.
struct Screen;

impl Screen {
    fn take(out: &mut dyn Write) -> io::Result<Self> {
        write!(out, "\u{1b}[?1049h\u{1b}[?25l")?;
        out.flush()?;
        Ok(Self)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Standard output is locked by this thread already, which may lock it again.
        let mut out = io::stdout().lock();
        let _ = write!(out, "\u{1b}[?25h\u{1b}[?1049l");
        let _ = out.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::proto::TaskStatus;

    fn change(id: &str, status: TaskStatus) -> WatchTasksResponse {
        let task = Task {
            id: id.to_owned(),
            status: status.into(),
            created_at: Some(Timestamp { seconds: 40, nanos: 0 }),
            updated_at: Some(Timestamp { seconds: 90, nanos: 0 }),
            expires_at: Some(Timestamp { seconds: 200, nanos: 0 }),
            ..Task::default()
        };
        WatchTasksResponse { task: Some(task), current: false, missed: 0 }
    }

    #[test]
    fn a_view_shows_what_changed_last_first_and_each_task_once() {
        let mut view = View::default();
        view.take(change("A", TaskStatus::Working));
        view.take(change("B", TaskStatus::Working));
        view.take(change("A", TaskStatus::Cancelled));
        let lines = view.draw(Timestamp { seconds: 100, nanos: 0 }, None, 24);
        assert!(lines[0].starts_with("tasks: 1 cancelled, 1 working"), "{}", lines[0]);
        assert!(lines[3].starts_with("A   cancelled") && lines[4].starts_with("B   working"), "{lines:#?}");
        assert!(lines[3].contains("1m") && lines[3].contains("10s"), "{}", lines[3]);
        assert_eq!(view.draw(Timestamp { seconds: 100, nanos: 0 }, None, 5).len(), 4, "no more than there is room for");
        let gone = view.draw(Timestamp { seconds: 200, nanos: 0 }, None, 24);
        assert!(gone[2].contains("no task"), "expired ones are gone: {gone:#?}");
    }

    #[test]
    fn in_a_pipe_a_change_is_one_line() {
        let mut task = change("A", TaskStatus::Working).task.unwrap();
        task.status_message = Some("1/2\nx".to_owned());
        let line = one_line(&task);
        assert!(line.starts_with("1970-01-01T00:01:30Z  A  working") && line.ends_with("1/2 x"), "{line}");
    }
}
