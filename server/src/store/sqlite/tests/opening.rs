//! Files that can be opened, and files that cannot.

use super::*;

fn refused(path: &Path) -> OpenError {
    SqliteStore::open(path).map(drop).expect_err("a file that cannot be the store")
}

/// Changes the file behind the store's back.
fn tamper(path: &Path, sql: &str) {
    Connection::open(path).unwrap().execute_batch(sql).unwrap();
}

#[test]
fn a_second_store_on_one_file_is_refused_until_the_first_is_dropped() {
    let place = Place::new();
    let first = place.open();
    let error = refused(&place.path());
    assert!(matches!(error, OpenError::InUse { pid: Some(pid), .. } if pid == std::process::id()), "{error}");
    let alias = place.0.path().join("alias.db");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(place.path(), &alias).unwrap();
        assert!(matches!(refused(&alias), OpenError::InUse { .. }));
    }
    drop(first);
    drop(place.open());
}

#[test]
fn a_file_that_another_program_has_open_for_writing_is_refused() {
    let place = Place::new();
    drop(place.open());
    let other = Connection::open(place.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = refused(&place.path());
    assert!(matches!(error, OpenError::InUse { .. }), "{error}");
}

#[test]
fn the_secret_is_drawn_once_a_file() {
    let (place, other) = (Place::new(), Place::new());
    let secret = place.open().secret();
    assert_eq!(place.open().secret(), secret);
    assert_ne!(other.open().secret(), secret);
    assert!(!format!("{:?}", place.open()).contains(&format!("{secret:?}")));
}

#[test]
fn an_empty_file_becomes_a_store() {
    let place = Place::new();
    std::fs::write(place.path(), "").unwrap();
    drop(place.open());
    drop(place.open());
}

#[test]
fn a_newer_file_is_refused_and_left_as_it_is() {
    let place = Place::new();
    drop(place.open());
    tamper(&place.path(), "PRAGMA user_version = 99; CREATE TABLE of_the_future (x)");
    let error = refused(&place.path());
    assert!(matches!(error, OpenError::Newer { found: 99, known: super::super::schema::NEWEST, .. }), "{error}");
    assert!(error.to_string().contains("newer version"), "{error}");
    let other = Connection::open(place.path()).unwrap();
    assert_eq!(other.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0)), Ok(99));
}

#[test]
fn what_is_no_store_is_refused() {
    let place = Place::new();
    std::fs::write(place.path(), "not a database at all, but long enough to be read as the header of one, and more")
        .unwrap();
    assert!(matches!(refused(&place.path()), OpenError::NotADatabase { .. }));
    std::fs::remove_file(place.path()).unwrap();
    tamper(&place.path(), "CREATE TABLE somebody_elses (x)");
    assert!(matches!(refused(&place.path()), OpenError::Foreign { .. }));
    assert!(matches!(refused(place.0.path()), OpenError::Io { .. }));
    assert!(matches!(refused(&place.0.path().join("no/such/directory")), OpenError::Io { .. }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_cannot_be_read_is_not_passed_over() {
    let place = Place::new();
    inserted(&place.open(), 1).await;
    tamper(&place.path(), "UPDATE tasks SET task = substr(task, 2)");
    let error = refused(&place.path());
    assert!(matches!(error, OpenError::Corrupt { .. }), "{error}");
}

#[cfg(unix)]
#[test]
fn the_file_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let store = place.open();
    for entry in std::fs::read_dir(place.0.path()).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{:?} has mode {mode:o}", entry.file_name());
    }
    drop(store);
}
