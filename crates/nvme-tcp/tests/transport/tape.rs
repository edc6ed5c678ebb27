use base::Rng;
use net::{Broken, Stream};
use std::cell::{Cell, RefCell};
use std::io::{IoSlice, IoSliceMut};

/// A stream without a peer: what is read was put there before, what is written stays. Each read and
/// each write moves a share that is drawn from a seed, and often none.
#[derive(Debug)]
pub(crate) struct Tape {
    incoming: Vec<u8>,
    /// How much of that was read.
    read: Cell<usize>,
    outgoing: RefCell<Vec<u8>>,
    rng: RefCell<Rng>,
    /// The most that one call moves.
    share_max: usize,
}

impl Tape {
    pub(crate) fn new(seed: u64, share_max: usize) -> Self {
        Self {
            incoming: Vec::new(),
            read: Cell::new(0),
            outgoing: RefCell::default(),
            rng: RefCell::new(Rng::new(seed)),
            share_max,
        }
    }

    /// One from which `bytes` are read.
    pub(crate) fn of(bytes: &[u8], seed: u64, share_max: usize) -> Self {
        Self { incoming: bytes.to_vec(), ..Self::new(seed, share_max) }
    }

    /// What was written.
    pub(crate) fn written(&self) -> Vec<u8> {
        self.outgoing.borrow().clone()
    }

    pub(crate) fn is_read(&self) -> bool {
        self.read.get() == self.incoming.len()
    }

    fn share(&self, len: usize) -> usize {
        let max = self.share_max.min(len) as u64;
        usize::try_from(self.rng.borrow_mut().below(max + 1)).expect("it is a length")
    }
}

impl Stream for Tape {
    fn try_read(&self, into: &mut [IoSliceMut<'_>]) -> Result<Option<usize>, Broken> {
        let incoming = &self.incoming[self.read.get()..];
        let room: usize = into.iter().map(|part| part.len()).sum();
        assert!(room > 0, "a read for nothing");
        let share = self.share(incoming.len().min(room));
        let mut rest = share;
        for part in into {
            let len = part.len().min(rest);
            part[..len].copy_from_slice(&incoming[share - rest..][..len]);
            rest -= len;
        }
        self.read.set(self.read.get() + share);
        Ok((share > 0).then_some(share))
    }

    fn try_write(&self, parts: &[IoSlice<'_>]) -> Result<Option<usize>, Broken> {
        assert!(parts.len() <= 1024, "the kernel takes no more parts");
        assert!(parts.iter().all(|part| !part.is_empty()), "an empty part");
        let share = self.share(parts.iter().map(|part| part.len()).sum());
        let bytes = parts.iter().flat_map(|part| part.iter()).take(share);
        self.outgoing.borrow_mut().extend(bytes);
        Ok((share > 0).then_some(share))
    }

    async fn readable(&self) {}

    async fn writable(&self) {}

    fn shut_down(&self) {}
}
