//! A file that is not there until it is whole: written under another name in the same directory, renamed at its end, removed
//! if it does not come to that.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;

use super::root::Directory;

/// The ending of a file that is still being written. Listings leave such files out.
pub(crate) const ENDING: &str = ".tokkuri-part";

/// Removes the half-written file when dropped: cancelled, failed or panicked.
#[derive(Debug)]
pub(crate) struct HalfWritten {
    directory: Directory,
    name: OsString,
    kept: bool,
}

impl HalfWritten {
    /// Makes the file that will become `target` in `directory`.
    pub(crate) fn create(directory: Directory, target: &OsStr) -> io::Result<(Self, File)> {
        let random = getrandom::u64().map_err(|error| io::Error::other(error.to_string()))?;
        let mut name = OsString::from(".");
        // A name may have 255 bytes; this one has to be shorter than the target's could be.
        let target: String = target.to_string_lossy().chars().take(40).collect();
        name.push(target);
        name.push(format!(".{random:016x}{ENDING}"));
        let file = directory.create(&name)?;
        Ok((Self { directory, name, kept: false }, file))
    }

    /// It is whole: gives it its name. Unless `replace`, fails if that is taken by now.
    pub(crate) fn keep_as(mut self, target: &OsStr, replace: bool) -> io::Result<()> {
        self.directory.rename(&self.name, target, replace)?;
        self.kept = true;
        Ok(())
    }
}

impl Drop for HalfWritten {
    fn drop(&mut self) {
        if !self.kept
            && let Err(error) = self.directory.remove(&self.name)
        {
            tracing::warn!(file = ?self.name, %error, "a half-written file could not be removed");
        }
    }
}
