use super::problem::Problem;
use std::io::{BufRead, Read};

/// No operation needs a line as long; a file that is no text may have one that fills the memory.
const LINE_BYTES_MAX: u64 = 64 << 10;

/// How often progress is told: some twenty times a second.
const PROGRESS_BYTES: u64 = 4 << 20;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The first bytes of a compressed file, and the program that decompresses it.
const COMPRESSED: [(&[u8], &str); 2] = [(b"\x1F\x8B", "gzip"), (b"\x28\xB5\x2F\xFD", "zstd")];

/// The lines of a trace that say something.
#[derive(Debug)]
pub(super) struct Lines<R, P> {
    source: R,
    progress: P,
    line: Vec<u8>,
    number: u64,
    bytes: u64,
    /// How many bytes the progress was told of.
    told: u64,
}

impl<R: BufRead, P: FnMut(u64)> Lines<R, P> {
    pub(super) fn new(source: R, progress: P) -> Self {
        Self { source, progress, line: Vec::new(), number: 0, bytes: 0, told: 0 }
    }

    /// The number of the line that was read last, from 1.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The next line that is neither blank nor a comment. It ends in a line feed, even if the file
    /// does not.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, Problem> {
        loop {
            if !self.read()? {
                (self.progress)(self.bytes);
                return Ok(None);
            }
            if !self.line.starts_with(b"#") && !self.line.trim_ascii().is_empty() {
                return Ok(Some(&self.line));
            }
        }
    }

    /// Reads a line; false at the end of the trace.
    fn read(&mut self) -> Result<bool, Problem> {
        self.line.clear();
        let mut limited = self.source.by_ref().take(LINE_BYTES_MAX + 1);
        let read = limited.read_until(b'\n', &mut self.line);
        let read = read.map_err(|error| Problem::Read(error.to_string()))? as u64;
        if read == 0 {
            return Ok(false);
        }
        self.number += 1;
        self.bytes += read;
        if self.bytes - self.told >= PROGRESS_BYTES {
            self.told = self.bytes;
            (self.progress)(self.bytes);
        }
        if self.number == 1 {
            self.check_start()?;
        }
        if read > LINE_BYTES_MAX {
            return Err(Problem::LineBytes);
        }
        if !self.line.ends_with(b"\n") {
            self.line.push(b'\n');
        }
        Ok(true)
    }

    fn check_start(&mut self) -> Result<(), Problem> {
        for (magic, program) in COMPRESSED {
            if self.line.starts_with(magic) {
                return Err(Problem::Compressed(program));
            }
        }
        if self.line.starts_with(BYTE_ORDER_MARK) {
            self.line.drain(..BYTE_ORDER_MARK.len());
        }
        Ok(())
    }
}
