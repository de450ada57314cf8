//! Files and directories below one root, opened so that nothing else can be reached.
//!
//! The root is opened once. From then on every name is opened relative to the directory before it with `O_NOFOLLOW`
//! (openat(2)), so it does not matter what was checked before: a symbolic link that someone puts in between is an error
//! when it is opened, not a way out.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::to_path::{BelowRoot, PathError};

/// The one directory that the tools work in.
#[derive(Debug)]
pub(crate) struct Root(Directory);

/// An open directory, the root or below it.
#[derive(Debug)]
pub(crate) struct Directory(OwnedFd);

/// What a name in a directory stands for, links not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    File {
        bytes: u64,
    },
    Directory,
    Link,
    /// Pipes, sockets, devices.
    Other,
}

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl Root {
    /// Opens the root. Links on the way to it are followed: the operator named it.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let path = path.canonicalize()?;
        Ok(Self(Directory(rustix::fs::openat(CWD, &path, DIRECTORY, Mode::empty())?)))
    }

    /// Opens a directory that a caller named.
    pub(crate) fn directory(&self, path: &BelowRoot) -> Result<Directory, PathError> {
        let mut at = self.0.again().map_err(|error| closed(path, error))?;
        for name in path.names() {
            at = match at.directory(name) {
                Ok(next) => next,
                Err(error) => return Err(at.why(path, name, error)),
            };
        }
        Ok(at)
    }
}

impl Directory {
    /// Opens the directory `name` in it.
    pub(crate) fn directory(&self, name: &OsStr) -> io::Result<Self> {
        Ok(Self(rustix::fs::openat(&self.0, name, DIRECTORY, Mode::empty())?))
    }

    /// Opens a directory below it. `path` has plain names only.
    pub(crate) fn below(&self, path: &Path) -> io::Result<Self> {
        let mut at = self.again()?;
        for name in path {
            at = at.directory(name)?;
        }
        Ok(at)
    }

    /// Opens the regular file `name` in it for reading.
    pub(crate) fn file(&self, name: &OsStr) -> io::Result<File> {
        // Without NONBLOCK, opening a pipe that was put in the file's place would wait for its writer.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(&self.0, name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::LOOP) => return Err(io::Error::other("it is a symbolic link now")),
            Err(error) => return Err(error.into()),
        };
        match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(io::Error::other("it is no regular file")),
        }
    }

    /// Makes the file `name` in it, which must not be there yet.
    pub(crate) fn create(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(File::from(rustix::fs::openat(&self.0, name, flags, Mode::from_raw_mode(0o666))?))
    }

    /// Removes the file `name` from it.
    pub(crate) fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::empty())?)
    }

    /// Gives the file `from` the name `to`; unless `replace`, only if that name is free.
    pub(crate) fn rename(&self, from: &OsStr, to: &OsStr, replace: bool) -> io::Result<()> {
        if replace {
            return Ok(rustix::fs::renameat(&self.0, from, &self.0, to)?);
        }
        match rustix::fs::renameat_with(&self.0, from, &self.0, to, RenameFlags::NOREPLACE) {
            // Not every file system can.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => match self.kind(to)? {
                Some(_) => Err(Errno::EXIST.into()),
                None => Ok(rustix::fs::renameat(&self.0, from, &self.0, to)?),
            },
            renamed => Ok(renamed?),
        }
    }

    /// What `name` stands for, if it is there.
    pub(crate) fn kind(&self, name: &OsStr) -> io::Result<Option<Kind>> {
        let stat = match rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        Ok(Some(match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Kind::File { bytes: u64::try_from(stat.st_size).unwrap_or(0) },
            FileType::Directory => Kind::Directory,
            FileType::Symlink => Kind::Link,
            _ => Kind::Other,
        }))
    }

    /// The names in it, in order.
    pub(crate) fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.0)? {
            let name = entry?.file_name().to_bytes().to_owned();
            if name != b"." && name != b".." {
                names.push(OsStr::from_bytes(&name).to_owned());
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Opens the same directory again.
    fn again(&self) -> io::Result<Self> {
        Ok(Self(self.0.try_clone()?))
    }

    /// What is wrong with `name`, which could not be opened as a directory, in words for the caller.
    fn why(&self, path: &BelowRoot, name: &OsStr, error: io::Error) -> PathError {
        let given = path.to_string();
        match self.kind(name) {
            Ok(None) => PathError::Missing(given),
            Ok(Some(Kind::Link)) => PathError::Link(given),
            Ok(Some(Kind::File { .. } | Kind::Other)) => PathError::NotADirectory(given),
            Ok(Some(Kind::Directory)) | Err(_) => PathError::Closed { path: given, error },
        }
    }
}

fn closed(path: &BelowRoot, error: io::Error) -> PathError {
    PathError::Closed { path: path.to_string(), error }
}

/// The files of one directory after another, each directory opened once.
#[derive(Debug)]
pub(crate) struct Opener<'d> {
    base: &'d Directory,
    last: Option<(PathBuf, Directory)>,
}

impl<'d> Opener<'d> {
    pub(crate) const fn new(base: &'d Directory) -> Self {
        Self { base, last: None }
    }

    /// Opens the regular file at `path` below the base. `path` has plain names only.
    pub(crate) fn file(&mut self, path: &Path) -> io::Result<File> {
        let parent = path.parent().unwrap_or(Path::new(""));
        let name = path.file_name().ok_or_else(|| io::Error::other("it has no name"))?;
        if self.last.as_ref().is_none_or(|(last, _)| last != parent) {
            self.last = Some((parent.to_owned(), self.base.below(parent)?));
        }
        match &self.last {
            Some((_, directory)) => directory.file(name),
            None => self.base.file(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn path(given: &str) -> BelowRoot {
        BelowRoot::parse(given).unwrap()
    }

    /// A root with `a/b/file`, a secret beside it, and links of every kind to it.
    fn place() -> (tempfile::TempDir, Root) {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("root");
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("a/b/file"), "inside").unwrap();
        fs::create_dir(place.path().join("outside")).unwrap();
        fs::write(place.path().join("outside/secret"), "outside").unwrap();
        symlink(place.path().join("outside"), root.join("absolute")).unwrap();
        symlink("../outside", root.join("relative")).unwrap();
        symlink("a/b", root.join("inner")).unwrap();
        symlink("../../../outside/secret", root.join("a/b/link")).unwrap();
        let opened = Root::open(&root).unwrap();
        (place, opened)
    }

    #[test]
    fn no_link_is_followed_on_the_way_to_a_directory() {
        let (_place, root) = place();
        for given in ["absolute", "relative", "inner", "a/b/link", "relative/sub", "absolute/../a"] {
            let opened = BelowRoot::parse(given).and_then(|path| root.directory(&path));
            assert!(matches!(opened, Err(PathError::Link(_) | PathError::Outside(_))), "{given}: {opened:?}");
        }
        assert!(root.directory(&path("a/b")).is_ok());
    }

    #[test]
    fn what_is_wrong_with_a_directory_is_said() {
        let (_place, root) = place();
        for (given, text) in [
            ("none", "there is no such directory: \"none\""),
            ("a/none/b", "there is no such directory: \"a/none/b\""),
            ("a/b/file", "\"a/b/file\" is not a directory"),
            ("a/b/file/x", "\"a/b/file/x\" is not a directory"),
            ("inner", "\"inner\" goes through a symbolic link"),
        ] {
            let error = root.directory(&path(given)).unwrap_err().to_string();
            assert!(error.starts_with(text), "{given}: {error}");
        }
    }

    #[test]
    fn a_link_that_is_put_in_a_files_place_is_not_read() {
        let (place, root) = place();
        let directory = root.directory(&path("a/b")).unwrap();
        assert_eq!(directory.kind(OsStr::new("file")).unwrap(), Some(Kind::File { bytes: 6 }));
        fs::remove_file(place.path().join("root/a/b/file")).unwrap();
        symlink(place.path().join("outside/secret"), place.path().join("root/a/b/file")).unwrap();
        let error = directory.file(OsStr::new("file")).unwrap_err().to_string();
        assert!(error.contains("symbolic link"), "{error}");
    }

    #[test]
    fn a_link_that_is_put_in_a_directorys_place_is_not_entered() {
        let (place, root) = place();
        let base = root.directory(&path(".")).unwrap();
        fs::write(place.path().join("outside/file"), "outside").unwrap();
        fs::rename(place.path().join("root/a/b"), place.path().join("root/a/moved")).unwrap();
        symlink(place.path().join("outside"), place.path().join("root/a/b")).unwrap();
        assert!(Opener::new(&base).file(Path::new("a/b/file")).is_err());
        assert!(Opener::new(&base).file(Path::new("a/moved/file")).is_ok());
    }

    #[test]
    fn the_root_stays_the_directory_that_it_was() {
        let (place, root) = place();
        fs::rename(place.path().join("root"), place.path().join("moved")).unwrap();
        symlink(place.path().join("outside"), place.path().join("root")).unwrap();
        let names = root.directory(&path(".")).unwrap().names().unwrap();
        assert!(names.contains(&"a".into()) && !names.contains(&"secret".into()), "{names:?}");
    }

    #[test]
    fn a_pipe_is_no_file_and_is_not_waited_for() {
        let (place, root) = place();
        let pipe = place.path().join("root/pipe");
        rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        let directory = root.directory(&path(".")).unwrap();
        assert_eq!(directory.kind(OsStr::new("pipe")).unwrap(), Some(Kind::Other));
        assert!(directory.file(OsStr::new("pipe")).is_err());
    }

    #[test]
    fn a_file_is_renamed_over_another_only_where_that_is_wanted() {
        let (_place, root) = place();
        let directory = root.directory(&path("a/b")).unwrap();
        drop(directory.create(OsStr::new("new")).unwrap());
        assert!(directory.create(OsStr::new("new")).is_err());
        assert!(directory.create(OsStr::new("link")).is_err());
        let kept = directory.rename(OsStr::new("new"), OsStr::new("file"), false).unwrap_err();
        assert_eq!(kept.kind(), io::ErrorKind::AlreadyExists);
        directory.rename(OsStr::new("new"), OsStr::new("file"), true).unwrap();
        assert_eq!(directory.kind(OsStr::new("file")).unwrap(), Some(Kind::File { bytes: 0 }));
        assert_eq!(directory.kind(OsStr::new("new")).unwrap(), None);
    }
}
