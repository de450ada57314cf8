//! What the planner makes of the store's statements on a table of some size: nothing reads all of it.

use tokkuri_server::tokkuri_core::id::{NodeId, Revision};
use tokkuri_server::tokkuri_core::store::{Filter, Outcome, Request};
use tokkuri_server::tokkuri_core::task::Status;
use tokkuri_server::tokkuri_core::time::Millis;
use tokkuri_tests::harness::Postgres;

use super::{NODE, applied, ask, draft, id, inserted, open, owner};

/// 50,000 tasks: of 200 owners, on 5 nodes, one in ten live, one in a hundred over.
const FILL: &str = "insert into tokkuri_tasks
    select substr(sha256(convert_to(n::text, 'UTF8')), 1, 18), 1, case when n % 10 = 0 then n / 10 % 2 else 2 + n % 3 end,
        sha256(convert_to('owner ' || n % 200, 'UTF8')), 'tool', n % 5, 1, now, now, now,
        now + case when n % 100 = 7 then -n else 3600000 + n end, null, convert_to(repeat('x', 500), 'UTF8')
    from generate_series(1, 50000) n, (select tokkuri_ms() - n * 10 from (select 1) one, (select 0 as n) zero) c (now)";

#[tokio::test]
async fn nothing_reads_the_whole_table() {
    let url = Postgres::shared().url();
    let store = open(&url).await;
    Postgres::shared().psql(&url, FILL);
    let task = inserted(&store, draft(1)).await;
    let next = applied(&task, task.updated, tokkuri_server::tokkuri_core::task::Command::Cancel);
    let page = |filter: Filter| Request::Page { filter, after: Some(id(3)), limit: 100 };
    let everything = Filter::default;
    let requests = [
        Request::Load { id: id(1) },
        Request::Insert { draft: Box::new(draft(2)), limit: Some(100) },
        Request::Commit { expected: Revision::FIRST, task: next },
        Request::Count { owner: owner("a") },
        Request::Due { limit: 500 },
        Request::Remove { rows: vec![(id(1), Revision::FIRST)] },
        Request::Orphans { limit: 500 },
        Request::TouchedSince { node: NODE, since: Millis(0) },
        page(everything()),
        Request::Page { filter: everything(), after: None, limit: 100 },
        page(Filter { statuses: vec![Status::Working], ..everything() }),
        page(Filter { statuses: vec![Status::Failed], ..everything() }),
        page(Filter { tool: Some("tool".into()), ..everything() }),
        page(Filter { owner: Some(owner("a")), ..everything() }),
        page(Filter { node: Some(NodeId(3)), created_before: Some(Millis(1)), ..everything() }),
    ];
    // Whether the planner knows the table or not.
    for analyzed in [false, true] {
        if analyzed {
            Postgres::shared().psql(&url, "analyze tokkuri_tasks");
        }
        let store = open(&url).await;
        for request in &requests {
            let plan = store.plan(request).await.unwrap();
            if analyzed {
                println!("{}\n{plan}\n", format!("{request:?}").split([' ', '{']).next().unwrap());
            }
            assert!(!plan.contains("Seq Scan on tokkuri_tasks"), "{request:?}:\n{plan}");
            let counts = !matches!(request, Request::Insert { .. });
            assert!(!counts || plan.contains("Index") && plan.contains("tokkuri_t"), "{request:?}:\n{plan}");
        }
    }
}

/// What is answered from such a table is what was asked for.
#[tokio::test]
async fn sweeps_and_pages_of_a_large_table_are_right() {
    let url = Postgres::shared().url();
    let store = open(&url).await;
    Postgres::shared().psql(&url, FILL);
    let Outcome::Due(due) = ask(&store, Request::Due { limit: 1_000 }).await.outcome else { panic!("what is due") };
    assert_eq!(due.len(), 500);
    let rows: Vec<_> = due.iter().map(|row| (row.id, row.revision)).collect();
    let Outcome::Removed(removed) = ask(&store, Request::Remove { rows }).await.outcome else { panic!("removed") };
    assert_eq!(removed.len(), 500);
    assert_eq!(ask(&store, Request::Due { limit: 1_000 }).await.outcome, Outcome::Due(Vec::new()));
    let touched = Request::TouchedSince { node: NodeId(3), since: Millis(0) };
    let Outcome::Touched(touched) = ask(&store, touched).await.outcome else { panic!("what was touched") };
    assert_eq!(touched.len(), 10_000);
}
