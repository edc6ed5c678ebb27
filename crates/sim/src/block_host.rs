use crate::content::{Name, content, names};
use crate::history::{Call, Condition, Open, Outcome};
use crate::host_queue::HostQueue;
use crate::ledger::{Excuses, Ledger};
use crate::power::{Loss, Power};
use crate::tally::Tally;
use base::Buf;
use base::limits::BLOCK_BYTES;
use controller::{Completion, Queue, Submission};
use node::Device;
use spec::{BlockRange, Command, Opcode, Status};
use std::cell::RefCell;
use std::collections::BTreeMap;
use zerocopy::IntoBytes;

/// Commands that the host keeps outstanding.
const OUTSTANDING: usize = 32;

/// What the host is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    Write { lba: u64, blocks: u64 },
    WriteZeroes { lba: u64, blocks: u64 },
    Deallocate { lba: u64, blocks: u64 },
    Read { lba: u64, blocks: u64 },
    Flush,
}

/// A host that notes for each block what it wrote and read.
#[derive(Debug)]
pub(crate) struct BlockHost {
    state: RefCell<State>,
}

#[derive(Debug)]
struct State {
    /// Of each block by its address.
    ledger: Ledger,
    trims: Vec<Trims>,
    writes: u64,
    open: BTreeMap<u64, Started>,
    stored_bytes: u64,
    is_flushing: bool,
}

/// A command that is not answered yet.
#[derive(Debug)]
struct Started {
    request: Request,
    /// The operation on each of its blocks, and how often that was deallocated before.
    opens: Vec<(usize, Open, u64)>,
}

/// Deallocations of a block. Until it is written again, what was there before may be back after a
/// loss of power; until that is flushed, when the power takes what was written.
#[derive(Clone, Copy, Debug, Default)]
struct Trims {
    asked: u64,
    outstanding: u64,
    may_be_back: bool,
    is_volatile: bool,
    /// The flush under way covers what was written since.
    is_flushing: bool,
}

impl BlockHost {
    pub(crate) fn new(blocks: u64) -> Self {
        let blocks = usize::try_from(blocks).expect("a small device");
        let mut ledger = Ledger::new("block", blocks);
        ledger.is_read_early = true;
        let state = State {
            ledger,
            trims: vec![Trims::default(); blocks],
            writes: 0,
            open: BTreeMap::new(),
            stored_bytes: 0,
            is_flushing: false,
        };
        Self { state: RefCell::new(state) }
    }

    pub(crate) fn blocks(&self) -> u64 {
        self.state.borrow().ledger.len() as u64
    }

    pub(crate) fn operations(&self) -> u64 {
        self.state.borrow().ledger.operations
    }

    /// All blocks are zeros.
    pub(crate) fn begin(&self) {
        let mut state = self.state.borrow_mut();
        for block in 0..state.ledger.len() {
            let call = Call::Store(state.ledger.version(block, (BLOCK_BYTES, 0)), Condition::None);
            let open = state.ledger.invoke(block, call);
            state.ledger.respond(block, open, Outcome::Done);
        }
    }

    /// Submits requests, so many at a time, until there are no more.
    pub(crate) async fn submit_all(
        &self,
        queue: &HostQueue,
        power: &Power,
        requests: impl Iterator<Item = Request>,
    ) {
        for request in requests {
            while self.outstanding() >= OUTSTANDING {
                self.complete(queue, power).await;
            }
            self.submit(queue, request);
        }
    }

    /// Waits for the answers to all that was submitted.
    pub(crate) async fn finish(&self, queue: &HostQueue, power: &Power) {
        while self.outstanding() > 0 {
            self.complete(queue, power).await;
        }
    }

    fn outstanding(&self) -> usize {
        self.state.borrow().open.len()
    }

    fn submit(&self, queue: &HostQueue, request: Request) {
        let mut state = self.state.borrow_mut();
        if request == Request::Flush && state.is_flushing {
            return;
        }
        let started = state.start(request);
        let id = queue.submit(state.submission(request));
        assert!(state.open.insert(id, started).is_none(), "a queue numbers its commands");
    }

    async fn complete(&self, queue: &HostQueue, power: &Power) {
        let completion = queue.next().await;
        power.on().await;
        self.state.borrow_mut().complete(&completion);
    }

    /// Gives up what is outstanding: the device has lost its power.
    pub(crate) fn cut_off(&self, loss: Loss) {
        let mut state = self.state.borrow_mut();
        state.open.clear();
        state.is_flushing = false;
        state.ledger.cut_off(loss);
        for block in 0..state.trims.len() {
            state.trims[block].outstanding = 0;
            let trims = state.trims[block];
            if trims.may_be_back || loss.forgets && trims.is_volatile {
                state.ledger.may_revert(block);
            }
        }
    }

    /// Of what the device held some may be lost.
    pub(crate) fn faults_may_revert(&self) {
        self.state.borrow_mut().ledger.faults_may_revert();
    }

    pub(crate) fn check(&self, excuses: Excuses) -> Tally {
        let state = self.state.borrow();
        state.ledger.check(|block| format!("block {block}"), excuses);
        let (operations, stored_bytes) = (state.ledger.operations, state.stored_bytes);
        let digest = state.ledger.digest();
        Tally { operations, stored_bytes, digest, ..Tally::default() }
    }
}

impl Request {
    /// The blocks that it is about.
    fn span(self) -> std::ops::Range<u64> {
        match self {
            Self::Write { lba, blocks }
            | Self::WriteZeroes { lba, blocks }
            | Self::Deallocate { lba, blocks }
            | Self::Read { lba, blocks } => lba..lba + blocks,
            Self::Flush => 0..0,
        }
    }
}

impl State {
    /// Notes what is asked of each block.
    fn start(&mut self, request: Request) -> Started {
        match request {
            Request::Write { .. } => self.writes += 1,
            Request::Flush => {
                self.is_flushing = true;
                self.ledger.start_flush();
                for trims in &mut self.trims {
                    trims.is_flushing = !trims.may_be_back;
                }
            }
            _ => {}
        }
        let mut opens = Vec::new();
        for lba in request.span() {
            let block = usize::try_from(lba).expect("a small device");
            let content = match request {
                Request::Write { .. } => Some((BLOCK_BYTES, self.writes)),
                Request::WriteZeroes { .. } | Request::Deallocate { .. } => Some((BLOCK_BYTES, 0)),
                Request::Read { .. } | Request::Flush => None,
            };
            let call = content.map_or(Call::Retrieve, |content| {
                Call::Store(self.ledger.version(block, content), Condition::None)
            });
            if matches!(request, Request::Deallocate { .. }) {
                let trims = &mut self.trims[block];
                (trims.asked, trims.outstanding) = (trims.asked + 1, trims.outstanding + 1);
                (trims.may_be_back, trims.is_volatile, trims.is_flushing) = (true, true, false);
            }
            // With another trim under way their order is unknown.
            let trims = self.trims[block];
            let asked = if trims.outstanding == 0 { trims.asked } else { u64::MAX };
            opens.push((block, self.ledger.invoke(block, call), asked));
        }
        Started { request, opens }
    }

    fn submission(&mut self, request: Request) -> Submission {
        let nsid = Device::NAMESPACE;
        let count = |blocks| u32::try_from(blocks).expect("a few");
        let (command, data) = match request {
            Request::Write { lba, blocks } => {
                let names: Vec<Name> = request.span().map(|lba| [lba, self.writes]).collect();
                let data = content(&names);
                self.stored_bytes += u64::from(data.len());
                (Command::write(nsid, lba, count(blocks)), data)
            }
            Request::WriteZeroes { lba, blocks } => {
                (Command::write_zeroes(nsid, lba, count(blocks)), Buf::phantom(0, 0))
            }
            Request::Deallocate { lba, blocks } => {
                let range = BlockRange::new(lba, count(blocks));
                (Command::deallocate(nsid, 1), Buf::copy_from(range.as_bytes()))
            }
            Request::Read { lba, blocks } => {
                (Command::read(nsid, lba, count(blocks)), Buf::phantom(0, 0))
            }
            Request::Flush => (Command::flush(nsid), Buf::phantom(0, 0)),
        };
        Submission { command, long_key: None, data }
    }

    fn complete(&mut self, completion: &Completion) {
        let started = self.open.remove(&completion.id).expect("a command is completed once");
        match completion.status {
            Status::SUCCESS => self.succeed(&started, completion),
            Status::UNRECOVERED_READ_ERROR if completion.opcode == Opcode::READ => {
                // Of several blocks it is not said which one.
                if let [(block, open, _)] = started.opens[..] {
                    self.ledger.respond(block, open, Outcome::Lost);
                }
            }
            // Some of the blocks may be written.
            Status::CAPACITY_EXCEEDED if completion.opcode != Opcode::READ => {
                self.is_flushing &= started.request != Request::Flush;
            }
            status => panic!("{} of {:?}: {status}", completion.opcode, started.request),
        }
    }

    fn succeed(&mut self, started: &Started, completion: &Completion) {
        if started.request == Request::Flush {
            self.is_flushing = false;
            self.ledger.end_flush();
            for trims in &mut self.trims {
                trims.is_volatile &= !trims.is_flushing;
            }
        }
        let is_read = matches!(started.request, Request::Read { .. });
        let read = if is_read { names(&completion.data) } else { Vec::new() };
        assert!(!is_read || read.len() == started.opens.len(), "what was asked for is read");
        for (place, &(block, open, asked)) in started.opens.iter().enumerate() {
            let outcome = read.get(place).map_or(Outcome::Done, |&[lba, write]| {
                assert!(write == 0 || lba == block as u64, "block {block} holds block {lba}");
                Outcome::Value(self.ledger.version(block, (BLOCK_BYTES, write)))
            });
            self.ledger.respond(block, open, outcome);
            let trims = &mut self.trims[block];
            match started.request {
                Request::Deallocate { .. } => trims.outstanding -= 1,
                Request::Write { .. } | Request::WriteZeroes { .. }
                    if trims.asked == asked && trims.outstanding == 0 =>
                {
                    trims.may_be_back = false;
                }
                _ => {}
            }
        }
    }
}
