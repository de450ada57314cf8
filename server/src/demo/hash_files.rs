//! `hash_files`: the SHA-256 of every file below a directory.

use std::io::{self, Read};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;
use tokkuri_core::wire::Json;

use super::listing::{Wanted, list};
use super::read_file::ReadFile;
use super::root::{Opener, Root};
use super::thread::{halted, on_a_thread};
use super::to_path::BelowRoot;
use super::{Unreadable, files, size, usual_skip};
use crate::tool::{Annotations, Content, RunContext, TaskMode, Tool, ToolError, ToolResult};

/// How many bytes the paths of one result may have. With what stands around each of them (path, size, digest: 120 bytes) a
/// result stays within `tasks.max_result_bytes` as it is unless set.
const MAX_PATHS_BYTES: usize = 1 << 20;

/// How many files one result may list, for the same reason.
const MAX_FILES: usize = 20_000;

/// How many files a text lists; structured content has them all.
const MAX_SHOWN: usize = 200;

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Arguments {
    /// The directory, relative to the root.
    #[serde(default = "here")]
    path: String,
    /// Names of files and directories to pass over, wherever they are.
    #[serde(default = "usual_skip")]
    skip: Vec<String>,
    /// How many files to hash at most.
    #[serde(default = "max_files")]
    #[schemars(range(min = 1, max = 20_000))]
    max_files: usize,
    /// How many bytes to hash at most; files that do not fit are left out.
    #[serde(default)]
    max_bytes: Option<u64>,
}

fn here() -> String {
    ".".to_owned()
}

const fn max_files() -> usize {
    MAX_FILES
}

/// What was found.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Report {
    /// How many files were hashed.
    count: u64,
    /// How many bytes they have together.
    total: u64,
    /// SHA-256 of the files' lines as sha256sum(1) prints them, in the order of `files`: one number for all of them.
    digest: String,
    /// Each file, in the same order for the same directory.
    files: Vec<Hashed>,
    /// What could not be read.
    unreadable: Unreadable,
    /// Symbolic links that were passed over.
    symlinks: u64,
    /// Whether there are files that were left out because of `max_files` or `max_bytes`.
    truncated: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Hashed {
    /// Relative to the directory.
    path: String,
    /// Its size.
    bytes: u64,
    /// In hexadecimal digits.
    sha256: String,
}

/// The tool.
pub(crate) fn tool(root: Arc<Root>) -> Tool {
    Tool::new("hash_files", move |arguments: Arguments, cx: RunContext| {
        let root = Arc::clone(&root);
        async move {
            let report = on_a_thread(move |stopped| hash(&root, &arguments, &cx, stopped)).await?;
            let structured = Json::of(&report)?;
            Ok(ToolResult { content: report.texts(), structured: Some(structured), ..ToolResult::default() })
        }
    })
    .title("Hash files")
    .description(
        "SHA-256 of every regular file below a directory of the root. Symbolic links are not followed; what cannot be read is \
         reported.",
    )
    .annotations(Annotations { read_only: Some(true), open_world: Some(false), ..Annotations::default() })
    .output::<Report>()
    .task(TaskMode::Optional)
    .restartable()
}

fn hash(root: &Root, arguments: &Arguments, cx: &RunContext, stopped: &CancellationToken) -> Result<Report, ToolError> {
    let base = root.directory(&BelowRoot::parse(&arguments.path)?)?;
    let wanted = Wanted {
        skip: &arguments.skip,
        except: None,
        files: arguments.max_files.min(MAX_FILES),
        bytes: arguments.max_bytes.unwrap_or(u64::MAX),
        text: MAX_PATHS_BYTES,
    };
    let listing = list(&base, &wanted, stopped)?;

    let of = listing.files.len() as u64;
    let mut report = Report {
        count: 0,
        total: 0,
        digest: String::new(),
        files: Vec::with_capacity(listing.files.len()),
        unreadable: listing.unreadable,
        symlinks: listing.symlinks,
        truncated: listing.truncated,
    };
    let mut all = Sha256::new();
    let mut opener = Opener::new(&base);
    let mut buffer = vec![0; 64 << 10];
    for (path, done) in listing.files.iter().zip(0..) {
        let shown = path.to_string_lossy();
        cx.progress(done, of, &shown);
        let tell = |far: &str| cx.progress(done, of, format!("{shown} ({far})"));
        let hashed = opener.file(path).and_then(|file| digest(ReadFile::new(file, stopped, &tell)?, &mut buffer));
        match hashed {
            _ if stopped.is_cancelled() => return Err(halted()),
            Ok((sha256, bytes)) => {
                all.update(format!("{sha256}  {shown}\n"));
                report.count += 1;
                report.total += bytes;
                report.files.push(Hashed { path: shown.into_owned(), bytes, sha256 });
            }
            Err(error) => report.unreadable.add(path, error),
        }
    }
    cx.progress(of, of, "hashed");
    report.digest = hex(&all.finalize());
    Ok(report)
}

fn digest(mut file: ReadFile<'_>, buffer: &mut [u8]) -> io::Result<(String, u64)> {
    let mut hasher = Sha256::new();
    loop {
        match file.read(buffer) {
            Ok(0) => return Ok((hex(&hasher.finalize()), file.done())),
            Ok(read) => hasher.update(&buffer[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a String takes everything");
        text
    })
}

impl Report {
    /// The sum of it, and the list as sha256sum(1) prints and checks it if it is one that people read.
    fn texts(&self) -> Vec<Content> {
        let mut texts = vec![Content::Text(self.text())];
        if (1..=MAX_SHOWN).contains(&self.files.len()) {
            let lines = self.files.iter().map(|file| format!("{}  {}\n", file.sha256, file.path));
            texts.push(Content::Text(lines.collect()));
        }
        texts
    }

    fn text(&self) -> String {
        let mut text = format!("{}, {}; digest of all: {}", files(self.count), size(self.total), self.digest);
        if self.symlinks > 0 {
            text.push_str(&format!("; symbolic links passed over: {}", self.symlinks));
        }
        if self.unreadable.count > 0 {
            text.push_str(&format!("; unreadable: {}", self.unreadable.count));
        }
        if self.truncated {
            text.push_str("; there are more files than this call was to hash (max_files, max_bytes)");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::super::testing::{Client, call, failure, structured};
    use super::*;

    /// `printf abc | sha256sum`
    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    fn hash_files(root: &Path) -> Tool {
        tool(Arc::new(Root::open(root).unwrap()))
    }

    #[tokio::test]
    async fn every_file_is_hashed_and_the_digest_is_that_of_sha256sum() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("d/.git")).unwrap();
        fs::write(dir.path().join("d/abc"), "abc").unwrap();
        fs::write(dir.path().join("d/.git/x"), "not wanted").unwrap();
        let client = Client::default();
        let result = call(&hash_files(dir.path()), json!({ "path": "d" }), &client).await.unwrap();
        let report = structured(&hash_files(dir.path()), &result);
        assert_eq!((&report["count"], &report["total"]), (&json!(1), &json!(3)));
        assert_eq!(report["files"], json!([{ "path": "abc", "bytes": 3, "sha256": ABC }]));
        let mut all = Sha256::new();
        all.update(format!("{ABC}  abc\n"));
        assert_eq!(report["digest"], hex(&all.finalize()));
        assert_eq!(client.told(), ["0/1 abc", "1/1 hashed"]);
    }

    #[tokio::test]
    async fn nothing_outside_the_root_is_hashed() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("root");
        fs::create_dir(&root).unwrap();
        fs::write(place.path().join("secret"), "abc").unwrap();
        symlink("../secret", root.join("file")).unwrap();
        symlink("..", root.join("up")).unwrap();
        let tool = hash_files(&root);
        for (path, text) in [
            ("..", "outside the root"),
            ("/", "outside the root"),
            ("up", "symbolic link"),
            ("up/root", "symbolic link"),
            ("none", "no such directory"),
            ("file", "symbolic link"),
        ] {
            let said = failure(call(&tool, json!({ "path": path }), &Client::default()).await);
            assert!(said.contains(text), "{path}: {said}");
            assert!(!said.contains(&*place.path().to_string_lossy()), "{path}: {said}");
        }
        let result = call(&tool, json!({}), &Client::default()).await.unwrap();
        let report = structured(&tool, &result);
        assert_eq!((&report["count"], &report["symlinks"]), (&json!(0), &json!(2)));
    }

    #[tokio::test]
    async fn what_cannot_be_read_is_reported_and_does_not_stop_the_rest() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("good"), "abc").unwrap();
        fs::create_dir(dir.path().join("closed")).unwrap();
        fs::write(dir.path().join("secret"), "abc").unwrap();
        let set = |name: &str, mode| {
            fs::set_permissions(dir.path().join(name), fs::Permissions::from_mode(mode)).unwrap();
        };
        set("closed", 0);
        set("secret", 0);
        let for_all = fs::read(dir.path().join("secret")).is_ok();
        let tool = hash_files(dir.path());
        let result = call(&tool, json!({}), &Client::default()).await.unwrap();
        set("closed", 0o700);
        let report = structured(&tool, &result);
        // Whoever may read everything (root) finds nothing unreadable.
        let expected = if for_all { (2, 0) } else { (1, 2) };
        assert_eq!((&report["count"], &report["unreadable"]["count"]), (&json!(expected.0), &json!(expected.1)));
    }

    #[test]
    fn a_file_that_becomes_a_link_after_it_was_listed_is_reported() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("root");
        fs::create_dir(&root).unwrap();
        fs::write(place.path().join("secret"), "abc").unwrap();
        fs::write(root.join("a"), "1").unwrap();
        fs::write(root.join("b"), "2").unwrap();
        // The moment the first file is told of, the second is swapped.
        let swapped = root.join("b");
        let client = Client::watching(move |told| {
            if told == "0/2 a" {
                fs::remove_file(&swapped).unwrap();
                symlink("../secret", &swapped).unwrap();
            }
        });
        let arguments: Arguments = serde_json::from_value(json!({})).unwrap();
        let report = hash(&Root::open(&root).unwrap(), &arguments, &client.cx(), &CancellationToken::new()).unwrap();
        assert_eq!((report.count, report.unreadable.count), (1, 1));
        assert!(report.unreadable.first[0].reason.contains("symbolic link"), "{report:?}");
        assert!(report.files.iter().all(|file| file.sha256 != ABC), "{report:?}");
    }

    #[tokio::test]
    async fn limits_leave_files_out_and_say_so() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a"), vec![0; 100]).unwrap();
        fs::write(dir.path().join("b"), "abc").unwrap();
        let tool = hash_files(dir.path());
        for (arguments, path) in [(json!({ "max_files": 1 }), "a"), (json!({ "max_bytes": 50 }), "b")] {
            let result = call(&tool, arguments, &Client::default()).await.unwrap();
            let report = structured(&tool, &result);
            assert_eq!((&report["count"], &report["truncated"]), (&json!(1), &json!(true)));
            assert_eq!(report["files"][0]["path"], path);
            let Content::Text(text) = &result.content[0] else { panic!("{result:?}") };
            assert!(text.contains("there are more files"), "{text}");
        }
    }

    #[tokio::test]
    async fn as_many_files_as_are_allowed_fit_into_a_result() {
        let listed = |n: usize| Hashed { path: format!("{n:052}"), bytes: u64::MAX >> 20, sha256: ABC.to_owned() };
        let hashed: Vec<_> = (0..MAX_FILES).map(listed).collect();
        assert!(hashed.iter().map(|file| file.path.len()).sum::<usize>() < MAX_PATHS_BYTES);
        assert!(Json::of(&hashed).unwrap().as_str().len() < crate::engine::TaskSettings::default().max_result_bytes);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_cancel_stops_it_within_one_large_file() {
        let dir = tempfile::tempdir().unwrap();
        // It takes no space, and would take minutes.
        fs::File::create(dir.path().join("large")).unwrap().set_len(64 << 30).unwrap();
        let client = Client::default();
        let tool = hash_files(dir.path());
        let run = tokio::spawn({
            let client = client.clone();
            async move { call(&tool, json!({}), &client).await }
        });
        client.until(|told| told.contains("large (")).await;
        run.abort();
        assert!(run.await.unwrap_err().is_cancelled());
        // The thread gives its context back once it has stopped.
        tokio::time::timeout(Duration::from_secs(20), client.alone()).await.unwrap();
    }

    #[test]
    fn the_schema_names_the_defaults() {
        let dir = tempfile::tempdir().unwrap();
        let properties = Value::Object((*hash_files(dir.path()).input_schema).clone());
        assert_eq!(properties["properties"]["path"]["default"], ".", "{properties}");
        assert_eq!(properties["properties"]["skip"]["default"], json!([".git", "target", "node_modules"]));
    }
}
