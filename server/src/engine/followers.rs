//! Who follows tasks on this node: fed by every reading of the store that comes by, and by looks of the node's own at tasks that
//! run elsewhere.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::future::join_all;
use tokkuri_core::Text;
use tokkuri_core::access::Caller;
use tokkuri_core::id::TaskId;
use tokkuri_core::procedure::{Answered, Seen};
use tokkuri_core::signal::Subscription;
use tokkuri_core::store::{Outcome, Request, Unavailable};
use tokkuri_core::time::Millis;
use tokkuri_core::wire::Json;

use crate::engine::Engine;

/// How many tasks are read at a time.
const AT_ONCE: usize = 32;

/// Why nothing is followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NotFollowed {
    /// Some of the tasks are the caller's, but they lack scopes.
    LacksScope {
        /// All that the tasks need.
        needed: Vec<Text>,
    },
    /// The store is not available; the caller may try again.
    Unavailable(Unavailable),
}

impl Engine {
    /// A reading of the store reaches whoever waits for it here: the task's run and its followers.
    ///
    /// Followers are shown every reading, not only those of changes that were published: one that settles a doubtful commit, or
    /// a conflict with another node, may be newer than any that they saw.
    pub(super) fn observe(&self, id: TaskId, seen: &Seen<Json>) {
        self.registry.observe(id, seen);
        self.followers.observe(id, seen);
    }

    /// Follows these tasks. Those that are unknown, expired or somebody else's are left out; the subscription says which
    /// are left, in the order given.
    ///
    /// # Errors
    /// If the caller lacks scopes for a task of theirs, or the store is not available.
    pub(crate) async fn follow(
        self: &Arc<Self>,
        caller: Caller,
        ids: Vec<TaskId>,
    ) -> Result<Subscription<Json>, NotFollowed> {
        // Registered before it is read: whatever is stored after the reading is published to it.
        let mut subscription = self.followers.follow(&Arc::new(caller.clone()), ids.clone());
        let mut lacking = BTreeSet::new();
        for some in ids.chunks(AT_ONCE) {
            let read = join_all(some.iter().map(|id| self.get(*id, caller.clone()))).await;
            for (id, answered) in some.iter().zip(read) {
                match answered {
                    Answered::Task(task) => {
                        self.followers.observe(*id, &Seen::Task(task));
                    }
                    Answered::Absent => subscription.leave(*id),
                    Answered::LacksScope { needed } => lacking.extend(needed),
                    Answered::Unavailable(unavailable) => return Err(NotFollowed::Unavailable(unavailable)),
                }
            }
        }
        match lacking.is_empty() {
            true => Ok(subscription),
            false => Err(NotFollowed::LacksScope { needed: lacking.into_iter().collect() }),
        }
    }

    /// Looks at the followed tasks whose changes, or whose end by their time to live, may come by on no other way: one load
    /// each. `now` is the store's.
    pub(super) async fn look_for_followers(&self, now: Millis) {
        if self.followers.is_empty() {
            return;
        }
        let here: BTreeSet<TaskId> = self.registry.runs().into_iter().map(|(id, _)| id).collect();
        let open = self.followers.open(now, |id| here.contains(&id));
        for some in open.chunks(AT_ONCE) {
            let loads = some.iter().map(|id| self.ask(Request::Load { id: *id }));
            for (id, answer) in some.iter().zip(join_all(loads).await) {
                // A store that fails is asked again at the next look.
                if let Outcome::Loaded(task) = answer.outcome {
                    self.followers.observe(*id, &task.map_or(Seen::Gone, Seen::Task));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use tokkuri_core::access::{Owner, Scopes};
    use tokkuri_core::id::NodeId;
    use tokkuri_core::procedure::Write;
    use tokkuri_core::store::Node;
    use tokkuri_core::task::{Command, Draft, Status};

    use super::*;
    use crate::engine::{NodeLoop, TaskSettings};
    use crate::store::{MemoryStore, Store};
    use crate::tool::ToolSet;

    fn caller(principal: &str, scopes: Scopes) -> Caller {
        let owner = Owner { principal: principal.into(), server: "s".into(), client: "".into(), resource: "".into() };
        Caller { owner, scopes }
    }

    fn engine(store: &Arc<dyn Store>) -> Arc<Engine> {
        let settings = TaskSettings { poll_interval_ms: 10, ..TaskSettings::default() };
        Arc::new(Engine::new(Arc::clone(store), ToolSet::new(), settings).unwrap())
    }

    /// A task of `a`'s that some other node runs.
    async fn insert(store: &Arc<dyn Store>, id: u8, ttl_ms: u64, scopes: &[&str]) -> TaskId {
        let owner = caller("a", Scopes::Unrestricted).owner;
        let arguments = Json::parse("{}").unwrap();
        let draft = Draft {
            scopes: scopes.iter().map(|scope| Text::from(*scope)).collect(),
            ttl_ms,
            poll_interval_ms: 10,
            keep_ms: 0,
            ..Draft::new(TaskId::from_bytes([id; 18]), owner, "t", arguments, NodeId(1))
        };
        let node = Node { id: NodeId(1), name: "other".into(), address: None, version: "1".into() };
        store.carry_out(Request::Join { node: Box::new(node), lease_ms: 60_000 }).answer().await;
        let inserted = store.carry_out(Request::Insert { draft: Box::new(draft), limit: None }).answer().await;
        let Outcome::Inserted(task) = inserted.outcome else { panic!("it was not inserted: {inserted:?}") };
        task.id
    }

    async fn next(subscription: &mut Subscription<Json>) -> Option<(TaskId, Status)> {
        let next = poll_fn(|cx| subscription.poll_next(cx));
        let told = tokio::time::timeout(Duration::from_secs(10), next).await.expect("something within ten seconds");
        told.map(|task| (task.id, task.status()))
    }

    #[tokio::test]
    async fn what_is_not_the_callers_is_left_out_and_the_order_is_kept() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let (one, two) = (insert(&store, 1, 60_000, &[]).await, insert(&store, 2, 60_000, &[]).await);
        let engine = engine(&store);
        let never = TaskId::from_bytes([9; 18]);
        let mine = engine.follow(caller("a", Scopes::Unrestricted), vec![two, never, one]).await.unwrap();
        assert_eq!(mine.open(), [two, one]);
        let theirs = engine.follow(caller("b", Scopes::Unrestricted), vec![one, two]).await.unwrap();
        assert!(theirs.open().is_empty());
        drop((mine, theirs));
        assert!(engine.followers.is_empty());
    }

    #[tokio::test]
    async fn lacking_scopes_are_named_all_at_once() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let (one, two) = (insert(&store, 1, 60_000, &["x", "y"]).await, insert(&store, 2, 60_000, &["z"]).await);
        let engine = engine(&store);
        let granted = Scopes::Granted(BTreeSet::from(["x".into()]));
        let refused = engine.follow(caller("a", granted), vec![one, two]).await.unwrap_err();
        assert_eq!(refused, NotFollowed::LacksScope { needed: vec!["x".into(), "y".into(), "z".into()] });
        assert!(engine.followers.is_empty());
    }

    #[tokio::test]
    async fn a_task_that_another_node_runs_is_followed_by_looking() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let (here, there) = (engine(&store), engine(&store));
        let id = insert(&store, 1, 60_000, &[]).await;
        let looking = tokio::spawn(NodeLoop::new(Arc::clone(&here)).run());
        let mut subscription = here.follow(caller("a", Scopes::Unrestricted), vec![id]).await.unwrap();
        assert_eq!(next(&mut subscription).await, Some((id, Status::Working)));
        let by = tokkuri_core::id::Attempt::FIRST;
        let result = Json::parse("{}").unwrap();
        there.drive(Write::end(id, Command::Complete { by, result, message: None })).await;
        assert_eq!(next(&mut subscription).await, Some((id, Status::Completed)));
        assert_eq!(next(&mut subscription).await, None);
        looking.abort();
    }

    #[tokio::test]
    async fn followers_of_a_task_that_expires_are_told_nothing_more() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let engine = engine(&store);
        let id = insert(&store, 1, 300, &[]).await;
        let mut subscription = engine.follow(caller("a", Scopes::Unrestricted), vec![id]).await.unwrap();
        assert_eq!(next(&mut subscription).await, Some((id, Status::Working)));
        let looking = tokio::spawn(NodeLoop::new(Arc::clone(&engine)).run());
        assert_eq!(next(&mut subscription).await, None);
        looking.abort();
    }
}
