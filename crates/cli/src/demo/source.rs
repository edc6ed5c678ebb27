use base::{Buf, BufMut};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// A regular file being read.
#[derive(Debug)]
pub(super) struct Source {
    file: File,
    /// As it was opened.
    metadata: Metadata,
    /// Bytes still expected.
    left: u64,
    is_started: bool,
    /// Whether it had fewer bytes than it said.
    is_short: bool,
}

impl Source {
    /// Opens the file at `path`; `None` when it is no regular one.
    ///
    /// Never waits, as for somebody at the other end of a pipe, and follows no link: both may have
    /// taken a file's place since it was listed.
    pub(super) fn open(path: &Path) -> io::Result<Option<Self>> {
        let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Ok(None);
        }
        let left = metadata.len();
        Ok(Some(Self { file, metadata, left, is_started: false, is_short: false }))
    }

    /// Length in bytes, as it was opened.
    pub(super) fn len(&self) -> u64 {
        self.metadata.len()
    }

    /// How many names it has.
    pub(super) fn names(&self) -> u64 {
        self.metadata.nlink()
    }

    /// The next `max` bytes, fewer at the end, then `None`. An empty file has one empty chunk.
    pub(super) fn next_chunk(&mut self, max: u32) -> io::Result<Option<Buf>> {
        if self.left == 0 && self.is_started {
            return Ok(None);
        }
        let expected = u32::try_from(self.left).map_or(max, |left| left.min(max));
        let mut buffer = BufMut::unpooled(expected as usize);
        let count = read_full(&mut self.file, buffer.as_mut())?;
        let is_first = !std::mem::replace(&mut self.is_started, true);
        self.left -= u64::from(expected);
        if count < expected {
            (self.left, self.is_short) = (0, true);
        }
        if count == 0 && expected > 0 && !is_first {
            return Ok(None);
        }
        Ok(Some(buffer.freeze().slice(0..count)))
    }

    /// Whether what was read may not be what was there at any one time: fewer bytes came than the
    /// file had, or more are there, or its length or time of change is another.
    pub(super) fn has_changed(mut self) -> io::Result<bool> {
        let now = self.file.metadata()?;
        let is_same = now.len() == self.metadata.len()
            && (now.mtime(), now.mtime_nsec())
                == (self.metadata.mtime(), self.metadata.mtime_nsec());
        Ok(self.is_short || !is_same || read_full(&mut self.file, &mut [0])? > 0)
    }
}

/// Fills `bytes` as far as `file` has any; how far.
fn read_full(file: &mut File, bytes: &mut [u8]) -> io::Result<u32> {
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(u32::try_from(filled).expect("a buffer is shorter than 4 GiB"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use tempfile::tempdir;

    fn chunks(source: &mut Source, max: u32) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| source.next_chunk(max).unwrap())
            .map(|chunk| chunk.bytes().unwrap().to_vec())
            .collect()
    }

    #[test]
    fn a_file_is_read_in_chunks() {
        let folder = tempdir().unwrap();
        let path = folder.path().join("file");
        for (content, expected) in [
            (&b""[..], vec![0]),
            (b"a", vec![1]),
            (b"abcd", vec![4]),
            (b"abcdefghi", vec![4, 4, 1]),
        ] {
            fs::write(&path, content).unwrap();
            let mut source = Source::open(&path).unwrap().unwrap();
            assert_eq!((source.len(), source.names()), (content.len() as u64, 1));
            let chunks = chunks(&mut source, 4);
            assert_eq!(chunks.concat(), content);
            assert_eq!(chunks.iter().map(Vec::len).collect::<Vec<_>>(), expected);
            assert!(!source.has_changed().unwrap());
        }
    }

    #[test]
    fn a_file_that_changes_while_it_is_read_is_noticed() {
        let folder = tempdir().unwrap();
        let path = folder.path().join("file");
        for (after, expected) in [
            (&b"abcdefghij"[..], &b"abcdefgh"[..]),
            (b"abcdef", b"abcdef"),
            (b"abcd", b"abcd"),
            (b"", b"abcd"),
        ] {
            fs::write(&path, b"abcdefgh").unwrap();
            let mut source = Source::open(&path).unwrap().unwrap();
            let mut read = source.next_chunk(4).unwrap().unwrap().bytes().unwrap().to_vec();
            fs::write(&path, after).unwrap();
            read.extend(chunks(&mut source, 4).concat());
            assert_eq!(read, expected);
            assert!(source.has_changed().unwrap());
        }
    }

    #[test]
    fn a_rewrite_of_the_same_length_is_noticed_by_its_time() {
        let folder = tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, b"abcd").unwrap();
        let mut source = Source::open(&path).unwrap().unwrap();
        chunks(&mut source, 4);
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.set_modified(std::time::UNIX_EPOCH).unwrap();
        assert!(source.has_changed().unwrap());
    }

    #[test]
    fn what_is_no_regular_file_is_not_waited_for() {
        let folder = tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        assert!(Source::open(&pipe).unwrap().is_none());
        assert!(Source::open(folder.path()).unwrap().is_none());
        let link = folder.path().join("link");
        fs::write(folder.path().join("file"), b"").unwrap();
        std::os::unix::fs::symlink("file", &link).unwrap();
        assert!(Source::open(&link).is_err());
        assert!(Source::open(&folder.path().join("gone")).is_err());
    }
}
