//! The archive itself: tar in gzip, file by file.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use tokio_util::sync::CancellationToken;

use super::super::Unreadable;
use super::super::read_file::ReadFile;
use super::super::root::{Directory, Opener};
use crate::tool::RunContext;

/// What went into it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) count: u64,
    pub(super) total: u64,
    pub(super) bytes: u64,
}

/// Writes `files` below `base` into `file` and brings it to the disk. What cannot be read goes to `unreadable`.
///
/// # Errors
/// If it was told to stop, or `file` cannot be written.
pub(super) fn write(
    file: File,
    base: &Directory,
    files: &[PathBuf],
    unreadable: &mut Unreadable,
    cx: &RunContext,
    stopped: &CancellationToken,
) -> io::Result<Written> {
    let mut written = Written::default();
    let mut archive = tar::Builder::new(GzEncoder::new(BufWriter::new(file), Compression::default()));
    let mut opener = Opener::new(base);
    let of = files.len() as u64;
    for (path, done) in files.iter().zip(0..) {
        let shown = path.to_string_lossy();
        cx.progress(done, of, &shown);
        let tell = |far: &str| cx.progress(done, of, format!("{shown} ({far})"));
        let opened = opener.file(path).and_then(|file| Ok((header(&file)?, ReadFile::new(file, stopped, &tell)?)));
        let (mut header, file) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                unreadable.add(path, error);
                continue;
            }
        };
        let bytes = file.size();
        header.set_size(bytes);
        let mut whole = Whole { file, given: 0, stopped, lost: None };
        archive.append_data(&mut header, Path::new(path), &mut whole)?;
        if let Some(lost) = whole.lost {
            unreadable.add(path, lost);
        }
        written.count += 1;
        written.total += bytes;
    }
    let file = archive.into_inner()?.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?;
    sync(&file)?;
    written.bytes = file.metadata()?.len();
    // The last moment to stop: after this the archive gets its name.
    if stopped.is_cancelled() {
        return Err(io::Error::other("stopped"));
    }
    cx.progress(of, of, "written");
    Ok(written)
}

fn sync(mut file: &File) -> io::Result<()> {
    file.flush()?;
    file.sync_all()
}

/// Kind, mode and time of a file; who owns it is nobody else's business.
fn header(file: &File) -> io::Result<tar::Header> {
    let metadata = file.metadata()?;
    let mut header = tar::Header::new_gnu();
    header.set_metadata_in_mode(&metadata, tar::HeaderMode::Complete);
    header.set_uid(0);
    header.set_gid(0);
    Ok(header)
}

/// A file that has as many bytes as its header says, whatever happens to it meanwhile: what cannot be read any more is
/// filled with zeros, and told.
struct Whole<'a> {
    file: ReadFile<'a>,
    given: u64,
    stopped: &'a CancellationToken,
    lost: Option<String>,
}

impl Read for Whole<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stopped.is_cancelled() {
            return Err(io::Error::other("stopped"));
        }
        let left = self.file.size() - self.given;
        let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let mut read = 0;
        if self.lost.is_none() && most > 0 {
            match self.file.read(&mut buffer[..most]) {
                Ok(0) => self.lost = Some("it became shorter while it was read; the rest is zeros".to_owned()),
                Ok(some) => read = some,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => return Err(error),
                Err(error) => self.lost = Some(format!("{error}; the rest is zeros")),
            }
        }
        if self.lost.is_some() {
            buffer[..most].fill(0);
            read = most;
        }
        self.given += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::Client;
    use super::super::super::{root::Root, to_path::BelowRoot};
    use super::*;

    #[test]
    fn a_file_that_shrinks_while_it_is_read_leaves_the_archive_readable() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a"), vec![7; 1000]).unwrap();
        let file = File::open(dir.path().join("a")).unwrap();
        let stopped = CancellationToken::new();
        let tell = |_: &str| {};
        let file = ReadFile::new(file, &stopped, &tell).unwrap();
        File::options().write(true).open(dir.path().join("a")).unwrap().set_len(10).unwrap();
        let mut whole = Whole { file, given: 0, stopped: &stopped, lost: None };
        let mut read = Vec::new();
        whole.read_to_end(&mut read).unwrap();
        assert_eq!((read.len(), &read[..11]), (1000, &[7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 0][..]));
        assert!(whole.lost.unwrap().contains("shorter"));
    }

    #[test]
    fn names_longer_than_a_tar_header_come_back_whole() {
        let dir = tempfile::tempdir().unwrap();
        let long = Path::new(&"d".repeat(200)).join("f".repeat(200));
        std::fs::create_dir(dir.path().join("d".repeat(200))).unwrap();
        std::fs::write(dir.path().join(&long), "x").unwrap();
        let base = Root::open(dir.path()).unwrap().directory(&BelowRoot::parse(".").unwrap()).unwrap();
        let out = tempfile::tempfile().unwrap();
        let (cx, stopped) = (Client::default().cx(), CancellationToken::new());
        let files = [long.clone(), "gone".into()];
        let mut unreadable = Unreadable::default();
        let written = write(out.try_clone().unwrap(), &base, &files, &mut unreadable, &cx, &stopped).unwrap();
        assert_eq!((written.count, written.total, unreadable.count), (1, 1, 1));
        io::Seek::rewind(&mut &out).unwrap();
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(out));
        let paths: Vec<_> =
            archive.entries().unwrap().map(|entry| entry.unwrap().path().unwrap().into_owned()).collect();
        assert_eq!(paths, [long]);
    }
}
