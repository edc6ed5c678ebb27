use crate::content::{Name, content, names};
use crate::host_queue::HostQueue;
use crate::ledger::Excuses;
use crate::power::{Loss, Power};
use crate::tally::Tally;
use crate::zone_model::{Seen, ZoneModel};
use base::checksum::hash64;
use base::limits::BLOCK_BYTES;
use base::{Buf, Rng, mix};
use controller::{Completion, Queue, Submission};
use ftl::ZonesShape;
use node::Device;
use spec::{Command, ReportedZones, Status, ZoneReport, ZoneSendAction};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Most blocks of a command.
const SPAN_MAX: u64 = 7;

/// Most appends that a zone's writer keeps outstanding.
const APPENDS_MAX: u64 = 4;

/// Room for a report of one zone.
const REPORT_BYTES: u32 = 128;

/// A host that notes for each zone what it wrote.
#[derive(Debug)]
pub(crate) struct ZoneHost {
    state: RefCell<State>,
}

#[derive(Debug)]
struct State {
    zones: Vec<ZoneModel>,
    writes: u64,
    operations: u64,
    stored_bytes: u64,
    /// One number for all answers and their times.
    digest: u64,
}

/// What the writer of a zone uses.
pub(crate) struct Writer<'a> {
    pub(crate) host: &'a ZoneHost,
    pub(crate) zone: u32,
    pub(crate) shape: ZonesShape,
    pub(crate) page_blocks: u64,
    pub(crate) queue: HostQueue,
    pub(crate) power: Power,
    /// Whether what the flash lost may have cut off the end of zones.
    pub(crate) may_be_cut: bool,
}

impl ZoneHost {
    pub(crate) fn new(zones: u64) -> Self {
        let zones = (0..zones).map(|_| ZoneModel::default()).collect();
        let state = State { zones, writes: 0, operations: 0, stored_bytes: 0, digest: 0 };
        Self { state: RefCell::new(state) }
    }

    pub(crate) fn zones(&self) -> u32 {
        u32::try_from(self.state.borrow().zones.len()).expect("a few")
    }

    pub(crate) fn operations(&self) -> u64 {
        self.state.borrow().operations
    }

    /// The device has lost its power.
    pub(crate) fn cut_off(&self, loss: Loss) {
        self.state.borrow_mut().zones.iter_mut().for_each(|zone| zone.cut_off(loss.forgets));
    }

    /// Counts what was done: each answer was held to what it can be when it came.
    pub(crate) fn check(&self, excuses: Excuses) -> Tally {
        let state = self.state.borrow();
        let lost: usize = state.zones.iter().map(ZoneModel::lost).sum();
        assert!(lost <= excuses.hit, "{lost} blocks are lost, the faults explain {excuses:?}");
        let State { operations, stored_bytes, digest, .. } = *state;
        Tally { operations, stored_bytes, digest, ..Tally::default() }
    }
}

impl State {
    fn note(&mut self, zone: u32, answer: &Completion) {
        let Completion { opcode, status, result, data, submitted, completed, .. } = answer;
        let (data, submitted, completed) = (data.checksum(), submitted.0, completed.0);
        let text = format!("{zone} {opcode} {status} {result} {data} {submitted} {completed}");
        self.digest = mix(self.digest ^ hash64(text.as_bytes()));
        self.operations += 1;
    }
}

impl Writer<'_> {
    /// Works on the zone.
    pub(crate) async fn work(&self, mut rng: Rng, steps: u64) {
        for _ in 0..steps {
            match rng.below(100) {
                0..50 => self.append(&mut rng).await,
                50..70 => self.write(1 + rng.below(SPAN_MAX)).await,
                70..85 => self.read_some(&mut rng).await,
                85..88 => self.flush().await,
                88..91 => self.change(ZoneSendAction::Close).await,
                91..94 => self.change(ZoneSendAction::Open).await,
                94..96 => self.change(ZoneSendAction::Finish).await,
                96..98 => self.change(ZoneSendAction::Reset).await,
                _ => self.look(false).await,
            }
            if self.model(|zone| zone.is_full(self.shape.zone_capacity)) && rng.below(2) == 0 {
                self.change(ZoneSendAction::Reset).await;
            }
        }
    }

    /// Reads all of the zone, and what the device reports of it.
    pub(crate) async fn look(&self, is_reopened: bool) {
        let command = Command::report_zones(
            Device::NAMESPACE,
            self.start(),
            ReportedZones::All,
            REPORT_BYTES,
        );
        let answer = self.ask(command.with_partial_report()).await;
        assert_eq!(answer.status, Status::SUCCESS, "a report of zone {}", self.zone);
        let report = answer.data.bytes().and_then(ZoneReport::read).expect("a report");
        let zone = report.descriptors.first().expect("it is about one zone");
        let (state, pointer) = (zone.state(), zone.write_pointer().map(|at| at - self.start()));
        let mut blocks = Vec::new();
        while (blocks.len() as u64) < self.shape.zone_capacity {
            let at = blocks.len() as u64;
            let count = (self.shape.zone_capacity - at).min(16);
            blocks.extend(self.read(at, count).await);
        }
        let capacity = self.shape.zone_capacity;
        let seen = Seen { state, pointer, blocks, capacity };
        let outcome = self.model(|zone| {
            if is_reopened { zone.reopen(&seen, self.may_be_cut) } else { zone.check(&seen) }
        });
        self.assert_right(outcome);
    }

    fn assert_right(&self, outcome: Result<(), String>) {
        if let Err(wrong) = outcome {
            panic!("zone {}: {wrong}", self.zone);
        }
    }

    fn model<T>(&self, look: impl FnOnce(&mut ZoneModel) -> T) -> T {
        look(&mut self.host.state.borrow_mut().zones[self.zone as usize])
    }

    fn start(&self) -> u64 {
        u64::from(self.zone) * self.shape.zone_blocks
    }

    async fn next(&self) -> Completion {
        let completion = self.queue.next().await;
        self.power.on().await;
        self.host.state.borrow_mut().note(self.zone, &completion);
        completion
    }

    async fn ask(&self, command: Command) -> Completion {
        self.queue.submit(Submission { command, long_key: None, data: Buf::phantom(0, 0) });
        self.next().await
    }

    /// The names of so many new blocks, which are about to be written.
    fn name(&self, blocks: u64) -> Vec<Name> {
        let mut state = self.host.state.borrow_mut();
        state.writes += 1;
        state.stored_bytes += blocks * u64::from(BLOCK_BYTES);
        let write = state.writes;
        let names: Vec<Name> = (0..blocks).map(|place| [write, place]).collect();
        state.zones[self.zone as usize].start_write(&names);
        names
    }

    fn submit(&self, command: Command, names: &[Name]) -> u64 {
        self.queue.submit(Submission { command, long_key: None, data: content(names) })
    }

    /// Some appends side by side.
    async fn append(&self, rng: &mut Rng) {
        let mut open = BTreeMap::new();
        for _ in 0..=rng.below(APPENDS_MAX) {
            let names = self.name(1 + rng.below(SPAN_MAX));
            let blocks = u32::try_from(names.len()).expect("a few");
            let command = Command::zone_append(Device::NAMESPACE, self.start(), blocks);
            open.insert(self.submit(command, &names), names);
        }
        while !open.is_empty() {
            let answer = self.next().await;
            let names = open.remove(&answer.id).expect("a command is answered once");
            let at = answer.result.wrapping_sub(self.start());
            self.assert_right(self.model(|zone| zone.end_write(answer.status, at, &names)));
        }
    }

    async fn write(&self, blocks: u64) {
        let at = self.model(|zone| zone.write_pointer());
        if at == self.shape.zone_capacity {
            return;
        }
        let names = self.name(blocks.min(self.shape.zone_capacity - at));
        let blocks = u32::try_from(names.len()).expect("a few");
        self.submit(Command::write(Device::NAMESPACE, self.start() + at, blocks), &names);
        let answer = self.next().await;
        self.assert_right(self.model(|zone| zone.end_write(answer.status, at, &names)));
    }

    async fn read_some(&self, rng: &mut Rng) {
        let capacity = self.shape.zone_capacity;
        let at = rng.below(capacity);
        let count = (1 + rng.below(SPAN_MAX)).min(capacity - at);
        let found = self.read(at, count).await;
        self.assert_right(self.model(|zone| zone.check_blocks(at, &found)));
    }

    /// The names of `count` blocks from `at` on; nothing for those that are lost.
    async fn read(&self, at: u64, count: u64) -> Vec<Option<Name>> {
        let command = |at, count: u64| {
            let count = u32::try_from(count).expect("a few");
            Command::read(Device::NAMESPACE, self.start() + at, count)
        };
        let answer = self.ask(command(at, count)).await;
        match answer.status {
            Status::SUCCESS => names(&answer.data).into_iter().map(Some).collect(),
            Status::UNRECOVERED_READ_ERROR => {
                let mut found = Vec::new();
                for at in at..at + count {
                    let answer = self.ask(command(at, 1)).await;
                    let is_lost = answer.status == Status::UNRECOVERED_READ_ERROR;
                    assert!(
                        is_lost || answer.status == Status::SUCCESS,
                        "a read: {}",
                        answer.status
                    );
                    found.push((!is_lost).then(|| names(&answer.data)[0]));
                }
                found
            }
            status => panic!("a read of zone {} at {at}: {status}", self.zone),
        }
    }

    async fn flush(&self) {
        let durable = self.model(|zone| zone.write_pointer()) / self.page_blocks * self.page_blocks;
        let answer = self.ask(Command::flush(Device::NAMESPACE)).await;
        assert_eq!(answer.status, Status::SUCCESS, "Flush");
        self.model(|zone| zone.flushed(durable));
    }

    async fn change(&self, action: ZoneSendAction) {
        self.model(|zone| zone.start_change(action));
        let command = Command::zone_management_send(Device::NAMESPACE, self.start(), action);
        let answer = self.ask(command).await;
        self.assert_right(self.model(|zone| zone.end_change(answer.status)));
    }
}
