//! What the fuzzers of `fuzz/` call: one function for each kind of input that strangers or operators hand us.
//!
//! Each asserts what must hold for any bytes. The corpora that the fuzzers found are replayed by the tests below, so that what was
//! fixed once stays fixed.

mod answers;
mod commands;
mod envelope;
mod state;
mod token;

pub use answers::answers;
pub use commands::commands;
pub use envelope::envelope;
pub use state::request_state;
pub use token::token;

use crate::config::{self, Config};

/// A configuration file: it is read, or refused with one line that names a place in it.
pub fn configuration(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Config::from_toml(text, "t.toml") {
        Ok(config) => {
            let _ = (config::unavailable(&config), format!("{config:?}"));
        }
        Err(error) => {
            let line = error.to_string();
            assert!(!line.contains('\n'), "one line: {line}");
            assert!(line.starts_with("t.toml"), "it says where: {line}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Runs a target over its corpus, and over the first half of each input.
    fn replay(name: &str, target: fn(&[u8])) {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(name);
        let mut files = 0;
        for entry in std::fs::read_dir(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display())) {
            let data = std::fs::read(entry.unwrap().path()).unwrap();
            target(&data);
            target(&data[..data.len() / 2]);
            files += 1;
        }
        assert!(files > 0, "{} is empty", directory.display());
    }

    #[test]
    fn the_corpus_of_envelopes_holds() {
        replay("envelope", envelope);
    }

    #[test]
    fn the_corpus_of_commands_holds() {
        replay("commands", commands);
    }

    #[test]
    fn the_corpus_of_answers_holds() {
        replay("answers", answers);
    }

    #[test]
    fn the_corpus_of_request_states_holds() {
        replay("request_state", request_state);
    }

    #[test]
    fn the_corpus_of_tokens_holds() {
        replay("token", token);
    }

    #[test]
    fn the_corpus_of_configurations_holds() {
        replay("configuration", configuration);
    }
}
