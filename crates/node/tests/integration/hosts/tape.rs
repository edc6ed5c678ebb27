use base::Nanos;
use net::{Broken, End, Stream};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{IoSlice, IoSliceMut};
use std::rc::Rc;

/// All that went over the connections of a network, as the hosts saw it.
#[derive(Debug, Default)]
pub(crate) struct Tape(RefCell<Vec<Piece>>);

/// What one call of a host read or wrote.
#[derive(Debug)]
struct Piece {
    way: ConnectionInfo,
    at: Nanos,
    bytes: Vec<u8>,
}

/// A direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ConnectionInfo {
    pub(crate) connection: u64,
    pub(crate) is_from_host: bool,
}

/// A PDU that went over the wire.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    pub(crate) way: ConnectionInfo,
    /// When its last byte was written, or read.
    pub(crate) at: Nanos,
    pub(crate) bytes: Vec<u8>,
}

impl Tape {
    /// Every PDU, in the order of their ends: a PDU is as long as its PLEN says (TCP 1.1, PDU
    /// Common Header).
    pub(crate) fn pdus(&self) -> Vec<Recorded> {
        let mut begun: BTreeMap<ConnectionInfo, Vec<u8>> = BTreeMap::new();
        let mut pdus = Vec::new();
        for Piece { way, at, bytes } in self.0.borrow().iter() {
            let begun = begun.entry(*way).or_default();
            begun.extend_from_slice(bytes);
            let mut taken = 0;
            while let Some(len) = begun.get(taken + 4..taken + 8) {
                let len = u32::from_le_bytes(len.try_into().expect("there are 4")) as usize;
                assert!(len >= 8, "a PDU has a header");
                let Some(bytes) = begun.get(taken..taken + len) else { break };
                pdus.push(Recorded { way: *way, at: *at, bytes: bytes.to_vec() });
                taken += len;
            }
            begun.drain(..taken);
        }
        assert!(begun.values().all(Vec::is_empty), "a PDU is cut off");
        pdus
    }
}

/// A host's end of a connection that is recorded.
#[derive(Debug)]
pub(crate) struct Taped {
    end: End,
    tape: Rc<Tape>,
}

impl Taped {
    pub(crate) fn new(end: End, tape: Rc<Tape>) -> Self {
        Self { end, tape }
    }

    fn record<'a>(
        &self,
        is_from_host: bool,
        moved: Option<usize>,
        parts: impl Iterator<Item = &'a [u8]>,
    ) {
        let Some(len @ 1..) = moved else { return };
        let bytes = parts.flatten().copied().take(len).collect();
        let way = ConnectionInfo { connection: self.end.number(), is_from_host };
        self.tape.0.borrow_mut().push(Piece { way, at: clock::now(), bytes });
    }
}

impl Stream for Taped {
    fn try_read(&self, into: &mut [IoSliceMut<'_>]) -> Result<Option<usize>, Broken> {
        let read = self.end.try_read(into)?;
        self.record(false, read, into.iter().map(|part| &**part));
        Ok(read)
    }

    fn try_write(&self, parts: &[IoSlice<'_>]) -> Result<Option<usize>, Broken> {
        let written = self.end.try_write(parts)?;
        self.record(true, written, parts.iter().map(|part| &**part));
        Ok(written)
    }

    async fn readable(&self) {
        self.end.readable().await;
    }

    async fn writable(&self) {
        self.end.writable().await;
    }

    fn shut_down(&self) {
        self.end.shut_down();
    }
}
