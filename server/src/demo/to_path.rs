//! Paths that callers name: relative to the root, or refused before anything is opened.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Component, Path};

/// A path below the root, in names; none of them means the root itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BelowRoot {
    given: String,
    names: Vec<OsString>,
}

/// Why a path cannot be used. The texts are for the caller: none shows where the root is.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PathError {
    #[error("{0:?} is outside the root: give a path relative to it, without `..`")]
    Outside(String),
    #[error("there is no such directory: {0:?}")]
    Missing(String),
    #[error("{0:?} is not a directory")]
    NotADirectory(String),
    #[error("{0:?} goes through a symbolic link, which is not followed: it could lead outside the root")]
    Link(String),
    #[error("{0:?} names a directory where the name of a file is needed")]
    NotAFile(String),
    #[error("{path:?} cannot be opened: {error}")]
    Closed { path: String, error: std::io::Error },
}

impl BelowRoot {
    /// Reads what a caller gave.
    pub(crate) fn parse(given: &str) -> Result<Self, PathError> {
        let mut names = Vec::new();
        for component in Path::new(given).components() {
            match component {
                Component::Normal(name) => names.push(name.to_owned()),
                Component::CurDir => {}
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                    return Err(PathError::Outside(given.to_owned()));
                }
            }
        }
        Ok(Self { given: given.to_owned(), names })
    }

    /// The directory it is in, and its name there.
    pub(crate) fn split(&self) -> Result<(Self, &OsStr), PathError> {
        match self.names.split_last() {
            Some((name, names)) if !self.given.ends_with('/') => {
                let given: std::path::PathBuf = names.iter().collect();
                let given = given.to_string_lossy().into_owned();
                let given = if given.is_empty() { ".".to_owned() } else { given };
                Ok((Self { given, names: names.to_vec() }, name))
            }
            Some(_) | None => Err(PathError::NotAFile(self.given.clone())),
        }
    }

    /// Its names, from the root on.
    pub(crate) fn names(&self) -> &[OsString] {
        &self.names
    }

    /// The path from `base` to it, if it is below `base`.
    pub(crate) fn within(&self, base: &Self) -> Option<std::path::PathBuf> {
        self.names.strip_prefix(&*base.names).map(|rest| rest.iter().collect())
    }
}

impl fmt::Display for BelowRoot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.given)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_leads_out_is_refused_wherever_the_dots_are() {
        for given in ["..", "../x", "a/..", "a/../../x", "./..", "/", "/etc", "//etc", "a/../b"] {
            assert!(matches!(BelowRoot::parse(given), Err(PathError::Outside(_))), "{given}");
        }
    }

    #[test]
    fn what_names_the_same_place_is_the_same_path() {
        for (given, names) in
            [("", &[][..]), (".", &[]), ("./", &[]), ("a", &["a"]), ("./a//b/.", &["a", "b"]), ("...", &["..."])]
        {
            assert_eq!(BelowRoot::parse(given).unwrap().names(), names, "{given:?}");
        }
    }

    #[test]
    fn a_file_has_a_directory_and_a_name() {
        let path = BelowRoot::parse("a/b/c").unwrap();
        let (directory, name) = path.split().unwrap();
        assert_eq!((directory.to_string().as_str(), name), ("a/b", OsStr::new("c")));
        for given in [".", "", "a/"] {
            assert!(matches!(BelowRoot::parse(given).unwrap().split(), Err(PathError::NotAFile(_))), "{given:?}");
        }
    }

    #[test]
    fn a_path_knows_whether_it_is_below_another() {
        let path = |given| BelowRoot::parse(given).unwrap();
        assert_eq!(path("a/b").within(&path("./a")), Some("b".into()));
        assert_eq!(path("a/b").within(&path(".")), Some("a/b".into()));
        assert_eq!(path("ab").within(&path("a")), None);
    }
}
