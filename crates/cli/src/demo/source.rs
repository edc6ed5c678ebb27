use base::{Buf, BufMut};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// A regular file that is being read.
#[derive(Debug)]
pub(super) struct Source {
    file: File,
    /// Metadata at the time of opening.
    metadata: Metadata,
    /// Longest chunk.
    chunk_bytes: u32,
    /// Bytes still expected.
    left: u64,
    /// Bytes that are read ahead. For a file that reports a length of zero, up to one byte more
    /// than a chunk.
    ahead: Vec<u8>,
    is_started: bool,
    /// Whether the file was shorter than its reported length, or reported zero and had bytes.
    is_misleading: bool,
}

/// Bytes per read-ahead: a memory page, in which the kernel generates most of its files.
const AHEAD_BYTES: usize = 4_096;

impl Source {
    /// Opens the file at `path`, to be read in chunks of `chunk_bytes`. Returns `None` for a file
    /// that is not regular.
    ///
    /// Does not wait for the other end of a pipe and does not follow a link: either may have
    /// replaced the file since it was listed.
    pub(super) fn open(path: &Path, chunk_bytes: u32) -> io::Result<Option<Self>> {
        let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Ok(None);
        }
        let left = metadata.len();
        let mut source = Self {
            file,
            metadata,
            chunk_bytes,
            left,
            ahead: Vec::new(),
            is_started: false,
            is_misleading: false,
        };
        if left == 0 {
            source.read_ahead()?;
        }
        Ok(Some(source))
    }

    /// Returns the length in bytes at the time of opening. It is 0 for a file that the kernel
    /// generates while it is read, such as those of /proc.
    pub(super) fn announced_bytes(&self) -> u64 {
        self.metadata.len()
    }

    /// True if the file needs more than one chunk.
    pub(super) fn is_long(&self) -> bool {
        self.announced_bytes().max(self.ahead.len() as u64) > self.chunk_bytes.into()
    }

    /// True if the file reports a length of zero and had no bytes.
    pub(super) fn is_empty(&self) -> bool {
        self.announced_bytes() == 0 && !self.is_misleading
    }

    /// Returns the number of hard links.
    pub(super) fn names(&self) -> u64 {
        self.metadata.nlink()
    }

    /// Returns the next chunk, shorter at the end, then `None`. An empty file has one empty chunk.
    pub(super) fn next_chunk(&mut self) -> io::Result<Option<Buf>> {
        if !self.ahead.is_empty() {
            return self.next_ahead().map(Some);
        }
        if self.left == 0 && self.is_started {
            return Ok(None);
        }
        let max = self.chunk_bytes;
        let expected = u32::try_from(self.left).map_or(max, |left| left.min(max));
        let mut buffer = BufMut::unpooled(expected as usize);
        let count = read_full(&mut self.file, buffer.as_mut())?;
        let is_first = !std::mem::replace(&mut self.is_started, true);
        self.left -= u64::from(expected);
        if count < expected {
            (self.left, self.is_misleading) = (0, true);
        }
        if count == 0 && expected > 0 && !is_first {
            return Ok(None);
        }
        Ok(Some(buffer.freeze().slice(0..count)))
    }

    /// Returns the next chunk of the bytes read ahead.
    fn next_ahead(&mut self) -> io::Result<Buf> {
        let count = self.ahead.len().min(self.chunk_bytes as usize);
        let chunk = Buf::copy_from(&self.ahead[..count]);
        self.ahead.drain(..count);
        self.is_started = true;
        self.read_ahead()?;
        Ok(chunk)
    }

    /// Reads until a chunk and one more byte are read ahead, or the file ends.
    fn read_ahead(&mut self) -> io::Result<()> {
        let missing = u64::from(self.chunk_bytes) + 1 - self.ahead.len() as u64;
        // With reserved capacity, reads are not small: some files of /proc end after the first
        // small read.
        self.ahead.reserve(AHEAD_BYTES);
        (&self.file).take(missing).read_to_end(&mut self.ahead)?;
        self.is_misleading |= !self.ahead.is_empty();
        Ok(())
    }

    /// True if the file may have changed while it was read: its number of bytes differs from its
    /// reported length, or its length or modification time changed.
    pub(super) fn has_changed(mut self) -> io::Result<bool> {
        let now = self.file.metadata()?;
        let is_same = now.len() == self.metadata.len()
            && (now.mtime(), now.mtime_nsec())
                == (self.metadata.mtime(), self.metadata.mtime_nsec());
        Ok(self.is_misleading || !is_same || read_full(&mut self.file, &mut [0])? > 0)
    }
}

/// Fills `bytes` as far as `file` has bytes. Returns the number of bytes read.
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

    fn chunks(source: &mut Source) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| source.next_chunk().unwrap())
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
            let mut source = Source::open(&path, 4).unwrap().unwrap();
            assert_eq!((source.announced_bytes(), source.names()), (content.len() as u64, 1));
            let chunks = chunks(&mut source);
            assert_eq!(chunks.concat(), content);
            assert_eq!(chunks.iter().map(Vec::len).collect::<Vec<_>>(), expected);
            assert_eq!(source.is_empty(), content.is_empty());
            assert!(!source.has_changed().unwrap());
        }
    }

    /// Opens an empty file, as those of /proc look, and writes to it afterwards.
    #[test]
    fn a_file_that_says_it_is_empty_is_read_to_its_end() {
        let folder = tempdir().unwrap();
        let path = folder.path().join("file");
        for (content, expected) in
            [(&b"a"[..], vec![1]), (b"abcd", vec![4]), (b"abcde", vec![4, 1]), (b"", vec![0])]
        {
            fs::write(&path, b"").unwrap();
            let mut source = Source::open(&path, 4).unwrap().unwrap();
            fs::write(&path, content).unwrap();
            source.read_ahead().unwrap();
            assert_eq!((source.announced_bytes(), source.is_long()), (0, content.len() > 4));
            assert_eq!(source.is_empty(), content.is_empty());
            let chunks = chunks(&mut source);
            assert_eq!(chunks.concat(), content);
            assert_eq!(chunks.iter().map(Vec::len).collect::<Vec<_>>(), expected);
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
            let mut source = Source::open(&path, 4).unwrap().unwrap();
            let mut read = source.next_chunk().unwrap().unwrap().bytes().unwrap().to_vec();
            fs::write(&path, after).unwrap();
            read.extend(chunks(&mut source).concat());
            assert_eq!(read, expected);
            assert!(source.has_changed().unwrap());
        }
    }

    #[test]
    fn a_rewrite_of_the_same_length_is_noticed_by_its_time() {
        let folder = tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, b"abcd").unwrap();
        let mut source = Source::open(&path, 4).unwrap().unwrap();
        chunks(&mut source);
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.set_modified(std::time::UNIX_EPOCH).unwrap();
        assert!(source.has_changed().unwrap());
    }

    #[test]
    fn opening_a_pipe_does_not_wait() {
        let folder = tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        assert!(Source::open(&pipe, 4).unwrap().is_none());
        assert!(Source::open(folder.path(), 4).unwrap().is_none());
        let link = folder.path().join("link");
        fs::write(folder.path().join("file"), b"").unwrap();
        std::os::unix::fs::symlink("file", &link).unwrap();
        assert!(Source::open(&link, 4).is_err());
        assert!(Source::open(&folder.path().join("gone"), 4).is_err());
    }
}
