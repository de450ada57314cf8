//! Waiting for a state: by polling, as the extension has it, with a deadline and the last state in the panic.

use std::time::Instant;

use super::{Client, DEADLINE, LOOK_AGAIN, Reply};

impl Client {
    /// Polls the task until `done` says so, and returns the reply that did it.
    ///
    /// # Panics
    /// If `tasks/get` answers an error, or the deadline passes; with the last state.
    pub async fn wait(&self, id: &str, what: &str, done: impl Fn(&Reply) -> bool) -> Reply {
        let start = Instant::now();
        loop {
            let reply = self.task_get(id).await;
            if done(&reply) {
                return reply;
            }
            assert!(reply.message.get("error").is_none(), "waiting for {what}: {}", reply.body);
            assert!(start.elapsed() < DEADLINE, "waited for {what}; last state: {}", reply.body);
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Polls until the task has this status.
    ///
    /// # Panics
    /// As [`Client::wait`]; also if the task ends in another way, for it stays so.
    pub async fn wait_status(&self, id: &str, status: &str) -> Reply {
        self.wait(id, status, |reply| {
            let now = reply.task_status();
            assert!(now == status || !is_terminal(now), "waited for {status}: {}", reply.body);
            now == status
        })
        .await
    }

    /// Polls until the task has ended, in whatever way.
    pub async fn wait_end(&self, id: &str) -> Reply {
        self.wait(id, "its end", |reply| is_terminal(reply.task_status())).await
    }

    /// Polls until exactly these questions are outstanding.
    pub async fn wait_questions(&self, id: &str, keys: &[&str]) -> Reply {
        self.wait(id, &format!("the questions {keys:?}"), |reply| {
            assert!(!is_terminal(reply.task_status()), "waited for {keys:?}: {}", reply.body);
            reply.questions() == keys
        })
        .await
    }

    /// Polls until the server does not know the task any more.
    pub async fn wait_gone(&self, id: &str) -> Reply {
        self.wait(id, "its expiry", |reply| reply.message["error"]["code"] == -32602).await
    }
}

/// Whether a task in this status has ended.
pub fn is_terminal(status: &str) -> bool {
    matches!(status, "completed" | "failed" | "cancelled")
}
