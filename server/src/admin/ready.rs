//! Whether a load balancer should send requests here.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;
use tokkuri_core::id::TaskId;
use tokkuri_core::store::{Outcome, Request};

use crate::engine::Engine;

/// How long the store may take to answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// For how long a look is good for others who ask, so that many who ask are one question to the store.
const GOOD_FOR: Duration = Duration::from_millis(100);

type Verdict = Result<(), &'static str>;

/// Whether the server can do its work, and if not, why.
#[derive(Debug)]
pub(crate) struct Readiness {
    engine: Arc<Engine>,
    begun: AtomicBool,
    last: Mutex<Option<(Instant, Verdict)>>,
}

impl Readiness {
    pub(super) fn new(engine: Arc<Engine>) -> Self {
        Self { engine, begun: AtomicBool::new(false), last: Mutex::default() }
    }

    /// The server has taken up its work.
    pub(crate) fn begun(&self) {
        self.begun.store(true, Ordering::Relaxed);
    }

    /// Looks.
    ///
    /// # Errors
    /// Why it is not ready.
    pub(super) async fn look(&self) -> Verdict {
        if self.engine.stopping().is_cancelled() {
            return Err("the server is shutting down");
        }
        if self.engine.is_draining() {
            return Err("the server drains: it takes no new tasks");
        }
        if !self.begun.load(Ordering::Relaxed) {
            return Err("the server is starting: it takes over what earlier ones left behind");
        }
        self.store_lately().await?;
        match self.engine.lease_held() {
            true => Ok(()),
            false => Err("the server holds no lease: others may think that it is gone"),
        }
    }

    async fn store_lately(&self) -> Verdict {
        let mut last = self.last.lock().await;
        if let Some((looked, verdict)) = *last
            && looked.elapsed() < GOOD_FOR
        {
            return verdict;
        }
        let verdict = self.store().await;
        *last = Some((Instant::now(), verdict));
        verdict
    }

    /// What the store says of a task that nobody has.
    async fn store(&self) -> Verdict {
        let nobodys = Request::Load { id: TaskId::from_bytes([0; 18]) };
        match tokio::time::timeout(PATIENCE, self.engine.ask(nobodys)).await {
            Ok(answer) => match answer.outcome {
                Outcome::Unavailable(unavailable) => {
                    // Why is for the log: it may tell where the store is.
                    tracing::debug!(why = %unavailable.why, "not ready");
                    Err("the store is not available")
                }
                _ => Ok(()),
            },
            Err(_) => Err("the store has not answered within a second"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use tokkuri_core::store::{Answer, Unavailable};
    use tokkuri_core::time::Millis;
    use tokkuri_core::wire::Json;

    use super::*;
    use crate::engine::{NodeLoop, TaskSettings};
    use crate::store::{MemoryStore, Reply, Store};
    use crate::tool::ToolSet;

    #[derive(Clone, Copy, Debug)]
    enum Mood {
        Answers,
        Fails,
        Sleeps,
    }

    #[derive(Debug)]
    struct Moody {
        mood: std::sync::Mutex<Mood>,
        loads: AtomicUsize,
        inner: MemoryStore,
    }

    impl Moody {
        fn set(&self, mood: Mood) {
            *self.mood.lock().unwrap() = mood;
        }
    }

    impl Store for Moody {
        fn carry_out(&self, request: Request<Json>) -> Reply {
            if let Request::Load { .. } = request {
                self.loads.fetch_add(1, Ordering::Relaxed);
            }
            let unavailable = Unavailable { why: "postgres://user:secret@host".into(), maybe_done: false };
            match *self.mood.lock().unwrap() {
                Mood::Answers => self.inner.carry_out(request),
                Mood::Fails => Reply::Now(Answer { now: Millis(1), outcome: Outcome::Unavailable(unavailable) }),
                Mood::Sleeps => Reply::Later(Box::pin(std::future::pending())),
            }
        }
    }

    fn readiness() -> (Arc<Moody>, Readiness) {
        let store =
            Arc::new(Moody { mood: Mood::Answers.into(), loads: AtomicUsize::new(0), inner: MemoryStore::new() });
        let engine =
            Engine::new(Arc::clone(&store) as Arc<dyn Store>, ToolSet::new(), TaskSettings::default()).unwrap();
        (store, Readiness::new(Arc::new(engine)))
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_ready_while_the_store_answers() {
        let (store, readiness) = readiness();
        assert!(readiness.look().await.unwrap_err().contains("starting"));
        readiness.begun();
        assert!(readiness.look().await.unwrap_err().contains("lease"));
        NodeLoop::new(Arc::clone(&readiness.engine)).begin().await;
        assert_eq!(readiness.look().await, Ok(()));
        for (mood, reason) in [(Mood::Fails, "not available"), (Mood::Sleeps, "within a second")] {
            store.set(mood);
            tokio::time::advance(GOOD_FOR).await;
            let said = readiness.look().await.unwrap_err();
            assert!(said.contains(reason) && !said.contains("secret"), "{said}");
        }
        store.set(Mood::Answers);
        tokio::time::advance(GOOD_FOR).await;
        assert_eq!(readiness.look().await, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn many_who_ask_are_one_question() {
        let (store, readiness) = readiness();
        NodeLoop::new(Arc::clone(&readiness.engine)).begin().await;
        readiness.begun();
        for _ in 0..100 {
            assert_eq!(readiness.look().await, Ok(()));
        }
        assert_eq!(store.loads.load(Ordering::Relaxed), 1);
    }
}
