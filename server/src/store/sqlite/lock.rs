//! One process a file: a lock of the operating system's on a file beside it, which ends with the process however that ends.
//!
//! SQLite's own exclusive lock comes on top; it alone would not tell two stores of one process from each other, and says
//! nothing about whose it is.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use super::OpenError;

/// Held for as long as the file is used.
#[derive(Debug)]
pub(super) struct FileLock {
    path: PathBuf,
    _held: File,
}

impl FileLock {
    /// Takes the lock for the database at `path`, and makes that file if there is none.
    pub(super) fn take(path: &Path) -> Result<Self, OpenError> {
        let failed = |source| OpenError::of_io(path, source);
        make(path).map_err(failed)?;
        // One file under several names is locked once.
        let real = fs::canonicalize(path).map_err(failed)?;
        let mut name = real.as_os_str().to_owned();
        name.push("-lock");
        // The file stays when the lock is given up: removing it would let two processes lock two files of one name.
        let mut held = private().open(name).map_err(failed)?;
        match held.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(OpenError::InUse { path: path.into(), pid: pid(&mut held) }),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        // Only for the message of whoever finds it locked: it does not matter if it cannot be written.
        let _ = held.set_len(0).and_then(|()| write!(held, "{}", std::process::id()));
        Ok(Self { path: real, _held: held })
    }

    /// The database, by its real name.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// The file holds arguments, results and the secret: it is its owner's alone. SQLite gives its other files the same mode.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn make(path: &Path) -> io::Result<()> {
    private().open(path).map(drop)
}

fn pid(held: &mut File) -> Option<u32> {
    let mut text = String::new();
    held.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
