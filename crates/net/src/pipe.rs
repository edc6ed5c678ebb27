use crate::conditions::{Conditions, below};
use crate::stream::Broken;
use base::{Nanos, Rng};
use clock::Notify;
use std::collections::VecDeque;
use std::io::{IoSlice, IoSliceMut};

/// Bytes that arrive together.
#[derive(Debug)]
struct Piece {
    at: Nanos,
    bytes: Vec<u8>,
    read: usize,
}

/// One direction of a connection.
#[derive(Debug)]
pub(crate) struct Pipe {
    conditions: Conditions,
    rng: Rng,
    /// On the way or not yet read, in order of arrival.
    pieces: VecDeque<Piece>,
    /// Their bytes that are not yet read.
    held: usize,
    /// Nothing arrives before what was sent before it.
    last_arrival: Nanos,
    /// When the reader learns that the writer has ended the connection.
    end_at: Option<Nanos>,
    /// When the writer learns that the reader has ended. Bytes written before that are dropped.
    deaf_at: Option<Nanos>,
    is_cut: bool,
}

/// Several parts as one run of bytes, from which pieces are cut.
struct Gathered<'a> {
    parts: &'a [IoSlice<'a>],
    part: &'a [u8],
}

impl Gathered<'_> {
    /// The next `len` bytes, which are there.
    fn take(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(len);
        while bytes.len() < len {
            if self.part.is_empty() {
                let (first, rest) = self.parts.split_first().expect("the parts are longer");
                (self.part, self.parts) = (first, rest);
            }
            let (now, later) = self.part.split_at(self.part.len().min(len - bytes.len()));
            bytes.extend_from_slice(now);
            self.part = later;
        }
        bytes
    }
}

/// Tasks that wait for one direction. Outside the pipe, so that a waiting task borrows no pipe.
#[derive(Debug, Default)]
pub(crate) struct Bells {
    pub(crate) reader: Notify,
    pub(crate) writer: Notify,
}

impl Pipe {
    pub(crate) fn new(conditions: Conditions, rng: Rng) -> Self {
        Self {
            conditions,
            rng,
            pieces: VecDeque::new(),
            held: 0,
            last_arrival: Nanos::ZERO,
            end_at: None,
            deaf_at: None,
            is_cut: false,
        }
    }

    /// See [`crate::Stream::try_write`]; the writer has not ended the connection. Adds the instants
    /// at which bytes arrive to `arrivals`.
    pub(crate) fn write(
        &mut self,
        parts: &[IoSlice<'_>],
        now: Nanos,
        arrivals: &mut Vec<Nanos>,
    ) -> Result<Option<usize>, Broken> {
        if self.is_cut || self.deaf_at.is_some_and(|at| at <= now) {
            return Err(Broken);
        }
        let len: usize = parts.iter().map(|part| part.len()).sum();
        if self.deaf_at.is_some() || len == 0 {
            return Ok(Some(len));
        }
        let room = self.conditions.capacity - self.held;
        if room == 0 {
            return Ok(None);
        }
        let taken = self.draw_share(len.min(room));
        let mut from = Gathered { parts, part: &[] };
        let mut left = taken;
        while left > 0 {
            let piece = self.conditions.draw_piece(left, &mut self.rng);
            let at = self.draw_arrival(now);
            self.pieces.push_back(Piece { at, bytes: from.take(piece), read: 0 });
            arrivals.push(at);
            left -= piece;
        }
        self.held += taken;
        Ok(Some(taken))
    }

    /// See [`crate::Stream::try_read`]; the reader has not ended the connection.
    pub(crate) fn read(
        &mut self,
        into: &mut [IoSliceMut<'_>],
        now: Nanos,
    ) -> Result<Option<usize>, Broken> {
        if self.is_cut {
            return Err(Broken);
        }
        let arrived = self.pieces.iter().take_while(|piece| piece.at <= now);
        let there: usize = arrived.map(|piece| piece.bytes.len() - piece.read).sum();
        if there == 0 {
            return Ok(self.end_at.is_some_and(|at| at <= now).then_some(0));
        }
        let room: usize = into.iter().map(|part| part.len()).sum();
        if room == 0 {
            return Ok(None);
        }
        let taken = self.draw_share(there.min(room));
        self.take(taken, into);
        self.held -= taken;
        Ok(Some(taken))
    }

    /// True when the reader would be told something.
    pub(crate) fn is_readable(&self, now: Nanos) -> bool {
        let next = self.pieces.front().map(|piece| piece.at).or(self.end_at);
        self.is_cut || next.is_some_and(|at| at <= now)
    }

    /// True when the writer would be told something.
    pub(crate) fn is_writable(&self) -> bool {
        self.is_cut || self.deaf_at.is_some() || self.held < self.conditions.capacity
    }

    /// The writer ends the connection. Returns when the reader learns of it.
    pub(crate) fn end(&mut self, now: Nanos) -> Nanos {
        let at = self.draw_arrival(now);
        self.end_at = Some(at);
        at
    }

    /// The reader ends the connection, and the writer learns of it at `at`.
    pub(crate) fn go_deaf(&mut self, at: Nanos) {
        self.deaf_at = Some(at);
        self.drop_all();
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// What is on the way and what is not yet read is lost.
    pub(crate) fn cut(&mut self) {
        self.is_cut = true;
        self.drop_all();
    }

    fn drop_all(&mut self) {
        self.pieces.clear();
        self.held = 0;
    }

    fn draw_arrival(&mut self, now: Nanos) -> Nanos {
        let at = now + self.conditions.draw_delay(&mut self.rng);
        self.last_arrival = self.last_arrival.max(at);
        self.last_arrival
    }

    /// How many of `len` bytes one call moves: often all of them.
    fn draw_share(&mut self, len: usize) -> usize {
        if self.rng.below(4) > 0 { len } else { 1 + below(len, &mut self.rng) }
    }

    fn take(&mut self, len: usize, into: &mut [IoSliceMut<'_>]) {
        let mut left = len;
        for part in into {
            let part_len = part.len().min(left);
            let mut to = &mut part[..part_len];
            left -= to.len();
            while !to.is_empty() {
                let piece = self.pieces.front_mut().expect("no more is taken than is there");
                let from = &piece.bytes[piece.read..];
                let count = from.len().min(to.len());
                to[..count].copy_from_slice(&from[..count]);
                to = &mut to[count..];
                piece.read += count;
                if piece.read == piece.bytes.len() {
                    self.pieces.pop_front();
                }
            }
        }
    }
}
