//! The scenes of the demo.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::place::Place;
use super::player::{Player, number, structured};
use super::{LIMIT, failed, limited, say};
use crate::cli::Stop;
use crate::cli::show::Show;
use crate::client::{Reply, Task, TaskStatus};
use crate::demo::{files, size};

/// What the demo hashes at most: it shall end in some seconds wherever it is started.
const HASHED: (u64, u64) = (20_000, 256_000_000);

/// What it exports at most, which takes longer for each byte.
const EXPORTED: (u64, u64) = (2_000, 32_000_000);

/// Names that are passed over: what they hold is made, not written.
const SKIP: [&str; 3] = [".git", "target", "node_modules"];

/// A call that becomes a task. Gives the task, and the digest of all files.
pub(super) async fn a_call_becomes_a_task(player: &Player) -> anyhow::Result<(Task, String)> {
    say("\n1. A call that becomes a task: the client asks for hash_files and gets a task at once.")?;
    let mut show = Show::new("hash_files");
    let began = Instant::now();
    let task = player.task("hash_files", hash_arguments(), &mut show).await?;
    show.clear();
    say(&format!("   tools/call hash_files -> task {}, {}", task.id, task.status.as_str()))?;
    let mut show = Show::new("hash_files");
    let report = player.completed(&task, &mut show).await?;
    let (count, digest) = (number(&report, "count")?, digest(&report)?);
    let (of, took) = (size(number(&report, "total")?), began.elapsed().as_secs_f64());
    say(&format!("   tasks/get -> completed: {}, {of}, in {took:.1} s", files(count)))?;
    say(&format!("   digest of all of them: {digest}"))?;
    remarks(&report, HASHED)?;
    Ok((task, digest))
}

/// A task that asks before it replaces a file.
pub(super) async fn a_task_asks(player: &Player, root: &Path) -> anyhow::Result<()> {
    say("\n2. A task that asks: export_files writes an archive, and there is a file of its name already.")?;
    let place = Place::below(root)?;
    fs::write(place.path("files.tar.gz"), "an archive of yesterday")?;
    let to = place.relative("files.tar.gz");
    let mut skip = SKIP.to_vec();
    skip.push(place.name());
    let arguments = json!({ "path": ".", "to": to, "skip": skip, "max_files": EXPORTED.0, "max_bytes": EXPORTED.1 });
    let mut show = Show::new("export_files");
    let task = player.task("export_files", arguments, &mut show).await?;
    let asking = |task: &crate::client::Task| task.status == TaskStatus::InputRequired;
    let task = player.until(&task, "a task that asks", &mut show, asking).await?;
    show.clear();
    let Some((key, question)) = task.questions.first_key_value() else {
        return Err(failed("expected a task that is input_required to carry its question").into());
    };
    let message = question.params.get("message").and_then(Value::as_str).unwrap_or_default();
    say(&format!("   tasks/get -> input_required, {key:?} is asked: {message}"))?;
    say("   tasks/update: accept, overwrite = true")?;
    let mut show = Show::new("export_files");
    player.accept(&task, key, json!({ "overwrite": true })).await?;
    let report = player.completed(&task, &mut show).await?;
    let (count, total, bytes) = (number(&report, "count")?, number(&report, "total")?, number(&report, "bytes")?);
    say(&format!("   tasks/get -> completed: {}, {} in an archive of {}", files(count), size(total), size(bytes)))?;
    remarks(&report, EXPORTED)?;

    let archive = place.path("files.tar.gz");
    let read = tokio::task::spawn_blocking(move || read_back(&archive));
    let read = limited("to read the archive back", read)
        .await??
        .map_err(|error| failed(format!("expected an archive that can be read back, but: {error}")))?;
    if read != (count, total) {
        let text = format!("expected {count} files and {total} bytes in the archive, read {} and {}", read.0, read.1);
        return Err(failed(text).into());
    }
    say("   read back: every file is in it, whole; the archive is removed again")
}

/// A task that is cancelled while it runs.
pub(super) async fn a_task_is_cancelled(player: &Player, root: &Path) -> anyhow::Result<()> {
    say("\n3. A task that is cancelled: an export that would take long is stopped in the middle.")?;
    let place = Place::below(root)?;
    let bytes = place.large_file("large/hole").map_err(|error| {
        failed(format!("the demo needs a file that looks large, and this file system makes none: {error}"))
    })?;
    let arguments = json!({ "path": place.relative("large"), "to": place.relative("large.tar.gz") });
    let mut show = Show::new("export_files");
    let task = player.task("export_files", arguments, &mut show).await?;
    // It tells of large files how far they are.
    let begun = |task: &crate::client::Task| task.status_message.as_ref().is_some_and(|text| text.contains("hole ("));
    let seen = player.until(&task, "an export that is under way", &mut show, begun).await?;
    let Some(half) = place.half_written() else {
        return Err(failed("expected a half-written archive while the export is under way").into());
    };
    show.clear();
    let hole = size(bytes);
    say(&format!("   tools/call export_files -> task {}, on a file of {hole} (a hole: it takes no space)", task.id))?;
    let message = seen.status_message.unwrap_or_default();
    say(&format!("   tasks/get -> {}: {message}; half-written: {half}", seen.status.as_str()))?;

    let began = Instant::now();
    limited("an answer to tasks/cancel", player.client().cancel(&task.id)).await??;
    let ended = limited("an answer to tasks/get", player.client().task(&task.id)).await??;
    if ended.status != TaskStatus::Cancelled {
        return Err(
            failed(format!("expected a cancelled task after tasks/cancel, it is {}", ended.status.as_str())).into()
        );
    }
    say("   tasks/cancel -> acknowledged; tasks/get -> cancelled")?;
    while let Some(half) = place.half_written() {
        if began.elapsed() > LIMIT {
            return Err(failed(format!("expected the half-written archive {half} to be removed by now")).into());
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let took = began.elapsed().as_millis();
    if place.path("large.tar.gz").exists() {
        return Err(failed("expected no archive after the cancel").into());
    }
    say(&format!("   the tool has stopped and its half-written archive is gone, {took} ms after the cancel"))
}

/// A client that does not know tasks.
pub(super) async fn without_the_extension(player: &Player, before: &str) -> anyhow::Result<()> {
    say("\n4. The same tool and a client that knows nothing of tasks: it gets the answer itself.")?;
    let mut show = Show::new("hash_files");
    let reply = player.call("hash_files", hash_arguments(), &mut show).await?;
    show.clear();
    let Reply::Complete(result) = reply else {
        return Err(
            failed(format!("expected a complete result for a client without the extension, got {reply:?}")).into()
        );
    };
    let report = structured(result)?;
    let same = match digest(&report)? == before {
        true => "the same digest",
        false => "another digest: some of them have changed meanwhile",
    };
    say(&format!("   tools/call hash_files -> complete: {}, {same}", files(number(&report, "count")?)))
}

/// A task that waits for its answer when the server stops.
pub(super) async fn before_the_restart(player: &Player) -> anyhow::Result<Task> {
    say("\n5. A restart: one task has finished, another waits for an answer, and the server stops.")?;
    let mut show = Show::new("ask_name");
    let task = player.task("ask_name", json!({}), &mut show).await?;
    let asking = |task: &Task| task.status == TaskStatus::InputRequired;
    let task = player.until(&task, "a task that asks", &mut show, asking).await?;
    show.clear();
    say(&format!("   tools/call ask_name -> task {}, {}", task.id, task.status.as_str()))?;
    Ok(task)
}

/// What a new server over the same file says of both.
pub(super) async fn after_the_restart(
    player: &Player,
    finished: &Task,
    before: &str,
    waiting: &Task,
) -> anyhow::Result<()> {
    say("   the server is stopped, and another one started over the same file")?;
    let mut show = Show::new("hash_files");
    let report = player.completed(finished, &mut show).await?;
    show.clear();
    if digest(&report)? != before {
        return Err(failed("expected the finished task's result as it was before the restart").into());
    }
    say(&format!("   tasks/get {} -> completed, with the same digest", finished.id))?;
    // The tool is declared restartable, so it runs again and asks again.
    let mut show = Show::new("ask_name");
    let asking = |task: &Task| task.status == TaskStatus::InputRequired;
    let again = player.until(waiting, "the task that waited to ask again", &mut show, asking).await?;
    show.clear();
    say(&format!("   tasks/get {} -> input_required: its tool may be restarted, so it was", waiting.id))?;
    let Some((key, _)) = again.questions.first_key_value() else {
        return Err(failed("expected a task that is input_required to carry its question").into());
    };
    let mut show = Show::new("ask_name");
    player.accept(&again, key, json!({ "name": "Ada" })).await?;
    let greeting = player
        .until(&again, "the end of the task that was answered", &mut show, |task| task.status == TaskStatus::Completed);
    greeting.await?;
    show.clear();
    say("   tasks/update: accept, name = Ada; tasks/get -> completed")
}

fn hash_arguments() -> Value {
    json!({ "path": ".", "skip": SKIP, "max_files": HASHED.0, "max_bytes": HASHED.1 })
}

fn digest(report: &Value) -> Result<String, Stop> {
    let digest = report.get("digest").and_then(Value::as_str).unwrap_or_default();
    match digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        true => Ok(digest.to_owned()),
        false => Err(failed(format!("expected a SHA-256 digest, got {digest:?}"))),
    }
}

/// What a reader should know of a result.
fn remarks(report: &Value, (most, bytes): (u64, u64)) -> anyhow::Result<()> {
    if report.get("truncated").and_then(Value::as_bool) == Some(true) {
        say(&format!("   (there is more here; the demo takes {} and {} at most)", files(most), size(bytes)))?;
    }
    let unreadable = report.pointer("/unreadable/count").and_then(Value::as_u64).unwrap_or(0);
    if unreadable > 0 {
        say(&format!("   ({unreadable} could not be read, which the tool reports and goes on)"))?;
    }
    Ok(())
}

/// How many files an archive has, and how many bytes they have.
fn read_back(archive: &PathBuf) -> std::io::Result<(u64, u64)> {
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(fs::File::open(archive)?));
    let (mut count, mut total) = (0, 0);
    let mut buffer = vec![0; 64 << 10];
    for entry in archive.entries()? {
        let mut entry = entry?;
        count += 1;
        loop {
            match entry.read(&mut buffer)? {
                0 => break,
                read => total += read as u64,
            }
        }
    }
    Ok((count, total))
}
