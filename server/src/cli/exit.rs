//! What the command exits with, and which error means which code.

use std::process::ExitCode;

use crate::{client::ClientError, config::ConfigError};

/// Exit codes of the command. `tokkuri --help` lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// 0: it went as it should.
    Ok,
    /// 1: the tool or task failed, or was cancelled by someone else; also any fault that has no code of its own.
    Failed,
    /// 2: wrong usage or configuration (the code that clap uses too).
    Usage,
    /// 3: the server cannot be reached, or broke off.
    Unreachable,
    /// 4: the server refused, or is none.
    Refused,
    /// 5: a question was asked that nobody here can answer.
    Unanswered,
    /// 130: interrupted with Ctrl-C, as shells count it (128 + SIGINT).
    Interrupted,
}

impl Exit {
    /// The number.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Unreachable => 3,
            Self::Refused => 4,
            Self::Unanswered => 5,
            Self::Interrupted => 130,
        }
    }

    /// The code that an error stands for.
    #[must_use]
    pub fn of(error: &anyhow::Error) -> Self {
        if let Some(stop) = error.downcast_ref::<Stop>() {
            return stop.exit;
        }
        if error.downcast_ref::<ConfigError>().is_some() {
            return Self::Usage;
        }
        match error.downcast_ref::<ClientError>() {
            Some(ClientError::BadUrl { .. } | ClientError::BadToken) => Self::Usage,
            Some(ClientError::Unreachable { .. } | ClientError::BrokenOff { .. }) => Self::Unreachable,
            Some(
                ClientError::NotMcp { .. }
                | ClientError::Unauthorized { .. }
                | ClientError::Forbidden { .. }
                | ClientError::Refused { .. }
                | ClientError::UnknownTool { .. }
                | ClientError::Unexpected { .. },
            ) => Self::Refused,
            None => Self::Failed,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// An error of the command that knows its exit code.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Stop {
    exit: Exit,
    message: String,
}

impl Stop {
    /// Ends the command with `exit` and one line that says why.
    #[must_use]
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_error_has_its_code() {
        let config = crate::config::Config::from_toml("a = 1", "t").unwrap_err();
        for (error, code) in [
            (anyhow::Error::from(config).context("while starting"), 2),
            (ClientError::BadToken.into(), 2),
            (Stop::new(Exit::Unanswered, "x").into(), 5),
            (ClientError::Unreachable { url: String::new(), reason: String::new() }.into(), 3),
            (ClientError::NotMcp { url: String::new(), status: 404 }.into(), 4),
            (anyhow::anyhow!("x"), 1),
        ] {
            assert_eq!(Exit::of(&error).code(), code, "{error:#}");
        }
    }
}
