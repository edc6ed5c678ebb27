use crate::counters::Counters;
use crate::door::Door;
use base::limits::BUF_ALIGN;
use base::{Buf, BufPool};

/// One argument of a request, its name among them.
#[derive(Clone, Debug)]
pub(crate) enum Arg {
    /// It lies among the bytes that came, from here to here.
    Staged(usize, usize),
    /// It has come to a place of its own.
    Apart(Buf),
    /// It has more bytes than any value, and was passed over.
    TooLong,
}

/// A command as a client sent it. Borrowed from the bytes that came.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) args: &'a [Arg],
    pub(crate) counters: &'a Counters,
    /// Where long values get their places from.
    pub(crate) pool: &'a BufPool,
    /// Nothing has come behind it.
    pub(crate) is_last: bool,
}

/// The same, for later.
#[derive(Clone, Debug)]
pub(crate) struct KeptRequest {
    bytes: Vec<u8>,
    args: Vec<Arg>,
}

impl<'a> Request<'a> {
    /// How many arguments there are; the first is the command's name.
    #[expect(clippy::len_without_is_empty, reason = "a request has a name at least")]
    pub fn len(&self) -> usize {
        self.args.len()
    }

    /// The bytes of an argument. There are none where it is too long for any value.
    pub fn arg(&self, at: usize) -> &'a [u8] {
        match &self.args[at] {
            Arg::Staged(start, end) => &self.bytes[*start..*end],
            Arg::Apart(buf) => buf.bytes().unwrap_or_default(),
            Arg::TooLong => &[],
        }
    }

    /// All arguments from `at` on.
    pub fn rest(&self, at: usize) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        let request = *self;
        (at..request.len()).map(move |at| request.arg(at))
    }

    /// An argument as a value: without a copy, if it came to a place of its own. Of some length it
    /// is copied to one as a disk takes it.
    pub fn value(&self, at: usize) -> Buf {
        match &self.args[at] {
            Arg::Apart(buf) => buf.clone(),
            _ => {
                let bytes = self.arg(at);
                self.counters.count_copy(bytes.len());
                if bytes.len() < BUF_ALIGN {
                    return Buf::copy_from(bytes);
                }
                let mut buf = self.pool.take(bytes.len());
                buf.as_mut().copy_from_slice(bytes);
                buf.freeze()
            }
        }
    }

    /// True for what a browser sends: a page that somebody looks at must not make the drive do what
    /// stands in the body of its request.
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
        KeptRequest { bytes: self.bytes.to_vec(), args: self.args.to_vec() }
    }
}

impl KeptRequest {
    pub(crate) fn request<'a>(&'a self, door: &'a Door) -> Request<'a> {
        let (counters, pool) = (door.counters(), door.pool());
        Request { bytes: &self.bytes, args: &self.args, counters, pool, is_last: true }
    }

    /// Bytes of memory that it takes.
    pub(crate) fn held_bytes(&self) -> usize {
        let apart = self.args.iter().map(|arg| match arg {
            Arg::Apart(buf) => buf.held_bytes(),
            _ => 0,
        });
        self.bytes.len() + size_of_val(&*self.args) + apart.sum::<usize>()
    }
}
