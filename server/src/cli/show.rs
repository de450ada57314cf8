//! How far a task is, on standard error: a bar at a terminal, one line for each change in a pipe.

use std::{io::IsTerminal as _, time::Duration};

use indicatif::{ProgressBar, ProgressStyle};

use crate::client::Progress;

/// Shows the status of one call.
#[derive(Debug)]
pub(crate) struct Show {
    name: String,
    bar: Option<ProgressBar>,
    last: String,
}

impl Show {
    /// Shows `name`'s status where standard error goes.
    pub(crate) fn new(name: &str) -> Self {
        let name = printable(name);
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new_spinner().with_prefix(name.clone());
            bar.set_style(spinner());
            bar.enable_steady_tick(Duration::from_millis(100));
            bar
        });
        Self { name, bar, last: String::new() }
    }

    /// The task's `statusMessage`; `i/n …` moves the bar.
    pub(crate) fn status(&mut self, message: &str) {
        if message == self.last {
            return;
        }
        message.clone_into(&mut self.last);
        match &self.bar {
            None => eprintln!("{}: {}", self.name, printable(message)),
            Some(bar) => match steps(message) {
                Some((done, total, rest)) => measure(bar, done, total, rest),
                None => bar.set_message(printable(message)),
            },
        }
    }

    /// Progress that a tool makes within its request.
    pub(crate) fn progress(&mut self, step: &Progress) {
        let message = step.message.as_deref().unwrap_or_default();
        match step.total {
            // A message that counts by itself ("3/10 …") is not counted twice.
            Some(total) if steps(message).is_none() => {
                self.status(format!("{}/{total} {message}", step.progress).trim_end());
            }
            _ => self.status(message),
        }
    }

    /// A line of its own, above the bar.
    pub(crate) fn line(&self, text: &str) {
        let text = printable(text);
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("{text}")),
            None => eprintln!("{text}"),
        }
    }

    /// Makes room for questions at the terminal.
    pub(crate) fn pause(&self) {
        if let Some(bar) = &self.bar {
            bar.disable_steady_tick();
            bar.set_draw_target(indicatif::ProgressDrawTarget::hidden());
        }
    }

    /// Comes back after [`Show::pause`].
    pub(crate) fn resume(&self) {
        if let Some(bar) = &self.bar {
            bar.set_draw_target(indicatif::ProgressDrawTarget::stderr());
            bar.enable_steady_tick(Duration::from_millis(100));
        }
    }

    /// Takes the bar away.
    pub(crate) fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Show {
    fn drop(&mut self) {
        self.clear();
    }
}

fn measure(bar: &ProgressBar, done: u64, total: u64, rest: &str) {
    if bar.length() != Some(total) {
        bar.set_length(total);
        bar.set_style(measured());
    }
    bar.set_position(done.min(total));
    bar.set_message(printable(rest));
}

fn spinner() -> ProgressStyle {
    style("{spinner} {prefix}  {elapsed}  {wide_msg}")
}

fn measured() -> ProgressStyle {
    style("{spinner} {prefix} [{bar:30}] {pos}/{len}  {wide_msg}").progress_chars("=> ")
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}

/// `i/n rest` taken apart; `None` if a message does not count.
fn steps(message: &str) -> Option<(u64, u64, &str)> {
    let (count, rest) = message.split_once(' ').unwrap_or((message, ""));
    let (done, total) = count.split_once('/')?;
    let total: u64 = total.parse().ok().filter(|total| *total > 0)?;
    Some((done.parse().ok()?, total, rest.trim_start()))
}

/// A text without the control characters that would move a terminal's cursor or colours: what servers and tools say
/// is not to be trusted with the terminal.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\t' => c,
            // Also the marks that turn the direction of text, which can make one address look like another.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
            c if c.is_control() => '\u{fffd}',
            c => c,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_counts_is_taken_apart() {
        for (message, steps_of) in [
            ("3/10 hashing a", Some((3, 10, "hashing a"))),
            ("3/10", Some((3, 10, ""))),
            ("0/0 x", None),
            ("a/b x", None),
            ("hashing", None),
            ("", None),
        ] {
            assert_eq!(steps(message), steps_of, "{message:?}");
        }
    }

    #[test]
    fn a_server_cannot_drive_the_terminal() {
        assert_eq!(printable("a\u{1b}[2Jb\r\u{202e}c\n"), "a\u{fffd}[2Jb\u{fffd}\u{fffd}c\n");
    }
}
