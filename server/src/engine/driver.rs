//! The loop around every procedure: it does the I/O that it is asked for, and nothing else.

use std::sync::Arc;
use std::time::Duration;

use tokkuri_core::id::NodeId;
use tokkuri_core::procedure::{After, Input, Procedure, Seen, Step};
use tokkuri_core::task::Effect;
use tokkuri_core::wire::Json;

use crate::engine::Engine;
use crate::engine::probe::Point;
use crate::engine::recorder::Tape;

impl Engine {
    /// Carries a procedure to its end.
    pub(crate) async fn drive<Q>(self: &Arc<Self>, mut procedure: Q) -> Q::Reply
    where
        Q: Procedure<Payload = Json>,
    {
        let mut input = Input::Begin;
        let mut tape = Tape::default();
        loop {
            input = match procedure.step(input) {
                Step::Store(request) => {
                    if self.recorder.is_some() {
                        tape.asked(&procedure, &request);
                    }
                    let answered = Input::Store(self.ask(request).await);
                    if let Some(recorder) = &self.recorder {
                        tape.answered(recorder, &answered);
                    }
                    answered
                }
                Step::Pause { ms } => {
                    tokio::time::sleep(Duration::from_millis(ms)).await;
                    Input::Paused
                }
                Step::Host(local) => {
                    self.registry.local(local);
                    Input::Host
                }
                Step::Done { reply, after } => {
                    for after in after {
                        self.carry_out(after).await;
                    }
                    return reply;
                }
            };
        }
    }

    /// Everything is stored: what has to happen, happens.
    async fn carry_out(self: &Arc<Self>, after: After<Json>) {
        self.meters.stored(&after);
        for effect in &after.effects {
            match (effect, &after.seen) {
                // The table knows which incarnation of this node it is: what was stored for an earlier one is not started.
                (Effect::Start { .. }, Seen::Task(task)) => {
                    self.at(Point::BeforeRegister, after.id).await;
                    if self.registry.start(task) {
                        self.spawn_run(Arc::clone(task));
                    }
                }
                // Runs and followers here learn of it below.
                (Effect::Signal { node, .. }, Seen::Task(task)) if ![self.node(), NodeId::NOBODY].contains(node) => {
                    if let Some(peers) = self.peers.get() {
                        peers.signal(*node, after.id, task.revision);
                    }
                }
                (Effect::Publish, Seen::Task(task)) => {
                    if let Some(peers) = self.peers.get() {
                        peers.publish(after.id, task.revision);
                    }
                }
                // What has expired every node knows by its own clock.
                (Effect::Start { .. } | Effect::Signal { .. } | Effect::Publish | Effect::Release { .. }, _) => {}
            }
        }
        self.observe(after.id, &after.seen);
    }
}
