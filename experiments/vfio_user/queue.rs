use crate::shared::Shared;
use spec::{Command, Completion};
use std::sync::Arc;
use zerocopy::{FromBytes, IntoBytes};

/// How a host writes the doorbells of its queue.
pub(crate) trait Host {
    /// Writes the tail of the submission queue.
    fn ring_tail(&mut self, tail: u16);

    /// Writes the head of the completion queue.
    fn ring_head(&mut self, head: u16);
}

/// Where a queue pair lies in shared memory.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) submission: usize,
    pub(crate) completion: usize,
    pub(crate) entries: u16,
}

impl Place {
    pub(crate) fn allocate(memory: &Shared, entries: u16) -> Self {
        let [submission, completion] =
            [64, 16].map(|bytes| memory.allocate(usize::from(entries) * bytes));
        Self { submission, completion, entries }
    }
}

/// A host's queue pair with a buffer for each command.
pub(crate) struct Queue<H> {
    memory: Arc<Shared>,
    place: Place,
    host: H,
    tail: u16,
    head: u16,
    phase: bool,
    buffers: usize,
    next_block: u64,
}

/// Bytes of a read.
pub(crate) const BLOCK_BYTES: usize = 4_096;

/// The namespace that is read.
const NSID: u32 = 1;

impl<H: Host> Queue<H> {
    pub(crate) fn new(memory: &Arc<Shared>, place: Place, host: H) -> Self {
        let buffers = memory.allocate(usize::from(place.entries) * BLOCK_BYTES);
        let memory = memory.clone();
        Self { memory, place, host, tail: 0, head: 0, phase: true, buffers, next_block: 0 }
    }

    /// Writes each block once.
    pub(crate) fn fill(&mut self, blocks: u64) {
        let count = usize::try_from(blocks).expect("a few thousand");
        self.run(32, count, |block| Command::write(NSID, block % blocks, 1));
    }

    /// Reads random blocks, `depth` at a time.
    pub(crate) fn read(&mut self, depth: usize, count: usize, blocks: u64) {
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
                self.host.ring_tail(self.tail);
            }
            let before = completed;
            while let Some(id) = self.take() {
                free.push(id);
                completed += 1;
            }
            if completed > before {
                self.host.ring_head(self.head);
            } else {
                std::hint::spin_loop();
            }
        }
    }

    fn push(&mut self, id: u16, command: Command) {
        let buffer = self.buffers + usize::from(id) * BLOCK_BYTES;
        let command = command.with_command_id(id).with_prp([buffer as u64, 0]);
        let at = self.place.submission + usize::from(self.tail) * 64;
        self.memory.write(at, command.as_bytes());
        self.tail = (self.tail + 1) % self.place.entries;
    }

    /// Executes one command. Returns its completion.
    pub(crate) fn execute(&mut self, command: Command) -> Completion {
        let at = self.place.submission + usize::from(self.tail) * 64;
        self.memory.write(at, command.as_bytes());
        self.tail = (self.tail + 1) % self.place.entries;
        self.host.ring_tail(self.tail);
        let completion = loop {
            match self.next() {
                Some(completion) => break completion,
                None => std::hint::spin_loop(),
            }
        };
        self.host.ring_head(self.head);
        completion
    }

    fn take(&mut self) -> Option<u16> {
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
