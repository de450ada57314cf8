//! The command `tokkuri`, as an operator types it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// The command that was built beside the test bed.
#[derive(Clone, Debug)]
pub struct Tokkuri(PathBuf);

impl Tokkuri {
    /// The one beside this test bed.
    ///
    /// # Panics
    /// If there is none: whoever runs one package's tests builds that package's binaries alone.
    pub fn beside(testbed: &Path) -> Self {
        let command = testbed.with_file_name("tokkuri");
        assert!(command.exists(), "build the command first: cargo build --bin tokkuri (in the profile of these tests)");
        Self(command)
    }

    /// `tokkuri admin WORDS` at the node that listens there: what it prints.
    ///
    /// # Panics
    /// If it does not exit with 0.
    pub fn admin(&self, grpc: SocketAddr, words: &[&str]) -> String {
        let mut command = Command::new(&self.0);
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TOKKURI_")) {
            command.env_remove(name);
        }
        command.arg("admin").args(words).args(["--grpc", &grpc.to_string()]).stdin(Stdio::null());
        let said = command.output().expect("run the command");
        assert!(said.status.success(), "tokkuri admin {}: {said:?}", words.join(" "));
        String::from_utf8(said.stdout).expect("it prints text")
    }

    /// The same with `-o json`.
    ///
    /// # Panics
    /// If it does not exit with 0, or prints no JSON.
    pub fn admin_json(&self, grpc: SocketAddr, words: &[&str]) -> Value {
        let said = self.admin(grpc, &[words, &["-o", "json"]].concat());
        serde_json::from_str(&said).unwrap_or_else(|e| panic!("tokkuri admin {}: {e}: {said}", words.join(" ")))
    }
}
