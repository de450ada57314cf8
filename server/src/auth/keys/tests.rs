//! Keys that are kept fresh, by a clock that stands still until a test moves it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use tokio::sync::Semaphore;

use super::*;
use crate::auth::testing::{Signer, ed};

/// So many may read at once, unless a test shuts the gate by taking all of it.
const ALL: u32 = 1_000;

/// A source that a test fills, and that counts how often it is read.
#[derive(Clone, Debug)]
struct Shelf(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    says: Mutex<Result<Vec<u8>, String>>,
    read: AtomicUsize,
    gate: Semaphore,
}

impl Shelf {
    fn new(signers: &[&Signer]) -> Self {
        let shelf = Self(Arc::new(Inner {
            says: Mutex::new(Ok(Vec::new())),
            read: AtomicUsize::new(0),
            gate: Semaphore::new(ALL as usize),
        }));
        shelf.put(signers);
        shelf
    }

    fn put(&self, signers: &[&Signer]) {
        let keys: Vec<_> = signers.iter().map(|signer| signer.jwk()).collect();
        self.say(Ok(json!({ "keys": keys }).to_string().into_bytes()));
    }

    fn say(&self, says: Result<Vec<u8>, String>) {
        *self.0.says.lock().unwrap() = says;
    }

    fn readings(&self) -> usize {
        self.0.read.load(Ordering::SeqCst)
    }
}

impl Source for Shelf {
    fn read(&self) -> BoxFuture<'_, Result<Vec<u8>, String>> {
        self.0.read.fetch_add(1, Ordering::SeqCst);
        Box::pin(async {
            let _open = self.0.gate.acquire().await.unwrap();
            self.0.says.lock().unwrap().clone()
        })
    }

    fn pause(&self) -> Duration {
        PAUSE_FETCHED
    }
}

fn by(kid: &str) -> Signed {
    Signed { alg: Algorithm::EdDSA, kid: Some(kid.to_owned()) }
}

const UNKNOWN: NoKey = NoKey::Invalid(Invalid::UnknownKey);

#[tokio::test(start_paused = true)]
async fn keys_are_read_once_and_kept() {
    let shelf = Shelf::new(&[&ed("a")]);
    let keys = PublicKeys::new(shelf.clone());
    for _ in 0..100 {
        keys.find(&by("a")).await.unwrap();
    }
    assert_eq!(shelf.readings(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_key_is_looked_for_once_however_often_it_is_asked_for() {
    let shelf = Shelf::new(&[&ed("a")]);
    let keys = PublicKeys::new(shelf.clone());
    keys.find(&by("a")).await.unwrap();
    for n in 0..100 {
        assert_eq!(keys.find(&by(&format!("made up {n}"))).await.unwrap_err(), UNKNOWN);
    }
    assert_eq!(shelf.readings(), 1, "the set was read a moment ago");
    tokio::time::advance(PAUSE_FETCHED).await;
    for _ in 0..100 {
        assert_eq!(keys.find(&by("made up")).await.unwrap_err(), UNKNOWN);
    }
    assert_eq!(shelf.readings(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_was_rotated_in_is_found_and_one_that_was_rotated_out_is_not() {
    let shelf = Shelf::new(&[&ed("old")]);
    let keys = PublicKeys::new(shelf.clone());
    keys.find(&by("old")).await.unwrap();
    shelf.put(&[&ed("new")]);
    tokio::time::advance(PAUSE_FETCHED).await;
    keys.find(&by("new")).await.unwrap();
    assert_eq!(keys.find(&by("old")).await.unwrap_err(), UNKNOWN);
}

#[tokio::test(start_paused = true)]
async fn many_that_miss_the_same_key_wait_for_one_reading() {
    let shelf = Shelf::new(&[&ed("a")]);
    let keys = PublicKeys::new(shelf.clone());
    let closed = shelf.0.gate.acquire_many(ALL).await.unwrap();
    let waiting: Vec<_> = (0..50)
        .map(|_| {
            let keys = Arc::clone(&keys);
            tokio::spawn(async move { keys.find(&by("a")).await.is_ok() })
        })
        .collect();
    tokio::task::yield_now().await;
    drop(closed);
    for found in waiting {
        assert!(found.await.unwrap());
    }
    assert_eq!(shelf.readings(), 1);
}

#[tokio::test(start_paused = true)]
async fn old_keys_stay_in_use_while_their_source_is_down() {
    let shelf = Shelf::new(&[&ed("a")]);
    let keys = PublicKeys::new(shelf.clone());
    keys.find(&by("a")).await.unwrap();
    for broken in [Err("down".to_owned()), Ok(b"<html>".to_vec()), Ok(br#"{"keys":[]}"#.to_vec())] {
        shelf.say(broken);
        let before = shelf.readings();
        tokio::time::advance(MAX_AGE).await;
        keys.find(&by("a")).await.unwrap();
        while shelf.readings() == before {
            tokio::task::yield_now().await;
        }
        keys.find(&by("a")).await.unwrap();
        assert_eq!(shelf.readings(), before + 1, "a source that is down is not asked all the time");
        assert_eq!(keys.find(&by("b")).await.unwrap_err(), UNKNOWN);
    }
}

#[tokio::test(start_paused = true)]
async fn an_old_set_is_read_again_beside_the_request() {
    let shelf = Shelf::new(&[&ed("a")]);
    let keys = PublicKeys::new(shelf.clone());
    keys.find(&by("a")).await.unwrap();
    shelf.put(&[&ed("b")]);
    tokio::time::advance(MAX_AGE).await;
    keys.find(&by("a")).await.expect("what is there answers this one");
    while keys.kept().set.find(&by("a")).is_ok() {
        tokio::task::yield_now().await;
    }
    assert_eq!(shelf.readings(), 2);
}

#[tokio::test(start_paused = true)]
async fn without_a_single_key_nobody_is_blamed() {
    let shelf = Shelf::new(&[]);
    shelf.say(Err("down".to_owned()));
    let keys = PublicKeys::new(shelf.clone());
    assert_eq!(keys.find(&by("a")).await.unwrap_err(), NoKey::Unavailable);
    let hs = Signed { alg: Algorithm::HS256, kid: None };
    assert_eq!(keys.find(&hs).await.unwrap_err(), NoKey::Invalid(Invalid::Algorithm));
    assert_eq!(shelf.readings(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_source_that_never_answers_is_given_up() {
    let shelf = Shelf::new(&[&ed("a")]);
    let _closed = shelf.0.gate.acquire_many(ALL).await.unwrap();
    let keys = PublicKeys::new(shelf.clone());
    let start = Instant::now();
    assert_eq!(keys.find(&by("a")).await.unwrap_err(), NoKey::Unavailable);
    assert_eq!(start.elapsed(), TIMEOUT);
}

#[tokio::test]
async fn a_secret_is_for_hs256_alone() {
    let secret = DecodingKey::from_secret(b"0123456789abcdef0123456789abcdef").unwrap();
    let keys = Keys::Secret(Box::new(secret));
    for alg in [Algorithm::RS256, Algorithm::ES256, Algorithm::EdDSA, Algorithm::HS384, Algorithm::HS512] {
        let found = keys.find(&Signed { alg, kid: None }).await;
        assert_eq!(found.unwrap_err(), NoKey::Invalid(Invalid::Algorithm), "{alg:?}");
    }
    assert!(keys.find(&Signed { alg: Algorithm::HS256, kid: Some("any".into()) }).await.is_ok());
}

#[tokio::test]
async fn a_file_is_read_at_the_start_and_again_when_a_key_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("keys.json");
    let wrong = from_place(&Jwks::File(path.clone())).unwrap_err();
    assert!(wrong.starts_with("auth.jwks: file:") && wrong.contains("keys.json"), "{wrong}");
    std::fs::write(&path, "no keys").unwrap();
    assert!(from_place(&Jwks::File(path.clone())).unwrap_err().contains("JSON Web Key Set"));
    std::fs::write(&path, json!({ "keys": [ed("a").jwk()] }).to_string()).unwrap();
    let keys = from_place(&Jwks::File(path.clone())).unwrap();
    std::fs::write(&path, json!({ "keys": [ed("b").jwk()] }).to_string()).unwrap();
    keys.find(&by("b")).await.unwrap();
}

#[test]
fn a_url_that_is_not_https_is_never_asked() {
    let fetched = Fetched::new("http://127.0.0.1:9/jwks").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    assert!(runtime.block_on(fetched.read()).is_err());
    assert!(from_place(&Jwks::Https("https://issuer.example/jwks".into())).is_ok());
}
