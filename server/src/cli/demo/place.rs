//! The directory of the demo's own below the root: what the demo writes is in it, and goes with it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::cli::{Exit, Stop};

/// Removed with everything in it when dropped.
#[derive(Debug)]
pub(super) struct Place {
    path: PathBuf,
    name: String,
}

impl Place {
    /// Makes it.
    pub(super) fn below(root: &Path) -> Result<Self, Stop> {
        let random = getrandom::u32().unwrap_or_else(|_| std::process::id());
        let name = format!(".tokkuri-demo-{random:08x}");
        let path = root.join(&name);
        fs::create_dir(&path).map_err(|error| {
            let text =
                format!("the demo needs a directory that it may write in, and {} is none: {error}", root.display());
            Stop::new(Exit::Usage, text)
        })?;
        Ok(Self { path, name })
    }

    /// Its name, for `skip`.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// A path in it as the tools know it.
    pub(super) fn relative(&self, name: &str) -> String {
        format!("{}/{name}", self.name)
    }

    /// A path in it.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// A file that looks large and takes no space: one hole.
    pub(super) fn large_file(&self, name: &str) -> io::Result<u64> {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap_or(&self.path))?;
        let file = File::create_new(path)?;
        // Some file systems end at 4 GiB.
        let mut bytes = 16 << 30;
        loop {
            match file.set_len(bytes) {
                Ok(()) => return Ok(bytes),
                Err(error) if bytes < 1 << 30 => return Err(error),
                Err(_) => bytes /= 4,
            }
        }
    }

    /// The file in it that an export is writing at the moment.
    pub(super) fn half_written(&self) -> Option<String> {
        let names = fs::read_dir(&self.path).ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names.into_iter().find(|name| name.ends_with(crate::demo::HALF_WRITTEN))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            eprintln!("{} could not be removed: {error}", self.path.display());
        }
    }
}
