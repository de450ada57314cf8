//! Where tasks are kept: `memory`, `sqlite:PATH` or `postgres://…`.

use std::{fmt, path::PathBuf, str::FromStr};

/// The store of tasks, as `tasks.store`, `TOKKURI_TASKS_STORE` and `--store` name it.
#[derive(Clone, PartialEq, Eq)]
pub enum StoreUrl {
    /// `memory`: tasks live and die with the process.
    Memory,
    /// `sqlite:PATH`: one file, used by one process at a time. A relative path is relative to the working directory.
    Sqlite(PathBuf),
    /// `postgres://…`: shared by several nodes. Holds the whole URL, which may carry a password: `Debug` and
    /// `Display` leave the password out.
    Postgres(String),
}

/// A store URL that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("give memory, sqlite:PATH or postgres://USER@HOST/DATABASE{hint}")]
pub struct StoreUrlError {
    hint: String,
}

impl FromStr for StoreUrl {
    type Err = StoreUrlError;

    fn from_str(text: &str) -> Result<Self, StoreUrlError> {
        if text == "memory" {
            return Ok(Self::Memory);
        }
        if let Some(path) = text.strip_prefix("sqlite:") {
            // `sqlite://PATH` is what other tools write; an empty authority changes nothing.
            let path = path.strip_prefix("//").unwrap_or(path);
            if path.is_empty() {
                return Err(hint(" (the path after sqlite: is missing)"));
            }
            return Ok(Self::Sqlite(path.into()));
        }
        for scheme in ["postgres://", "postgresql://"] {
            if let Some(rest) = text.strip_prefix(scheme) {
                if rest.is_empty() {
                    return Err(hint(" (the host after postgres:// is missing)"));
                }
                return Ok(Self::Postgres(text.to_owned()));
            }
        }
        Err(hint(&match text {
            "" => String::new(),
            _ if text.ends_with(".db") => format!(" (did you mean sqlite:{text}?)"),
            _ => String::new(),
        }))
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory"),
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(url) => f.write_str(&without_password(url)),
        }
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreUrl({self})")
    }
}

/// The URL with the password and the query (which may hold one too) taken out.
fn without_password(url: &str) -> String {
    let url = url.split_once('?').map_or(url, |(before, _)| before);
    let Some((scheme, rest)) = url.split_once("://") else {
        return "postgres://…".to_owned();
    };
    match rest.rsplit_once('@') {
        Some((user, host)) => {
            let user = user.split_once(':').map_or(user, |(name, _)| name);
            format!("{scheme}://{user}@{host}")
        }
        None => url.to_owned(),
    }
}

fn hint(text: &str) -> StoreUrlError {
    StoreUrlError { hint: text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_store_is_told_from_its_url() {
        for (text, store) in [
            ("memory", StoreUrl::Memory),
            ("sqlite:tokkuri.db", StoreUrl::Sqlite("tokkuri.db".into())),
            ("sqlite:///var/t.db", StoreUrl::Sqlite("/var/t.db".into())),
            ("postgres://u@h/db", StoreUrl::Postgres("postgres://u@h/db".into())),
        ] {
            assert_eq!(text.parse(), Ok(store), "{text}");
        }
    }

    #[test]
    fn what_is_no_store_says_what_would_be_one() {
        for (text, needle) in [
            ("", "give memory, sqlite:PATH"),
            ("tasks.db", "did you mean sqlite:tasks.db?"),
            ("sqlite:", "path after sqlite: is missing"),
            ("mysql://h", "give memory"),
            ("postgres://", "host after postgres://"),
        ] {
            let error = text.parse::<StoreUrl>().unwrap_err().to_string();
            assert!(error.contains(needle), "{text}: {error}");
        }
    }

    #[test]
    fn a_password_is_never_shown() {
        let store: StoreUrl = "postgres://me:s3cret@db:5432/tokkuri?password=s3cret".parse().unwrap();
        assert_eq!(store.to_string(), "postgres://me@db:5432/tokkuri");
        assert!(!format!("{store:?}").contains("s3cret"));
    }
}
