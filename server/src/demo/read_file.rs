//! Reads a file piece by piece: stops when told to, says how far it is, and never reads more than the file had when it was opened.

use std::fs::File;
use std::io::{self, Read};

use tokio_util::sync::CancellationToken;

/// How much of a file is read between two words about it.
const TOLD_EVERY: u64 = 8 << 20;

/// One file on its way through a tool.
pub(crate) struct ReadFile<'a> {
    file: File,
    bytes: u64,
    done: u64,
    told: u64,
    stopped: &'a CancellationToken,
    tell: &'a dyn Fn(&str),
}

impl std::fmt::Debug for ReadFile<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReadFile").field("bytes", &self.bytes).field("done", &self.done).finish_non_exhaustive()
    }
}

impl<'a> ReadFile<'a> {
    /// `tell` hears of large files how far they are, in words.
    pub(crate) fn new(file: File, stopped: &'a CancellationToken, tell: &'a dyn Fn(&str)) -> io::Result<Self> {
        let bytes = file.metadata()?.len();
        Ok(Self { file, bytes, done: 0, told: 0, stopped, tell })
    }

    /// How many bytes the file had when it was opened.
    pub(crate) const fn size(&self) -> u64 {
        self.bytes
    }

    /// How many were read.
    pub(crate) const fn done(&self) -> u64 {
        self.done
    }
}

impl Read for ReadFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stopped.is_cancelled() {
            return Err(io::Error::other("stopped"));
        }
        let left = usize::try_from(self.bytes - self.done).unwrap_or(usize::MAX);
        let most = buffer.len().min(left);
        let read = self.file.read(&mut buffer[..most])?;
        self.done += read as u64;
        if self.done - self.told >= TOLD_EVERY {
            self.told = self.done;
            (self.tell)(&format!("{} of {}", super::size(self.done), super::size(self.bytes)));
        }
        Ok(read)
    }
}
