use crate::reply::Reply;
use base::{BufMut, BufPool};
use net::{Broken, Stream};
use std::io::IoSliceMut;

/// Bytes that are read at once.
const READ_BYTES: usize = 64 << 10;
/// The longest line.
const LINE_BYTES_MAX: usize = 64 << 10;
/// The longest bulk, as Redis has it.
const BULK_BYTES_MAX: usize = 512 << 20;
/// The most bytes of one answer, with the memory to keep it.
const REPLY_BYTES_MAX: usize = 1 << 30;
/// The most levels of nested arrays.
const DEPTH_MAX: usize = 8;
/// A bulk of at least this many bytes that is still incomplete gets its own buffer.
const APART_BYTES_MIN: usize = 4 << 10;
/// Bytes that end a line and a bulk.
const END: usize = 2;

/// Why the received bytes are no answer. Later bytes cannot be parsed either.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoReply {
    /// An unknown first byte of an answer.
    #[error("an answer begins with '{}'", char::from(*.0).escape_default())]
    Kind(u8),
    /// A line has no end.
    #[error("a line has no end")]
    LongLine,
    /// A number or length is malformed, or is too great.
    #[error("a number or a length is none")]
    Number,
    /// A bulk does not end where it should.
    #[error("a value does not end where it should")]
    End,
    /// The answer exceeds the memory of one answer.
    #[error("an answer is too large")]
    TooMuch,
}

/// An array with missing members.
#[derive(Debug)]
struct Open {
    missing: usize,
    members: Vec<Reply>,
}

/// The receiving end of a connection: parses answers from a stream.
///
/// Call [`Self::next`] until it has no more, then [`Self::read`], and so on.
#[derive(Debug)]
pub struct Replies {
    staging: Vec<u8>,
    /// Bytes up to here are parsed,
    at: usize,
    /// and bytes up to here are received.
    end: usize,
    /// The open arrays, outermost first.
    open: Vec<Open>,
    /// A long bulk, its bytes received, and its length.
    apart: Option<(BufMut, usize, usize)>,
    /// Bytes kept for the answer in progress.
    kept_bytes: usize,
    pool: BufPool,
}

/// The result of one parsing step.
enum Step {
    /// More bytes are needed.
    More,
    /// An array has begun.
    Opened,
    Whole(Reply),
}

impl Replies {
    /// Returns the state of a new connection. Bulks are allocated from `pool`.
    pub fn new(pool: BufPool) -> Self {
        Self {
            staging: Vec::new(),
            at: 0,
            end: 0,
            open: Vec::new(),
            apart: None,
            kept_bytes: 0,
            pool,
        }
    }

    /// Returns the next answer. `None`: more bytes are needed.
    #[expect(clippy::should_implement_trait, reason = "it is asked again when more has come")]
    pub fn next(&mut self) -> Result<Option<Reply>, NoReply> {
        loop {
            let mut reply = match self.step()? {
                Step::More => return Ok(None),
                Step::Opened => continue,
                Step::Whole(reply) => reply,
            };
            loop {
                let Some(open) = self.open.last_mut() else {
                    self.kept_bytes = 0;
                    return Ok(Some(reply));
                };
                open.members.push(reply);
                open.missing -= 1;
                if open.missing > 0 {
                    break;
                }
                reply = Reply::Array(std::mem::take(&mut open.members));
                self.open.pop();
            }
        }
    }

    fn step(&mut self) -> Result<Step, NoReply> {
        if let Some((_, filled, len)) = &self.apart {
            return if filled < len { Ok(Step::More) } else { self.end_apart() };
        }
        let come = &self.staging[self.at..self.end];
        let Some(len) = come.iter().position(|byte| *byte == b'\n') else {
            return if come.len() > LINE_BYTES_MAX {
                Err(NoReply::LongLine)
            } else {
                Ok(Step::More)
            };
        };
        let line = come[..len].strip_suffix(b"\r").unwrap_or(&come[..len]);
        let Some((kind, line)) = line.split_first() else { return Err(NoReply::Kind(b'\r')) };
        let text = || String::from_utf8_lossy(line).into_owned();
        let reply = match kind {
            b'+' => Reply::Status(text()),
            b'-' => Reply::Error(text()),
            b':' => Reply::Integer(number(line)?),
            b'$' => match number(line)? {
                -1 => Reply::Null,
                bytes => {
                    let bytes =
                        usize::try_from(bytes).ok().filter(|bytes| *bytes <= BULK_BYTES_MAX);
                    return self.bulk(len + 1, bytes.ok_or(NoReply::Number)?);
                }
            },
            b'*' => match number(line)? {
                -1 => Reply::Null,
                0 => Reply::Array(Vec::new()),
                members => {
                    let missing = usize::try_from(members).map_err(|_| NoReply::Number)?;
                    self.at += len + 1;
                    return self.open(missing);
                }
            },
            kind => return Err(NoReply::Kind(*kind)),
        };
        self.at += len + 1;
        self.keep(len)?;
        Ok(Step::Whole(reply))
    }

    /// Begins a bulk of `bytes`, after a line of `head` bytes.
    fn bulk(&mut self, head: usize, bytes: usize) -> Result<Step, NoReply> {
        let come = &self.staging[self.at + head..self.end];
        let is_whole = come.len() >= bytes + END;
        if !is_whole && bytes < APART_BYTES_MIN {
            return Ok(Step::More);
        }
        self.keep(bytes)?;
        let come = &self.staging[self.at + head..self.end];
        let mut buf = self.pool.take(bytes);
        if is_whole {
            buf.as_mut().copy_from_slice(&come[..bytes]);
            check_end(&come[bytes..bytes + END])?;
            self.at += head + bytes + END;
            return Ok(Step::Whole(Reply::Bulk(buf.freeze())));
        }
        let here = come.len().min(bytes);
        buf.as_mut()[..here].copy_from_slice(&come[..here]);
        // Received bytes of the end stay in staging.
        self.at += head + here;
        self.apart = Some((buf, here, bytes));
        self.step()
    }

    /// Ends a bulk with its own buffer, which is complete except for its end.
    fn end_apart(&mut self) -> Result<Step, NoReply> {
        let Some(end) = self.staging[self.at..self.end].get(..END) else { return Ok(Step::More) };
        check_end(end)?;
        self.at += END;
        let (buf, ..) = self.apart.take().expect("it was looked at before");
        Ok(Step::Whole(Reply::Bulk(buf.freeze())))
    }

    fn open(&mut self, missing: usize) -> Result<Step, NoReply> {
        if self.open.len() == DEPTH_MAX {
            return Err(NoReply::TooMuch);
        }
        // Each member needs some received bytes, so a large announced length allocates nothing.
        self.open.push(Open { missing, members: Vec::new() });
        Ok(Step::Opened)
    }

    /// Counts bytes kept for an answer.
    fn keep(&mut self, bytes: usize) -> Result<(), NoReply> {
        self.kept_bytes += bytes + size_of::<Reply>();
        if self.kept_bytes > REPLY_BYTES_MAX { Err(NoReply::TooMuch) } else { Ok(()) }
    }

    /// Reads from `stream` and returns the number of bytes. `None`: no bytes are available now; 0:
    /// the stream has ended. Called after [`Self::next`] returned `None`.
    pub fn read(&mut self, stream: &impl Stream) -> Result<Option<usize>, Broken> {
        self.staging.copy_within(self.at..self.end, 0);
        self.end -= self.at;
        self.at = 0;
        if self.staging.len() < self.end + READ_BYTES {
            self.staging.resize(self.end + READ_BYTES, 0);
        }
        let mut data: &mut [u8] = &mut [];
        if let Some((buf, filled, len)) = &mut self.apart {
            data = &mut buf.as_mut()[*filled..*len];
        }
        let data_len = data.len();
        let mut parts = [IoSliceMut::new(data), IoSliceMut::new(&mut self.staging[self.end..])];
        let parts = if data_len == 0 { &mut parts[1..] } else { &mut parts[..] };
        let Some(read) = stream.try_read(parts)? else { return Ok(None) };
        if let Some((_, filled, _)) = &mut self.apart {
            *filled += read.min(data_len);
        }
        self.end += read.saturating_sub(data_len);
        Ok(Some(read))
    }
}

fn check_end(bytes: &[u8]) -> Result<(), NoReply> {
    if bytes == b"\r\n" { Ok(()) } else { Err(NoReply::End) }
}

fn number(line: &[u8]) -> Result<i64, NoReply> {
    std::str::from_utf8(line).ok().and_then(|text| text.parse().ok()).ok_or(NoReply::Number)
}
