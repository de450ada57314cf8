//! Databases that become a store, and those that cannot.

use std::collections::BTreeSet;

use tokio::task::JoinSet;
use tokkuri_server::store::postgres::{OpenError, PostgresOptions};
use tokkuri_server::store::{PostgresStore, Store};
use tokkuri_tests::harness::Postgres;
use tokkuri_tests::harness::postgres::Options;

use super::{draft, inserted, load, open};

async fn refused(url: &str) -> OpenError {
    let refused = PostgresStore::open(PostgresOptions::from_url(url).unwrap()).await.unwrap_err();
    let line = refused.to_string();
    assert!(!line.contains('\n') && !line.contains("s3cret"), "one line without a password: {line}");
    refused
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_that_open_a_new_database_at_once_one_makes_its_tables() {
    for _ in 0..5 {
        let url = Postgres::shared().url();
        let mut openers = JoinSet::new();
        for n in 0..8 {
            let url = url.clone();
            openers.spawn(async move {
                let store = open(&url).await;
                inserted(&store, draft(n)).await;
                store.state_secret()
            });
        }
        let secrets: BTreeSet<_> = openers.join_all().await.into_iter().collect();
        assert_eq!(secrets.len(), 1, "one secret, drawn once");
        assert_ne!(secrets.first(), Some(&None));
        let psql = |sql: &str| Postgres::shared().psql(&url, sql);
        assert_eq!(psql("select version from tokkuri_schema"), "2");
        assert_eq!(psql("select count(*) from tokkuri_tasks"), "8");
        assert_eq!(psql("select count(*) from tokkuri_clock"), "1");
    }
}

#[tokio::test]
async fn a_schema_of_its_own_keeps_stores_in_one_database_apart() {
    let url = Postgres::shared().url();
    Postgres::shared().psql(&url, "create schema one; create schema \"Two\"");
    let one = open(&format!("{url}?options=-csearch_path%3Done")).await;
    let two = open(&format!("{url}?options=-csearch_path%3D%22Two%22")).await;
    let task = inserted(&one, draft(1)).await;
    assert_eq!(load(&two, task.id).await, None);
    assert_ne!(one.state_secret(), two.state_secret());
    let again = open(&format!("{url}?options=-csearch_path%3Done")).await;
    assert_eq!(load(&again, task.id).await, Some(task));
    assert_eq!(again.state_secret(), one.state_secret());
    let nowhere = refused(&format!("{url}?options=-csearch_path%3Dthree")).await;
    assert!(matches!(nowhere, OpenError::NoRights { .. }), "{nowhere}");
}

#[tokio::test]
async fn an_older_schema_becomes_the_newest_and_the_nodes_that_know_it_go_on() {
    let url = Postgres::shared().url();
    let psql = |sql: &str| Postgres::shared().psql(&url, sql);
    psql(include_str!("../../../server/src/store/postgres/schema/1.sql"));
    psql("update tokkuri_schema set version = 1");
    psql("select tokkuri_join(0, 7, 'a node', 60000, 60000)");
    let store = open(&url).await;
    assert_eq!(psql("select version from tokkuri_schema"), "2");
    let task = inserted(&store, draft(1)).await;
    assert_eq!(load(&store, task.id).await, Some(task));
    assert_eq!(psql("select until > now from tokkuri_renew(0, 7, 1, 2, 60000)"), "t", "as the older node says it");
}

#[tokio::test]
async fn a_newer_schema_is_refused_and_left_as_it_is() {
    let url = Postgres::shared().url();
    drop(open(&url).await);
    let psql = |sql: &str| Postgres::shared().psql(&url, sql);
    psql("update tokkuri_schema set version = 9999");
    let newer = refused(&url).await;
    assert!(matches!(newer, OpenError::Newer { found: 9999, .. }), "{newer}");
    assert!(newer.to_string().contains("newer version"), "{newer}");
    assert_eq!(psql("select version from tokkuri_schema"), "9999");
}

#[tokio::test]
async fn who_cannot_be_reached_or_is_not_there_is_named() {
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let nobody = refused(&format!("postgres://u:s3cret@127.0.0.1:{port}/d")).await;
    assert!(matches!(nobody, OpenError::Unreachable { .. }), "{nobody}");
    assert!(nobody.to_string().contains(&format!("127.0.0.1:{port}")), "{nobody}");

    let missing = refused(&Postgres::shared().url_of("nowhere")).await;
    assert!(missing.to_string().contains("createdb nowhere"), "{missing}");
}

#[tokio::test]
async fn who_may_not_is_told_so() {
    let dir = tempfile::tempdir().unwrap();
    let hba = dir.path().join("hba.conf");
    std::fs::write(&hba, "host all tokkuri 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n").unwrap();
    // The server runs as another user.
    std::fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let postgres = Options::default().setting("hba_file", hba.display()).start();
    let url = postgres.url();
    postgres.psql(&url, "create role me login password 's3cret'");
    let with = |user: &str| url.replace("postgres://tokkuri@", &format!("postgres://{user}@"));

    let wrong = refused(&with("me:s3cret-not")).await;
    assert!(matches!(wrong, OpenError::Refused { .. }), "{wrong}");
    let none = refused(&with("me")).await;
    assert!(matches!(none, OpenError::Refused { .. }), "{none}");
    let unknown = refused(&with("nobody:s3cret")).await;
    assert!(matches!(unknown, OpenError::Refused { .. }), "{unknown}");
    // Let in, but since Postgres 15 nobody may make tables in `public` unasked.
    let rights = refused(&with("me:s3cret")).await;
    assert!(matches!(rights, OpenError::NoRights { .. }), "{rights}");
    postgres.psql(&url, "create schema authorization me");
    let store = open(&with("me:s3cret")).await;
    assert!(!format!("{store:?}").contains("s3cret"));
    inserted(&store, draft(1)).await;
    assert_eq!(postgres.psql(&url, "select count(*) from me.tokkuri_tasks"), "1");
}
