use crate::memory::GuestMemory;
use spec::{Command, Completion};
use std::hint;
use std::sync::Arc;
use std::time::{Duration, Instant};
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
    /// How long it waits for a completion.
    timeout: Duration,
}

/// Many times what a device needs for a command on a busy machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

/// Polls between two looks at the clock, which take longer than a poll.
const POLLS: u64 = 1 << 12;

/// Bytes of a buffer, and of a read.
pub const BLOCK_BYTES: usize = 4_096;

/// The namespace that is read.
const NSID: u32 = 1;

impl<D: Doorbells> Queue<D> {
    /// Returns a queue pair that is new to the device.
    pub fn new(memory: &Arc<GuestMemory>, place: Place, doorbells: D) -> Self {
        let buffers = memory.allocate(usize::from(place.entries) * BLOCK_BYTES);
        let (memory, timeout) = (memory.clone(), TIMEOUT);
        let (tail, head, phase, next_block) = (0, 0, true, 0);
        Self { memory, place, doorbells, tail, head, phase, buffers, next_block, timeout }
    }

    /// Ends waits for a completion after `timeout`.
    pub(crate) fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    /// Writes each block once. Returns a sentence if a completion does not come in time.
    pub fn fill(&mut self, blocks: u64) -> Result<(), String> {
        let count = usize::try_from(blocks).expect("a few thousand");
        self.run(32, count, |block| Command::write(NSID, block % blocks, 1))
    }

    /// Reads random blocks, `depth` at a time. Returns a sentence if a completion does not come in
    /// time.
    pub fn read(&mut self, depth: usize, count: usize, blocks: u64) -> Result<(), String> {
        // A step that has no factor with a power of two visits all blocks.
        self.run(depth, count, |number| Command::read(NSID, number * 7_919 % blocks, 1))
    }

    fn run(
        &mut self,
        depth: usize,
        count: usize,
        command: impl Fn(u64) -> Command,
    ) -> Result<(), String> {
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
            let first = self.wait(Self::take).map_err(|error| {
                format!("{error}: {completed} of {submitted} commands are completed")
            })?;
            free.push(first);
            completed += 1;
            while let Some(id) = self.take() {
                free.push(id);
                completed += 1;
            }
            self.ring_head();
        }
        Ok(())
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

    /// Executes one command without changing its data pointer. Returns its completion, or a
    /// sentence if it does not come in time.
    pub fn execute(&mut self, command: Command) -> Result<Completion, String> {
        self.push_as_is(command);
        self.ring_tail();
        let completion =
            self.wait(Self::next).map_err(|error| format!("{error} of {}", command.opcode()))?;
        self.ring_head();
        Ok(completion)
    }

    /// Tells the device of the commands that were written, and waits for so many completions, of
    /// any commands. Returns a sentence if one does not come in time.
    ///
    /// # Panics
    /// If a command failed.
    pub fn finish(&mut self, commands: usize) -> Result<(), String> {
        self.ring_tail();
        for _ in 0..commands {
            self.wait(Self::take)?;
        }
        self.ring_head();
        Ok(())
    }

    /// Polls until `take` returns something. The error is the start of a sentence.
    fn wait<T>(&mut self, take: impl Fn(&mut Self) -> Option<T>) -> Result<T, String> {
        let mut started = None;
        for polls in 1_u64.. {
            if let Some(taken) = take(self) {
                return Ok(taken);
            }
            hint::spin_loop();
            if polls.is_multiple_of(POLLS)
                && started.get_or_insert_with(Instant::now).elapsed() >= self.timeout
            {
                break;
            }
        }
        Err(format!("within {:?} the device posted no completion", self.timeout))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Those of a device that is not there.
    struct Unheard;

    impl Doorbells for Unheard {
        fn ring_tail(&mut self, _: u16) {}

        fn ring_head(&mut self, _: u16) {}
    }

    #[test]
    fn commands_that_are_not_completed_end_in_an_error() {
        let memory = Arc::new(GuestMemory::new(1 << 20));
        let mut queue = Queue::new(&memory, Place::allocate(&memory, 8), Unheard);
        queue.timeout = Duration::from_millis(1);
        let sentence = "within 1ms the device posted no completion";
        let executed = queue.execute(Command::keep_alive()).map(|_| ());
        assert_eq!(executed, Err(format!("{sentence} of opcode 18h")));
        let completed = format!("{sentence}: 0 of 4 commands are completed");
        assert_eq!(queue.read(4, 10, 10), Err(completed));
    }
}
