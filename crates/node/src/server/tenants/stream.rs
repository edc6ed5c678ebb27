use super::member::Member;
use net::{Broken, Stream};
use std::cell::Cell;
use std::io::{IoSlice, IoSliceMut};
use std::rc::Rc;

/// The stream of a member of a tenant: reads only in its turn, and counts the bytes.
pub(in crate::server) struct TenantStream<S> {
    inner: Rc<S>,
    member: Rc<Member>,
    /// Whether the last read got all that it could take, so that there may be more.
    may_have_more: Cell<bool>,
}

impl<S: Stream> TenantStream<S> {
    pub(in crate::server) fn new(inner: Rc<S>, member: Rc<Member>) -> Self {
        Self { inner, member, may_have_more: Cell::new(false) }
    }

    /// Reads at most `most` bytes.
    fn read(&self, into: &mut [IoSliceMut<'_>], most: usize) -> Result<Option<usize>, Broken> {
        let room: usize = into.iter().map(|part| part.len()).sum();
        if room <= most {
            return self.inner.try_read(into);
        }
        let mut left = most;
        let mut parts = Vec::with_capacity(into.len());
        for part in into {
            let len = part.len().min(left);
            if len > 0 {
                parts.push(IoSliceMut::new(&mut part[..len]));
            }
            left -= len;
        }
        self.inner.try_read(&mut parts)
    }
}

impl<S: Stream> Stream for TenantStream<S> {
    fn try_read(&self, into: &mut [IoSliceMut<'_>]) -> Result<Option<usize>, Broken> {
        let most = self.member.readable_bytes();
        if most == 0 {
            return Ok(None);
        }
        let room: usize = into.iter().map(|part| part.len()).sum();
        let read = self.read(into, most)?;
        let bytes = read.unwrap_or(0);
        self.may_have_more.set(bytes > 0 && bytes == room.min(most));
        self.member.count_read(bytes);
        Ok(read)
    }

    fn try_write(&self, parts: &[IoSlice<'_>]) -> Result<Option<usize>, Broken> {
        let began = self.member.begin_send();
        let written = self.inner.try_write(parts)?;
        self.member.count_sent(written.unwrap_or(0), began);
        Ok(written)
    }

    async fn readable(&self) {
        let mut has_some = self.may_have_more.get();
        while !has_some {
            self.inner.readable().await;
            // A reactor tries some sockets again and again. A member that has no requests takes no
            // turn for that.
            has_some = self.inner.may_read();
        }
        self.member.turn().await;
    }

    async fn writable(&self) {
        self.inner.writable().await;
    }

    fn shut_down(&self) {
        self.inner.shut_down();
        self.member.end();
    }
}
