//! Every regular file below a directory, in an order that is the same each time.

use std::path::{Path, PathBuf};

use tokio_util::sync::CancellationToken;

use super::Unreadable;
use super::half_written::ENDING;
use super::root::{Directory, Kind};
use super::thread::halted;
use crate::tool::ToolError;

/// How deep directories may be nested.
const MAX_DEPTH: usize = 256;

/// How many names are looked at for each file that is wanted, and at least: a tree of empty directories ends too.
const NAMES: (usize, usize) = (25, 100_000);

/// What is listed.
#[derive(Debug)]
pub(crate) struct Wanted<'a> {
    /// Names of files and directories that are passed over, wherever they are.
    pub(crate) skip: &'a [String],
    /// A file that is left out.
    pub(crate) except: Option<&'a Path>,
    /// How many files are listed.
    pub(crate) files: usize,
    /// How many bytes the listed files may have together; what does not fit is left out.
    pub(crate) bytes: u64,
    /// How many bytes the listed paths may have together.
    pub(crate) text: usize,
}

/// What there is.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// Paths relative to the directory.
    pub(crate) files: Vec<PathBuf>,
    /// Directories that could not be read.
    pub(crate) unreadable: Unreadable,
    /// Symbolic links that were passed over.
    pub(crate) symlinks: u64,
    /// Whether there is more than was wanted.
    pub(crate) truncated: bool,
}

/// Lists the files below `base`. No link is followed, and each directory is opened from `base` on.
///
/// # Errors
/// If it was told to stop, or `base` itself cannot be read.
pub(crate) fn list(base: &Directory, wanted: &Wanted<'_>, stopped: &CancellationToken) -> Result<Listing, ToolError> {
    let mut found = Listing::default();
    let names = wanted.files.saturating_mul(NAMES.0).max(NAMES.1);
    let mut room = Room { names, files: wanted.files, bytes: wanted.bytes, text: wanted.text };
    let mut open = vec![PathBuf::new()];
    while let Some(at) = open.pop() {
        if at.components().count() > MAX_DEPTH {
            found.unreadable.add(&at, "it is nested too deep");
            continue;
        }
        let directory = match base.below(&at).and_then(|directory| Ok((directory.names()?, directory))) {
            Ok(directory) => directory,
            Err(error) if at.as_os_str().is_empty() => {
                return Err(ToolError::failed(format!("the directory cannot be read: {error}")));
            }
            Err(error) => {
                found.unreadable.add(&at, error);
                continue;
            }
        };
        let (names, directory) = directory;
        let first = open.len();
        for name in names {
            if stopped.is_cancelled() {
                return Err(halted());
            }
            if wanted.skip.iter().any(|skip| name == **skip) || name.as_encoded_bytes().ends_with(ENDING.as_bytes()) {
                continue;
            }
            if !Room::take(&mut room.names, 1) {
                found.truncated = true;
                return Ok(found);
            }
            let path = at.join(&name);
            match directory.kind(&name) {
                Ok(Some(Kind::File { .. })) if wanted.except == Some(&*path) => {}
                Ok(Some(Kind::File { bytes })) if !room.bytes_for(bytes) => found.truncated = true,
                Ok(Some(Kind::File { .. })) => {
                    if !Room::take(&mut room.files, 1) || !Room::take(&mut room.text, path.as_os_str().len()) {
                        found.truncated = true;
                        return Ok(found);
                    }
                    found.files.push(path);
                }
                Ok(Some(Kind::Directory)) => open.push(path),
                Ok(Some(Kind::Link)) => found.symlinks += 1,
                // Gone since it was listed, or nothing that has contents.
                Ok(Some(Kind::Other) | None) => {}
                Err(error) => found.unreadable.add(&path, error),
            }
        }
        open[first..].reverse();
    }
    Ok(found)
}

/// What is left of what was wanted.
struct Room {
    names: usize,
    files: usize,
    bytes: u64,
    text: usize,
}

impl Room {
    fn take(left: &mut usize, amount: usize) -> bool {
        let less = left.checked_sub(amount);
        *left = less.unwrap_or(0);
        less.is_some()
    }

    fn bytes_for(&mut self, bytes: u64) -> bool {
        let less = self.bytes.checked_sub(bytes);
        self.bytes = less.unwrap_or(self.bytes);
        less.is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::super::root::Root;
    use super::super::to_path::BelowRoot;
    use super::*;

    const ALL: Wanted<'_> = Wanted { skip: &[], except: None, files: usize::MAX, bytes: u64::MAX, text: usize::MAX };

    fn place() -> (tempfile::TempDir, Directory) {
        let place = tempfile::tempdir().unwrap();
        for path in ["b/2", "b/1", "a", "c/d/3", "target/x", "z", ".hidden"] {
            let path = place.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "12345").unwrap();
        }
        symlink("/", place.path().join("everything")).unwrap();
        symlink("..", place.path().join("b/up")).unwrap();
        fs::write(place.path().join(format!("half{ENDING}")), "").unwrap();
        let base = Root::open(place.path()).unwrap().directory(&BelowRoot::parse(".").unwrap()).unwrap();
        (place, base)
    }

    fn paths(base: &Directory, wanted: &Wanted<'_>) -> (Vec<String>, Listing) {
        let listing = list(base, wanted, &CancellationToken::new()).unwrap();
        (listing.files.iter().map(|path| path.display().to_string()).collect(), listing)
    }

    #[test]
    fn every_file_is_listed_once_in_order_and_links_are_only_counted() {
        let (_place, base) = place();
        let (paths, listing) = paths(&base, &ALL);
        assert_eq!(paths, [".hidden", "a", "z", "b/1", "b/2", "c/d/3", "target/x"]);
        assert_eq!((listing.symlinks, listing.truncated, listing.unreadable.count), (2, false, 0));
    }

    #[test]
    fn what_is_to_be_skipped_is_skipped() {
        let (_place, base) = place();
        let skip = ["target".to_owned(), "z".to_owned()];
        let (paths, listing) = paths(&base, &Wanted { skip: &skip, except: Some(Path::new("b/1")), ..ALL });
        assert_eq!(paths, [".hidden", "a", "b/2", "c/d/3"]);
        assert!(!listing.truncated);
    }

    #[test]
    fn a_listing_that_is_not_whole_says_so() {
        let (_place, base) = place();
        for (wanted, count) in
            [(Wanted { files: 2, ..ALL }, 2), (Wanted { bytes: 11, ..ALL }, 2), (Wanted { text: 9, ..ALL }, 3)]
        {
            let (paths, listing) = paths(&base, &wanted);
            assert_eq!((paths.len(), listing.truncated), (count, true), "{wanted:?}: {paths:?}");
        }
    }

    #[test]
    fn listing_stops_when_told_to() {
        let (_place, base) = place();
        let stopped = CancellationToken::new();
        stopped.cancel();
        assert!(list(&base, &ALL, &stopped).is_err());
    }

    #[test]
    fn nesting_without_end_is_cut_off_and_told() {
        let place = tempfile::tempdir().unwrap();
        let mut at = rustix::fs::openat(rustix::fs::CWD, place.path(), rustix::fs::OFlags::RDONLY, 0.into()).unwrap();
        for _ in 0..=MAX_DEPTH {
            rustix::fs::mkdirat(&at, "d", 0o777.into()).unwrap();
            at = rustix::fs::openat(&at, "d", rustix::fs::OFlags::RDONLY, 0.into()).unwrap();
        }
        let base = Root::open(place.path()).unwrap().directory(&BelowRoot::parse(".").unwrap()).unwrap();
        let listing = list(&base, &ALL, &CancellationToken::new()).unwrap();
        assert_eq!((listing.files.len(), listing.unreadable.count), (0, 1));
    }
}
