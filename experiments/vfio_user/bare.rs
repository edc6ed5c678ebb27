use experiments::loopback::core;
use guest::{BLOCK_BYTES, Doorbells, GuestMemory, Place, Queue};
use spec::{Command, Completion, Status};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, spawn};
use zerocopy::{FromBytes, IntoBytes};

const ENTRIES: u16 = 1_024;

/// A thread that answers reads in a ring of commands, and does nothing else: no registers, no
/// checks, one queue.
pub(crate) struct BareRing {
    memory: Arc<GuestMemory>,
    place: Place,
    /// The doorbells: a tail, and a head that it does not need.
    doorbells: usize,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

/// The host's end.
pub(crate) struct BareDoorbells {
    memory: Arc<GuestMemory>,
    address: usize,
}

impl Doorbells for BareDoorbells {
    #[inline]
    fn ring_tail(&mut self, tail: u16) {
        self.memory.store(self.address, tail.into());
    }

    #[inline]
    fn ring_head(&mut self, head: u16) {
        self.memory.store(self.address + 4, head.into());
    }
}

impl BareRing {
    /// Starts it with so many blocks in memory.
    pub(crate) fn start(blocks: u64) -> Self {
        let memory = Arc::new(GuestMemory::new(16 << 20));
        let place = Place::allocate(&memory, ENTRIES);
        let doorbells = memory.allocate(8);
        let stop = Arc::<AtomicBool>::default();
        let (of_thread, stopped) = (memory.clone(), stop.clone());
        core::pin(core::SERVER);
        let thread = spawn(move || answer(&of_thread, place, doorbells, blocks, &stopped));
        core::pin(core::CLIENT);
        Self { memory, place, doorbells, stop, thread }
    }

    pub(crate) fn queue(&self) -> Queue<BareDoorbells> {
        let doorbells = BareDoorbells { memory: self.memory.clone(), address: self.doorbells };
        Queue::new(&self.memory, self.place, doorbells)
    }

    pub(crate) fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("the thread does not panic");
    }
}

fn answer(memory: &GuestMemory, place: Place, doorbells: usize, blocks: u64, stop: &AtomicBool) {
    let blocks = usize::try_from(blocks).expect("a few thousand");
    let content = vec![7_u8; blocks * BLOCK_BYTES];
    let (mut head, mut tail, mut phase) = (0, 0, 1);
    while !stop.load(Ordering::Relaxed) {
        let end = u16::try_from(memory.load(doorbells)).expect("it is a place in the queue");
        if head == end {
            std::hint::spin_loop();
        }
        while head != end {
            let mut bytes = [0; 64];
            memory.read(place.submission + usize::from(head) * 64, &mut bytes);
            head = (head + 1) % place.entries;
            let command = Command::read_from_bytes(&bytes).expect("it has 64 bytes");
            let block = usize::try_from(command.lba()).expect("a few thousand") * BLOCK_BYTES;
            let [buffer, _] =
                command.prp().map(|entry| usize::try_from(entry).expect("it is inside"));
            memory.write(buffer, &content[block..block + BLOCK_BYTES]);
            let entry = Completion::new(command.command_id(), Status::SUCCESS, 0);
            let (before, last) = entry.as_bytes().split_at(12);
            let last = u32::from_le_bytes(last.try_into().expect("4 bytes are left"));
            let at = place.completion + usize::from(tail) * 16;
            memory.write(at, before);
            memory.store(at + 12, last | phase << 16);
            tail = (tail + 1) % place.entries;
            if tail == 0 {
                phase ^= 1;
            }
        }
    }
}
