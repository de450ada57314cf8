//! Follows a task to its end: listens where the server lets it, polls where not, shows its status, answers its questions, cancels it on Ctrl-C.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    io::Write,
    time::Duration,
};

use tokio::time::Instant;

use super::{
    Exit, Stop, content,
    interrupt::Interrupts,
    questions::{Answerer, message},
    show::Show,
};
use crate::client::{Client, ClientError, Following, Question, Task, TaskStatus};

/// The first pause between two polls; short tasks shall feel instant. It grows up to what the server suggests.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// The pause where the server suggests none.
const USUAL_PAUSE: Duration = Duration::from_secs(1);

/// How long a server may be gone (restarted, say) before following its task is given up.
const GONE: Duration = Duration::from_secs(15);

/// How long a silent stream is listened to before the task is asked for: that a task has expired is told by no stream.
const LISTEN: Duration = Duration::from_secs(15);

/// What Ctrl-C means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnInterrupt {
    /// Cancel the task, then wait for its end; a second one leaves.
    Cancel,
    /// Leave the task alone and go.
    Leave,
}

/// How following ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The task is terminal; whether it was cancelled from here.
    Task {
        /// Its last state.
        task: Box<Task>,
        /// Whether Ctrl-C cancelled it.
        cancelled_here: bool,
    },
    /// The user left.
    Left,
}

/// Everything that following needs.
#[derive(Debug)]
pub(crate) struct Follow<'a> {
    pub(crate) client: &'a Client,
    pub(crate) show: &'a mut Show,
    pub(crate) interrupts: &'a mut Interrupts,
    pub(crate) answerer: Answerer,
    pub(crate) on_interrupt: OnInterrupt,
    /// Whether a question that nobody here can answer ends it, or is only told.
    pub(crate) must_answer: bool,
    /// The stream of the task's states, while there is one. Without it the task is polled.
    pub(crate) stream: Option<Following>,
    /// The `--url …` that other commands need to reach the same server.
    pub(crate) url_flag: String,
}

/// What came first.
enum Step<T> {
    Done(T),
    Interrupted,
}

impl Follow<'_> {
    /// Follows `task` until it is terminal.
    pub(crate) async fn run(mut self, mut task: Task) -> anyhow::Result<Ended> {
        let mut answered = BTreeSet::new();
        let mut cancelled_here = false;
        let mut pause = FIRST_PAUSE;
        loop {
            if let Some(message) = &task.status_message {
                self.show.status(message);
            }
            if task.status.is_terminal() {
                self.show.clear();
                return Ok(Ended::Task { task: Box::new(task), cancelled_here });
            }
            let fresh: BTreeMap<String, Question> = task
                .questions
                .iter()
                .filter(|(key, _)| !answered.contains(*key))
                .map(|(key, question)| (key.clone(), question.clone()))
                .collect();
            let mut asked = Step::Done(());
            if !fresh.is_empty() && !cancelled_here {
                answered.extend(fresh.keys().cloned());
                asked = self.questions(&task.id, &fresh).await?;
                pause = FIRST_PAUSE;
            }
            let step = match asked {
                Step::Done(()) => self.poll(&task, pause).await?,
                Step::Interrupted => Step::Interrupted,
            };
            pause = longer(pause, &task);
            if matches!(step, Step::Interrupted) {
                if cancelled_here || self.on_interrupt == OnInterrupt::Leave {
                    return Ok(Ended::Left);
                }
                self.show.line("cancelling (Ctrl-C again leaves without waiting) …");
                match first(self.interrupts, self.client.cancel(&task.id)).await {
                    Step::Done(acknowledged) => acknowledged?,
                    Step::Interrupted => return Ok(Ended::Left),
                }
                cancelled_here = true;
                pause = FIRST_PAUSE;
            }
            if let Step::Done(polled) = step {
                task = polled;
            }
        }
    }

    /// Waits for the next state of the task: the server tells it, or it is asked for.
    async fn poll(&mut self, task: &Task, pause: Duration) -> anyhow::Result<Step<Task>> {
        if let Some(stream) = &mut self.stream {
            match first(self.interrupts, tokio::time::timeout(LISTEN, stream.next())).await {
                Step::Interrupted => return Ok(Step::Interrupted),
                Step::Done(Ok(Ok(Some(task)))) => return Ok(Step::Done(task)),
                // It has ended, for whatever reason: polling tells more, and waits for a server that is restarted.
                Step::Done(Ok(Ok(None) | Err(_))) => self.stream = None,
                Step::Done(Err(_)) => {}
            }
        }
        let (client, show) = (self.client, &*self.show);
        let polled = first(self.interrupts, async {
            tokio::time::sleep(pause).await;
            patient(client, &task.id, show).await
        });
        match polled.await {
            Step::Done(task) => Ok(Step::Done(task?)),
            Step::Interrupted => Ok(Step::Interrupted),
        }
    }

    async fn questions(&mut self, id: &str, fresh: &BTreeMap<String, Question>) -> anyhow::Result<Step<()>> {
        let elsewhere = format!("tokkuri task answer {id} KEY{}", self.url_flag);
        if self.answerer == Answerer::Nobody && !self.must_answer {
            for (key, question) in fresh {
                self.show.line(&format!("{key:?} is asked: {}", message(question)));
                let how = elsewhere.replace("KEY", &format!("{key} accept --json '{{…}}'"));
                self.show.line(&format!("  answer: {how}"));
            }
            return Ok(Step::Done(()));
        }
        let answers = self.answerer.answer(fresh, self.show, &elsewhere);
        match first(self.interrupts, answers).await {
            Step::Done(answers) => {
                self.client.answer(id, answers?).await?;
                Ok(Step::Done(()))
            }
            Step::Interrupted => Ok(Step::Interrupted),
        }
    }
}

/// Prints how a task ended and says what to exit with.
pub(crate) fn finish(out: &mut dyn Write, ended: Ended, terminal: bool) -> anyhow::Result<Exit> {
    let (task, cancelled_here) = match ended {
        Ended::Left => return Ok(Exit::Interrupted),
        Ended::Task { task, cancelled_here } => (task, cancelled_here),
    };
    match (task.status, task.result, task.error) {
        (TaskStatus::Completed, Some(result), _) => {
            content::print(out, &result, terminal)?;
            Ok(if result.is_error { Exit::Failed } else { Exit::Ok })
        }
        (TaskStatus::Failed, _, Some(error)) => {
            let line = format!("the task failed: {} (code {})", error.message, error.code);
            Err(Stop::new(Exit::Failed, line).into())
        }
        (TaskStatus::Cancelled, _, _) if cancelled_here => {
            eprintln!("cancelled");
            Ok(Exit::Interrupted)
        }
        (TaskStatus::Cancelled, _, _) => Err(Stop::new(Exit::Failed, "the task was cancelled by someone else").into()),
        (status, _, _) => Err(ClientError::Unexpected {
            method: "tasks/get",
            what: format!("a task that is {} without what belongs to it", status.as_str()),
        }
        .into()),
    }
}

/// Asks for a task, and again for a while if the server is gone.
async fn patient(client: &Client, id: &str, show: &Show) -> Result<Task, ClientError> {
    let mut pause = FIRST_PAUSE;
    let mut gone_since: Option<Instant> = None;
    loop {
        match client.task(id).await {
            Err(error @ (ClientError::Unreachable { .. } | ClientError::BrokenOff { .. })) => {
                let since = match gone_since {
                    Some(since) => since,
                    None => {
                        show.line(&format!("{error}\ntrying again for {} s", GONE.as_secs()));
                        *gone_since.insert(Instant::now())
                    }
                };
                if since.elapsed() >= GONE {
                    return Err(error);
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(USUAL_PAUSE);
            }
            answer => return answer,
        }
    }
}

async fn first<T>(interrupts: &mut Interrupts, work: impl Future<Output = T>) -> Step<T> {
    tokio::select! {
        biased;
        done = work => Step::Done(done),
        () = interrupts.next() => Step::Interrupted,
    }
}

fn longer(pause: Duration, task: &Task) -> Duration {
    let suggested = task.poll_interval_ms.map_or(USUAL_PAUSE, Duration::from_millis);
    (pause * 3 / 2).min(suggested.max(FIRST_PAUSE))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::client::scripted::{Answer, Scripted};

    fn task(status: &str) -> Value {
        let mut task = json!({ "resultType": "complete", "taskId": "T1", "status": status, "ttlMs": null,
            "pollIntervalMs": 60_000, "createdAt": "", "lastUpdatedAt": "" });
        if status == "completed" {
            task["result"] = json!({ "content": [] });
        }
        task
    }

    const WORKING_THEN_CUT: &str = concat!(
        r#"data: {"method":"notifications/subscriptions/acknowledged","params":{"notifications":{"taskIds":["T1"]}}}"#,
        "\n\n",
        r#"data: {"method":"notifications/tasks","params":{"taskId":"T1","status":"working","createdAt":"","lastUpdatedAt":""}}"#,
        "\n\n"
    );

    const TO_THE_END: &str = concat!(
        r#"data: {"method":"notifications/subscriptions/acknowledged","params":{"notifications":{"taskIds":["T1"]}}}"#,
        "\n\n",
        r#"data: {"method":"notifications/tasks","params":{"taskId":"T1","status":"completed","createdAt":"","lastUpdatedAt":"","result":{"content":[]}}}"#,
        "\n\n"
    );

    /// Follows a task that is working; how it ended, and how often it was asked for.
    async fn follow(listen: Answer) -> (TaskStatus, usize) {
        let server = Scripted::start(move |request| match request.method() {
            "subscriptions/listen" => listen.clone(),
            _ => Answer::Result(task("completed")),
        })
        .await;
        let client = Client::new(&server.url, None).unwrap();
        let stream = client.follow("T1").await.ok();
        let following = Follow {
            client: &client,
            show: &mut Show::new("task"),
            interrupts: &mut Interrupts::listen(),
            answerer: Answerer::Nobody,
            on_interrupt: OnInterrupt::Leave,
            must_answer: false,
            stream,
            url_flag: String::new(),
        };
        let working = serde_json::from_value(task("working")).unwrap();
        let Ended::Task { task, .. } = following.run(working).await.unwrap() else { panic!("nobody left") };
        (task.status, server.of("tasks/get").len())
    }

    #[tokio::test]
    async fn a_task_is_heard_where_it_can_be_and_polled_where_not() {
        let stream = |body| Answer::Raw(200, vec![("content-type", "text/event-stream")], body);
        let refused = Answer::Error(404, json!({ "code": -32601, "message": "no such method" }));
        assert_eq!(follow(stream(TO_THE_END)).await, (TaskStatus::Completed, 0));
        assert_eq!(follow(stream(WORKING_THEN_CUT)).await, (TaskStatus::Completed, 1));
        assert_eq!(follow(refused).await, (TaskStatus::Completed, 1));
    }
}
