//! Why a file cannot be opened as a store, and what a failing one means for a request.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::{Error, ErrorCode};
use tokkuri_core::store::Unavailable;

/// A file that cannot be the store. Says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another store has it, in this process or another.
    #[error(
        "{} is in use by another process{}: a SQLite store serves one process at a time; stop that one, or name another file",
        path.display(), pid.map(|pid| format!(" ({pid})")).unwrap_or_default()
    )]
    InUse {
        /// The file.
        path: PathBuf,
        /// Whose it is, if that process said so.
        pid: Option<u32>,
    },
    /// A later version of Tokkuri wrote it.
    #[error(
        "{} was written by a newer version (its schema is {found}, this version knows {known}): start that version, or name another file",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// The file's schema.
        found: i64,
        /// The newest schema that this version knows.
        known: i64,
    },
    /// It is something else's database.
    #[error("{} is a SQLite database, but not a store of tasks: name another file", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// It is no database at all.
    #[error("{} is not a SQLite database: name another file", path.display())]
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// Some of it cannot be read any more.
    #[error("{} is damaged ({why}): put a copy from a backup in its place, or name another file", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// It cannot be written.
    #[error("{} is read-only: make the file and its directory writable, or name another file", path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// There is no room to set it up.
    #[error("there is no space left for {}: make room, or name a file on another disk", path.display())]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// The operating system does not let us at it.
    #[error("cannot open {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Anything else that SQLite says.
    #[error("cannot open {}: {why}", path.display())]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// What it says.
        why: String,
    },
}

impl OpenError {
    pub(super) fn of_sqlite(path: &Path, error: &Error) -> Self {
        let (path, why) = (path.to_owned(), error.to_string());
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => Self::NotADatabase { path },
            Some(ErrorCode::DatabaseCorrupt) => Self::Corrupt { path, why },
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Self::ReadOnly { path },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::InUse { path, pid: None },
            Some(ErrorCode::DiskFull) => Self::Full { path },
            // A row that is not what was written: no code of SQLite's, but ours to find.
            None => Self::Corrupt { path, why },
            Some(_) => Self::Sqlite { path, why },
        }
    }

    pub(super) fn of_io(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => Self::ReadOnly { path },
            io::ErrorKind::StorageFull => Self::Full { path },
            _ => Self::Io { path, source },
        }
    }
}

/// Where a change failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// Before the commit: nothing of it can be in the file.
    Before(Error),
    /// At the commit.
    AtCommit(Error),
}

impl Failure {
    pub(super) const fn error(&self) -> &Error {
        match self {
            Self::Before(error) | Self::AtCommit(error) => error,
        }
    }

    /// Whether the file may hold the change all the same, should the process end now: its last frame may have been written
    /// and only the `fsync` have failed. A disk that is full refuses that frame, and so does SQLite itself.
    pub(super) fn maybe_done(&self) -> bool {
        match self {
            Self::Before(_) => false,
            Self::AtCommit(error) => !matches!(
                error.sqlite_error_code(),
                Some(ErrorCode::DiskFull | ErrorCode::ReadOnly | ErrorCode::DatabaseBusy)
            ),
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.error().sqlite_error_code() == Some(ErrorCode::DiskFull)
    }

    /// As an answer.
    pub(super) fn unavailable(&self) -> Unavailable {
        let error = self.error();
        let why = match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => "the disk of the SQLite file is full".into(),
            Some(ErrorCode::ReadOnly) => "the SQLite file is read-only".into(),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => "the SQLite file is damaged".into(),
            Some(ErrorCode::SystemIoFailure) => format!("the SQLite file cannot be read or written: {error}").into(),
            Some(_) | None => format!("SQLite: {error}").into(),
        };
        Unavailable { why, maybe_done: self.maybe_done() }
    }
}
