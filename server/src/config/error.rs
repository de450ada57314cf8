//! What can be wrong with a configuration, each as one line that says where, what, and what would be right.

use std::fmt;

/// Where a value came from, as errors name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A line of a file, counted from 1.
    File {
        /// The file's name as it was given.
        name: String,
        /// The line that holds the key or value.
        line: usize,
    },
    /// An environment variable, by name.
    Environment(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { name, line } => write!(f, "{name}:{line}"),
            Self::Environment(variable) => write!(f, "environment variable {variable}"),
        }
    }
}

/// Why a configuration was refused. `Display` is one line meant for the person who wrote it.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{file}: cannot be read ({source}); give --config the path of a readable TOML file")]
    Unreadable {
        /// The file's name as it was given.
        file: String,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The file is not TOML.
    #[error("{origin}: not valid TOML: {message}")]
    Syntax {
        /// The line at which the parser gave up.
        origin: Origin,
        /// What the parser said, on one line.
        message: String,
    },
    /// No section has this name.
    #[error("{origin}: there is no section [{name}]; {advice}")]
    UnknownSection {
        /// Where it stands.
        origin: Origin,
        /// The name that is not known.
        name: String,
        /// The near miss, or the sections there are.
        advice: String,
    },
    /// No setting has this name.
    #[error("{origin}: there is no setting {name}; {advice}")]
    UnknownKey {
        /// Where it stands.
        origin: Origin,
        /// The whole name, `section.key`.
        name: String,
        /// The near miss, or the keys there are.
        advice: String,
    },
    /// The value has the wrong type, form or size.
    #[error("{origin}: {name} is {given}; give {expected}")]
    WrongValue {
        /// Where it stands.
        origin: Origin,
        /// The whole name, `section.key`.
        name: String,
        /// What was given, shortened; never a secret.
        given: String,
        /// What would be right.
        expected: String,
    },
    /// Something is there that needs another setting beside it, or excludes one.
    #[error("{origin}: {message}")]
    Inconsistent {
        /// Where it stands.
        origin: Origin,
        /// What is missing or too much.
        message: String,
    },
}
