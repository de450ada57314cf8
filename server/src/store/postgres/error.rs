//! Why a database cannot be the store, and what a failing one means for a request.

use std::error::Error as _;
use std::time::Duration;

use tokio_postgres::Error;
use tokio_postgres::error::{Severity, SqlState};
use tokkuri_core::store::Unavailable;

use super::PostgresOptions;

/// A database that cannot be the store. One line each, that says what to do; never with a password.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The URL is none.
    #[error("{why}: give postgres://USER:PASSWORD@HOST:PORT/DATABASE")]
    Url {
        /// What is wrong with it.
        why: String,
    },
    /// Nobody answers there.
    #[error("cannot connect to {place} ({why}): start it, or correct the URL")]
    Unreachable {
        /// Where.
        place: String,
        /// Why not.
        why: String,
    },
    /// The server does not let this user in.
    #[error("{place} does not let user {user} in ({why}): correct user and password in the URL")]
    Refused {
        /// Where.
        place: String,
        /// Whom.
        user: String,
        /// What it says.
        why: String,
    },
    /// There is no such database.
    #[error("{place} has no database {database}: make it (createdb {database}), or name another one")]
    NoDatabase {
        /// Where.
        place: String,
        /// Which.
        database: String,
    },
    /// The user may not make tables.
    #[error(
        "user {user} may not make tables in database {database} ({why}): give the user a schema (CREATE SCHEMA AUTHORIZATION {user})"
    )]
    NoRights {
        /// Who.
        user: String,
        /// Where.
        database: String,
        /// What the server says.
        why: String,
    },
    /// A later version of Tokkuri wrote it.
    #[error(
        "database {database} was written by a newer version (its schema is {found}, this version knows {known}): start that version, or name another database"
    )]
    Newer {
        /// Which.
        database: String,
        /// The database's schema.
        found: i64,
        /// The newest schema that this version knows.
        known: i64,
    },
    /// The connection cannot be encrypted as asked for.
    #[error("no TLS to the Postgres server: {why}")]
    Tls {
        /// Why not.
        why: String,
    },
    /// Anything else that Postgres says.
    #[error("cannot use database {database} as the store: {why}")]
    Postgres {
        /// Which.
        database: String,
        /// What it says.
        why: String,
    },
}

impl OpenError {
    pub(super) fn of(options: &PostgresOptions, failure: &Failure) -> Self {
        let (place, user, database) = (options.place(), options.user(), options.database());
        let why = failure.why();
        let Some(error) = failure.error() else { return Self::Unreachable { place, why } };
        match error.code() {
            Some(&SqlState::INVALID_PASSWORD | &SqlState::INVALID_AUTHORIZATION_SPECIFICATION) => {
                Self::Refused { place, user, why }
            }
            Some(&SqlState::INVALID_CATALOG_NAME) => Self::NoDatabase { place, database },
            Some(&SqlState::INSUFFICIENT_PRIVILEGE | &SqlState::INVALID_SCHEMA_NAME) => {
                Self::NoRights { user, database, why }
            }
            Some(&SqlState::CANNOT_CONNECT_NOW) => Self::Unreachable { place, why },
            Some(_) => Self::Postgres { database, why },
            // The client's own words, which it gives no code for.
            None if why.contains("TLS") => Self::Tls { why },
            None if why.contains("password") || why.contains("authentication") => Self::Refused { place, user, why },
            None => Self::Unreachable { place, why },
        }
    }
}

/// An error of the client with its causes, in one line.
pub(super) fn words(error: &Error) -> String {
    if let Some(said) = error.as_db_error() {
        return said.message().to_owned();
    }
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        words = format!("{words}: {next}");
        cause = next.source();
    }
    words
}

/// How a request failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// There is no connection: nothing was asked.
    NoConnection(Error),
    /// There is no connection in time: nothing was asked.
    NoConnectionWithin(Duration),
    /// Before the statement that would have changed something.
    Before(Error),
    /// By the answer to it, or by there being none.
    Asked(Error),
    /// No answer in time.
    NoAnswerWithin(Duration),
    /// The answer is not what was asked for.
    Unreadable(String),
    /// It could not be asked.
    Unasked(String),
}

impl Failure {
    pub(super) const fn error(&self) -> Option<&Error> {
        match self {
            Self::NoConnection(error) | Self::Before(error) | Self::Asked(error) => Some(error),
            Self::NoConnectionWithin(_) | Self::NoAnswerWithin(_) | Self::Unreadable(_) | Self::Unasked(_) => None,
        }
    }

    /// Whether a statement that was handed in may have been carried out all the same. An error of ordinary severity is the
    /// database's word that it rolled back; when it goes down, or says nothing, its last word may have been lost.
    pub(super) fn maybe_done(&self) -> bool {
        match self {
            Self::NoConnection(_) | Self::NoConnectionWithin(_) | Self::Before(_) | Self::Unasked(_) => false,
            Self::Asked(error) => {
                error.as_db_error().is_none_or(|said| said.parsed_severity() != Some(Severity::Error))
            }
            Self::NoAnswerWithin(_) | Self::Unreadable(_) => true,
        }
    }

    /// Whether there was nobody to ask: asking again at once finds nobody either.
    pub(super) const fn is_nobody_there(&self) -> bool {
        matches!(self, Self::NoConnection(_) | Self::NoConnectionWithin(_))
    }

    /// Whether the statement stumbled over another one and was taken back: it may simply be asked again.
    pub(super) fn is_collision(&self) -> bool {
        let code = match self {
            Self::Asked(error) => error.code(),
            _ => None,
        };
        matches!(code, Some(&SqlState::T_R_SERIALIZATION_FAILURE | &SqlState::T_R_DEADLOCK_DETECTED))
    }

    /// Whether the connection ended: another one may be there already.
    pub(super) fn is_disconnect(&self) -> bool {
        match self {
            Self::Before(error) | Self::Asked(error) => {
                error.as_db_error().is_none_or(|said| said.parsed_severity() != Some(Severity::Error))
            }
            _ => false,
        }
    }

    /// Whether the connection is of no use any more.
    pub(super) fn spoils_the_connection(&self) -> bool {
        matches!(self, Self::NoAnswerWithin(_)) || self.is_disconnect()
    }

    pub(super) fn why(&self) -> String {
        match self {
            Self::NoConnection(error) | Self::Before(error) | Self::Asked(error) => words(error),
            Self::NoConnectionWithin(within) => format!("no connection within {within:?}"),
            Self::NoAnswerWithin(within) => format!("no answer within {within:?}"),
            Self::Unreadable(why) | Self::Unasked(why) => why.clone(),
        }
    }

    /// As an answer to what changes something, or does not.
    pub(super) fn unavailable(&self, changes: bool) -> Unavailable {
        Unavailable { why: format!("Postgres: {}", self.why()).into(), maybe_done: changes && self.maybe_done() }
    }
}
