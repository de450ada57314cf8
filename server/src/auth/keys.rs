//! The keys at hand: read from the one configured place, kept, and read again when they may have changed.
//!
//! A key that nobody knows makes the set be read again at once, but never more often than every [`Source::pause`], however many
//! requests ask: they wait for the one reading under way. A set that is old is read again beside the request. While its source is down,
//! the keys of the last good reading go on being used.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::ACCEPT;
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use jsonwebtoken::{Algorithm, DecodingKey};
use tokio::time::Instant;

use crate::auth::jwks::KeySet;
use crate::auth::token::{Invalid, Signed};
use crate::config::Jwks;

/// Largest key set that is read.
const MAX_BYTES: usize = 256 << 10;
/// How old a key set may be before it is read again.
const MAX_AGE: Duration = Duration::from_secs(300);
/// How long one reading may take.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How long a fetched set is left alone, whoever asks.
const PAUSE_FETCHED: Duration = Duration::from_secs(10);
/// The same for a file, which costs little.
const PAUSE_FILE: Duration = Duration::from_millis(500);

/// What tokens are verified with.
#[derive(Clone, Debug)]
pub(crate) enum Keys {
    /// One secret, for HS256 and nothing else.
    Secret(Box<DecodingKey>),
    /// The issuer's public keys.
    Public(Arc<PublicKeys>),
}

/// Why there is no key for a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoKey {
    /// It is the token's fault.
    Invalid(Invalid),
    /// No key could ever be read.
    Unavailable,
}

/// Where key sets come from.
pub(crate) trait Source: fmt::Debug + Send + Sync + 'static {
    /// Reads it.
    fn read(&self) -> BoxFuture<'_, Result<Vec<u8>, String>>;
    /// The least time between two readings.
    fn pause(&self) -> Duration;
}

/// The issuer's public keys, kept fresh.
#[derive(Debug)]
pub(crate) struct PublicKeys {
    source: Box<dyn Source>,
    kept: RwLock<Kept>,
    /// Held while the source is read: the single flight.
    reading: tokio::sync::Mutex<()>,
}

#[derive(Clone, Debug, Default)]
struct Kept {
    set: Arc<KeySet>,
    /// When `set` was read; `None` before the first time.
    read: Option<Instant>,
    /// When the source was last asked, successfully or not.
    asked: Option<Instant>,
}

impl Keys {
    /// The key for a token that is signed like this.
    pub(crate) async fn find(&self, signed: &Signed) -> Result<DecodingKey, NoKey> {
        match self {
            Self::Secret(key) if signed.alg == Algorithm::HS256 => Ok((**key).clone()),
            Self::Secret(_) => Err(NoKey::Invalid(Invalid::Algorithm)),
            Self::Public(keys) => keys.find(signed).await,
        }
    }
}

impl PublicKeys {
    /// Keys from this source, none of which are read yet.
    pub(crate) fn new(source: impl Source) -> Arc<Self> {
        Arc::new(Self { source: Box::new(source), kept: RwLock::default(), reading: tokio::sync::Mutex::default() })
    }

    /// The same with a first set.
    pub(crate) fn with(source: impl Source, first: KeySet) -> Arc<Self> {
        let keys = Self::new(source);
        keys.keep(|kept| kept.set = Arc::new(first));
        keys
    }

    async fn find(self: &Arc<Self>, signed: &Signed) -> Result<DecodingKey, NoKey> {
        let kept = self.kept();
        match kept.set.find(signed) {
            Ok(key) => {
                if kept.read.is_none_or(|read| read.elapsed() >= MAX_AGE) && self.may_ask(&kept) {
                    let keys = Arc::clone(self);
                    tokio::spawn(async move { keys.refresh().await });
                }
                Ok(key.clone())
            }
            Err(Invalid::UnknownKey) => {
                self.refresh().await;
                let kept = self.kept();
                match kept.set.find(signed) {
                    Ok(key) => Ok(key.clone()),
                    Err(_) if kept.set.is_empty() => Err(NoKey::Unavailable),
                    Err(invalid) => Err(NoKey::Invalid(invalid)),
                }
            }
            Err(invalid) => Err(NoKey::Invalid(invalid)),
        }
    }

    /// Reads the source, unless that was done a moment ago.
    async fn refresh(&self) {
        let _alone = self.reading.lock().await;
        if !self.may_ask(&self.kept()) {
            return;
        }
        self.keep(|kept| kept.asked = Some(Instant::now()));
        let read = match tokio::time::timeout(TIMEOUT, self.source.read()).await {
            Ok(read) => read.and_then(|json| KeySet::read(&json).map_err(|bad| bad.to_string())),
            Err(_) => Err("it did not arrive in time".to_owned()),
        };
        match read {
            Ok(set) => self.keep(|kept| {
                kept.set = Arc::new(set);
                kept.read = Some(Instant::now());
            }),
            Err(why) => {
                tracing::warn!(source = ?self.source, %why, "the issuer's keys could not be read; those at hand stay in use")
            }
        }
    }

    fn may_ask(&self, kept: &Kept) -> bool {
        kept.asked.is_none_or(|asked| asked.elapsed() >= self.source.pause())
    }

    fn kept(&self) -> Kept {
        self.kept.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn keep(&self, change: impl FnOnce(&mut Kept)) {
        change(&mut self.kept.write().unwrap_or_else(PoisonError::into_inner));
    }
}

/// The keys of a key set's place. A file is read at once, so that a wrong one is noticed at the start; a URL when the first token comes:
/// a server starts also while its issuer does not.
///
/// # Errors
/// What is wrong with the file, or why there is no HTTP client.
pub(crate) fn from_place(place: &Jwks) -> Result<Arc<PublicKeys>, String> {
    match place {
        Jwks::File(path) => {
            let wrong = |why: &dyn fmt::Display| format!("auth.jwks: file:{}: {why}", path.display());
            let json = std::fs::read(path).map_err(|error| wrong(&error))?;
            let set = KeySet::read(&json).map_err(|bad| wrong(&bad))?;
            Ok(PublicKeys::with(File(path.clone()), set))
        }
        Jwks::Https(url) => Ok(PublicKeys::new(Fetched::new(url)?)),
    }
}

#[derive(Debug)]
struct File(PathBuf);

impl Source for File {
    fn read(&self) -> BoxFuture<'_, Result<Vec<u8>, String>> {
        Box::pin(async { tokio::fs::read(&self.0).await.map_err(|error| error.to_string()) })
    }

    fn pause(&self) -> Duration {
        PAUSE_FILE
    }
}

/// A key set on the web. Only from this very URL: redirects are not followed, and nothing is sent but the request.
struct Fetched {
    url: Uri,
    http: Client<HttpsConnector<HttpConnector>, Empty<Bytes>>,
}

impl Fetched {
    fn new(url: &str) -> Result<Self, String> {
        let url = url.parse().map_err(|error| format!("auth.jwks: {url:?} is no URL: {error}"))?;
        let tls = HttpsConnectorBuilder::new()
            .with_provider_and_native_roots(rustls::crypto::ring::default_provider())
            .map_err(|error| format!("auth.jwks: this machine has no certificates to know an issuer by: {error}"))?;
        let connector = tls.https_only().enable_http1().build();
        Ok(Self { url, http: Client::builder(TokioExecutor::new()).build(connector) })
    }
}

impl fmt::Debug for Fetched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.url)
    }
}

impl Source for Fetched {
    fn read(&self) -> BoxFuture<'_, Result<Vec<u8>, String>> {
        Box::pin(async {
            let request = Request::get(self.url.clone())
                .header(ACCEPT, "application/jwk-set+json, application/json")
                .body(Empty::new())
                .map_err(|error| error.to_string())?;
            let response =
                self.http.request(request).await.map_err(|error| format!("{:#}", anyhow::Error::from(error)))?;
            if response.status() != StatusCode::OK {
                return Err(format!("its place answers {}", response.status()));
            }
            let body = Limited::new(response.into_body(), MAX_BYTES).collect().await;
            body.map(|body| body.to_bytes().to_vec()).map_err(|error| error.to_string())
        })
    }

    fn pause(&self) -> Duration {
        PAUSE_FETCHED
    }
}

#[cfg(test)]
mod tests;
