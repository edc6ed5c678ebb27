use crate::memory::GuestMemory;
use spec::{Command, Completion};
use std::sync::Arc;
use zerocopy::{FromBytes, IntoBytes};

/// The doorbells of a queue pair, as a guest writes them.
pub trait Doorbells {
    /// Writes the tail of the submission queue.
    fn ring_tail(&mut self, tail: u16);

    /// Writes the head of the completion queue.
    fn ring_head(&mut self, head: u16);
}

/// Where a queue pair lies in guest memory.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The address of the submission queue.
    pub submission: usize,
    /// The address of the completion queue.
    pub completion: usize,
    /// Entries of each of them.
    pub entries: u16,
}

impl Place {
    /// Allocates memory for a queue pair.
    pub fn allocate(memory: &GuestMemory, entries: u16) -> Self {
        let [submission, completion] =
            [64, 16].map(|bytes| memory.allocate(usize::from(entries) * bytes));
        Self { submission, completion, entries }
    }
}

/// A guest's queue pair with a buffer of [`BLOCK_BYTES`] for each command.
#[derive(Debug)]
pub struct Queue<D> {
    memory: Arc<GuestMemory>,
    place: Place,
    doorbells: D,
    tail: u16,
    head: u16,
    phase: bool,
    buffers: usize,
    next_block: u64,
}

/// Bytes of a buffer, and of a read.
pub const BLOCK_BYTES: usize = 4_096;

/// The namespace that is read.
const NSID: u32 = 1;

impl<D: Doorbells> Queue<D> {
    /// Returns a queue pair that is new to the device.
    pub fn new(memory: &Arc<GuestMemory>, place: Place, doorbells: D) -> Self {
        let buffers = memory.allocate(usize::from(place.entries) * BLOCK_BYTES);
        let memory = memory.clone();
        Self { memory, place, doorbells, tail: 0, head: 0, phase: true, buffers, next_block: 0 }
    }

    /// Writes each block once.
    pub fn fill(&mut self, blocks: u64) {
        let count = usize::try_from(blocks).expect("a few thousand");
        self.run(32, count, |block| Command::write(NSID, block % blocks, 1));
    }

    /// Reads random blocks, `depth` at a time.
    pub fn read(&mut self, depth: usize, count: usize, blocks: u64) {
        // A step that has no factor with a power of two visits all blocks.
        self.run(depth, count, |number| Command::read(NSID, number * 7_919 % blocks, 1));
    }

    fn run(&mut self, depth: usize, count: usize, command: impl Fn(u64) -> Command) {
        let (mut submitted, mut completed) = (0, 0);
        let mut free: Vec<u16> = (0..u16::try_from(depth).expect("a few")).collect();
        while completed < count {
            let mut has_news = false;
            while submitted < count
                && let Some(id) = free.pop()
            {
                self.push(id, command(self.next_block));
                self.next_block += 1;
                submitted += 1;
                has_news = true;
            }
            if has_news {
                self.ring_tail();
            }
            let before = completed;
            while let Some(id) = self.take() {
                free.push(id);
                completed += 1;
            }
            if completed > before {
                self.ring_head();
            } else {
                std::hint::spin_loop();
            }
        }
    }

    /// Writes a command that uses the buffer of its id. The device learns of it by
    /// [`Self::ring_tail`].
    pub fn push(&mut self, id: u16, command: Command) {
        let buffer = self.buffer(id) as u64;
        self.push_as_is(command.with_command_id(id).with_prp([buffer, 0]));
    }

    /// Writes a command without changing its id or its data pointer.
    pub fn push_as_is(&mut self, command: Command) {
        let at = self.place.submission + usize::from(self.tail) * 64;
        self.memory.write(at, command.as_bytes());
        self.tail = (self.tail + 1) % self.place.entries;
    }

    /// Returns the address of the buffer of a command id.
    pub fn buffer(&self, id: u16) -> usize {
        self.buffers + usize::from(id) * BLOCK_BYTES
    }

    /// Tells the device of the commands that were written.
    pub fn ring_tail(&mut self) {
        self.doorbells.ring_tail(self.tail);
    }

    /// Gives the entries of taken completions back to the device.
    pub fn ring_head(&mut self) {
        self.doorbells.ring_head(self.head);
    }

    /// Executes one command without changing its data pointer. Returns its completion.
    pub fn execute(&mut self, command: Command) -> Completion {
        self.push_as_is(command);
        self.ring_tail();
        let completion = loop {
            match self.next() {
                Some(completion) => break completion,
                None => std::hint::spin_loop(),
            }
        };
        self.ring_head();
        completion
    }

    /// Takes the next completion, if it was posted. Returns its command id.
    ///
    /// # Panics
    /// If the command failed.
    pub fn take(&mut self) -> Option<u16> {
        let completion = self.next()?;
        assert!(completion.status().is_success(), "{completion:?}");
        Some(completion.command_id())
    }

    fn next(&mut self) -> Option<Completion> {
        let at = self.place.completion + usize::from(self.head) * 16;
        // The dword with the phase bit is written last.
        let last = self.memory.load(at + 12);
        if (last >> 16 & 1 == 1) != self.phase {
            return None;
        }
        let mut bytes = [0; 16];
        self.memory.read(at, &mut bytes);
        self.head += 1;
        if self.head == self.place.entries {
            (self.head, self.phase) = (0, !self.phase);
        }
        Some(Completion::read_from_bytes(&bytes).expect("it has 16 bytes"))
    }
}
