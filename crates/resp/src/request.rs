use crate::counters::Counters;
use base::limits::BUF_ALIGN;
use base::{Buf, BufPool};
use std::ops::Range;

/// One argument of a request, its name among them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Arg {
    /// Bytes of the request, from here to here.
    Staged(usize, usize),
    /// A buffer of its own: which one of the request's.
    Apart(usize),
    /// It has more bytes than any value, and was skipped.
    TooLong,
}

// The bytes that a request may take include those of its arguments.
const _: () = assert!(size_of::<Arg>() == 24);

/// A value that a client sent.
#[derive(Debug)]
pub(crate) enum Value {
    /// The place of its bytes in [`Inbox::staging`](crate::Inbox), until the next read.
    Staged(Range<usize>),
    Own(Buf),
}

/// A GET, or a SET without options. Its arguments are not too long.
#[derive(Debug)]
pub(crate) struct Plain<'a> {
    pub(crate) key: &'a [u8],
    /// That of a SET.
    pub(crate) value: Option<Value>,
    /// No byte has arrived after it.
    pub(crate) is_last: bool,
}

/// A command as a client sent it. Borrowed from the bytes that arrived.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Bytes of this request, unless a person typed it, and of those before it: a run has values
    /// here.
    pub(crate) staging: &'a [u8],
    /// The words that a person typed, without quotes.
    pub(crate) typed: Option<&'a [u8]>,
    /// Begin and end of the request in `typed`, or else in `staging`.
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) args: &'a [Arg],
    pub(crate) apart: &'a [Buf],
    pub(crate) counters: &'a Counters,
    /// Where long values get their buffers from.
    pub(crate) pool: &'a BufPool,
    /// No byte has arrived after it.
    pub(crate) is_last: bool,
}

/// The same, for later.
#[derive(Clone, Debug)]
pub(crate) struct KeptRequest {
    bytes: Vec<u8>,
    args: Vec<Arg>,
    apart: Vec<Buf>,
}

impl<'a> Request<'a> {
    /// How many arguments there are; the first is the command's name.
    #[expect(clippy::len_without_is_empty, reason = "a request has a name at least")]
    pub fn len(&self) -> usize {
        self.args.len()
    }

    /// The bytes of the request, except those of arguments with buffers of their own.
    fn bytes(&self) -> &'a [u8] {
        &self.typed.unwrap_or(self.staging)[self.start..self.end]
    }

    /// The bytes of an argument. There are none where it is too long for any value.
    pub fn arg(&self, at: usize) -> &'a [u8] {
        match &self.args[at] {
            Arg::Staged(start, end) => &self.bytes()[*start..*end],
            Arg::Apart(number) => self.apart[*number].bytes().unwrap_or_default(),
            Arg::TooLong => &[],
        }
    }

    /// All arguments from `at` on.
    pub fn rest(&self, at: usize) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        let request = *self;
        (at..request.len()).map(move |at| request.arg(at))
    }

    /// An argument as a value: the buffer that it arrived in, or a copy, which is aligned for a
    /// disk if it is long.
    pub fn value(&self, at: usize) -> Buf {
        match &self.args[at] {
            Arg::Apart(number) => self.apart[*number].clone(),
            _ => {
                self.counters.count_copy(self.arg(at).len());
                copied(self.arg(at), self.pool)
            }
        }
    }

    /// The request as a GET, or a SET without options, if it is one of these.
    pub(crate) fn plain(&self) -> Option<Plain<'a>> {
        let is_set = match (self.len(), self.arg(0)) {
            (2, name) if name.eq_ignore_ascii_case(b"get") => false,
            (3, name) if name.eq_ignore_ascii_case(b"set") => true,
            _ => return None,
        };
        if self.is_too_long() {
            return None;
        }
        let value = is_set.then(|| match &self.args[2] {
            Arg::Staged(start, end) if self.typed.is_none() => {
                Value::Staged(self.start + start..self.start + end)
            }
            _ => Value::Own(self.value(2)),
        });
        Some(Plain { key: self.arg(1), value, is_last: self.is_last })
    }

    /// True for what a browser sends. A web page must not make the drive execute the body of its
    /// request.
    pub(crate) fn is_of_a_browser(&self) -> bool {
        [&b"post"[..], b"host:"].iter().any(|name| self.arg(0).eq_ignore_ascii_case(name))
    }

    /// True when an argument is longer than any value.
    pub(crate) fn is_too_long(&self) -> bool {
        self.args.iter().any(|arg| matches!(arg, Arg::TooLong))
    }

    /// Bytes of all arguments.
    pub(crate) fn bytes_len(&self) -> usize {
        self.rest(0).map(<[u8]>::len).sum()
    }

    pub(crate) fn keep(&self) -> KeptRequest {
        KeptRequest {
            bytes: self.bytes().to_vec(),
            args: self.args.to_vec(),
            apart: self.apart.to_vec(),
        }
    }
}

/// A copy of `bytes` as a value. A long one is aligned as a disk takes it.
pub(crate) fn copied(bytes: &[u8], pool: &BufPool) -> Buf {
    if bytes.len() < BUF_ALIGN {
        return Buf::copy_from(bytes);
    }
    let mut buf = pool.take(bytes.len());
    buf.as_mut().copy_from_slice(bytes);
    buf.freeze()
}

impl KeptRequest {
    pub(crate) fn request<'a>(&'a self, counters: &'a Counters, pool: &'a BufPool) -> Request<'a> {
        Request {
            staging: &self.bytes,
            typed: None,
            start: 0,
            end: self.bytes.len(),
            args: &self.args,
            apart: &self.apart,
            counters,
            pool,
            is_last: true,
        }
    }

    /// Bytes of memory that it takes.
    pub(crate) fn held_bytes(&self) -> usize {
        let apart = self.apart.iter().map(Buf::held_bytes);
        self.bytes.len() + size_of_val(&*self.args) + apart.sum::<usize>()
    }
}
