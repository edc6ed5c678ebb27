//! Tests zones against a model: the same results, states, write pointers and content at every step.

use base::{Buf, Nanos, Rng};
use clock::{Class, Group, Stage, sleep};
use ftl::{
    AppendFtl, Region, Stripe, ZoneAction, ZoneError, ZoneInfo, ZoneState, Zones, ZonesConfig,
};
use media::{Media, Memory, Segments, Shape};
use nand::{Cells, FaultPlan, Geometry, Model as Timekeeping, Nand, Registers, Timing};
use reactor::Reactor;
use std::sync::Arc;

const BLOCK: u32 = 4_096;
/// Of a zone: three pages of two blocks.
const CAPACITY: u64 = 6;
const STRIDE: u64 = 8;
const ZONES: u32 = 7;
const MAX_OPEN: usize = 2;
const MAX_ACTIVE: usize = 4;

/// A zone by the specification.
#[derive(Clone)]
struct Zone {
    state: ZoneState,
    /// The content written to each block.
    blocks: Vec<u64>,
}

/// The model of the device.
struct Model {
    zones: Vec<Zone>,
    /// Implicitly opened zones, the oldest first.
    implicit: Vec<usize>,
}

type Answer<T> = Result<T, ZoneError>;

impl Model {
    fn new() -> Self {
        let zone = Zone { state: ZoneState::Empty, blocks: Vec::new() };
        Self { zones: vec![zone; ZONES as usize], implicit: Vec::new() }
    }

    fn count(&self, states: &[ZoneState]) -> usize {
        self.zones.iter().filter(|zone| states.contains(&zone.state)).count()
    }

    fn go(&mut self, zone: usize, state: ZoneState) {
        self.implicit.retain(|implicit| *implicit != zone);
        if state == ZoneState::ImplicitlyOpen {
            self.implicit.push(zone);
        }
        self.zones[zone].state = state;
    }

    fn open(&mut self, zone: usize, to: ZoneState) -> Answer<()> {
        use ZoneState::{Closed, Empty, ExplicitlyOpen, ImplicitlyOpen};
        match (self.zones[zone].state, to) {
            (ExplicitlyOpen, _) | (ImplicitlyOpen, ImplicitlyOpen) => return Ok(()),
            (ImplicitlyOpen, _) => {
                self.go(zone, to);
                return Ok(());
            }
            (Empty, _) if self.count(&[Closed, ImplicitlyOpen, ExplicitlyOpen]) == MAX_ACTIVE => {
                return Err(ZoneError::TooManyActive);
            }
            _ => {}
        }
        if self.count(&[ImplicitlyOpen, ExplicitlyOpen]) == MAX_OPEN {
            let Some(oldest) = self.implicit.first() else { return Err(ZoneError::TooManyOpen) };
            self.go(*oldest, Closed);
        }
        self.go(zone, to);
        Ok(())
    }

    fn write(&mut self, lba: u64, data: &[u64]) -> Answer<()> {
        let end = lba + data.len() as u64;
        if end > u64::from(ZONES) * STRIDE {
            return Err(ZoneError::OutOfRange);
        }
        let zone = index(lba / STRIDE);
        let written = self.zones[zone].blocks.len() as u64;
        match self.zones[zone].state {
            ZoneState::Full => return Err(ZoneError::Full),
            _ if lba % STRIDE != written => return Err(ZoneError::InvalidWrite),
            _ if written + data.len() as u64 > CAPACITY => return Err(ZoneError::Boundary),
            _ => self.open(zone, ZoneState::ImplicitlyOpen)?,
        }
        self.zones[zone].blocks.extend(data);
        if self.zones[zone].blocks.len() as u64 == CAPACITY {
            self.go(zone, ZoneState::Full);
        }
        Ok(())
    }

    fn append(&mut self, lba: u64, data: &[u64]) -> Answer<u64> {
        match lba {
            lba if lba >= u64::from(ZONES) * STRIDE => Err(ZoneError::OutOfRange),
            lba if lba % STRIDE != 0 => Err(ZoneError::NotAStart),
            lba => {
                let zone = &self.zones[index(lba / STRIDE)];
                if zone.state == ZoneState::Full {
                    return Err(ZoneError::Full);
                }
                let at = lba + zone.blocks.len() as u64;
                // What is too long for the last zone is not for that beyond the device.
                if at % STRIDE + data.len() as u64 > CAPACITY {
                    return Err(ZoneError::Boundary);
                }
                self.write(at, data).map(|()| at)
            }
        }
    }

    fn read(&self, lba: u64, count: u64) -> Answer<Vec<u64>> {
        if lba + count > u64::from(ZONES) * STRIDE || lba >= u64::from(ZONES) * STRIDE {
            return Err(ZoneError::OutOfRange);
        }
        if lba % STRIDE + count > STRIDE {
            return Err(ZoneError::Boundary);
        }
        let blocks = &self.zones[index(lba / STRIDE)].blocks;
        let numbers = lba % STRIDE..lba % STRIDE + count;
        Ok(numbers.map(|number| blocks.get(index(number)).copied().unwrap_or(0)).collect())
    }

    fn copy(&mut self, sources: &[(u64, u32)], to: u64) -> Answer<()> {
        let mut data = Vec::new();
        for (lba, count) in sources {
            data.extend(self.read(*lba, u64::from(*count))?);
        }
        self.write(to, &data)
    }

    fn change(&mut self, zone: u32, action: ZoneAction) -> Answer<()> {
        use ZoneState::{Empty, ExplicitlyOpen, Full};
        let zone = zone as usize;
        let state = self.zones.get(zone).ok_or(ZoneError::OutOfRange)?.state;
        match action {
            ZoneAction::Open | ZoneAction::Close if state == Full => {
                Err(ZoneError::InvalidTransition)
            }
            ZoneAction::Close if state == Empty => Err(ZoneError::InvalidTransition),
            ZoneAction::Open => self.open(zone, ExplicitlyOpen),
            ZoneAction::Close => {
                self.go(zone, ZoneState::Closed);
                Ok(())
            }
            ZoneAction::Finish => {
                self.go(zone, Full);
                Ok(())
            }
            ZoneAction::Reset => {
                self.go(zone, Empty);
                self.zones[zone].blocks.clear();
                Ok(())
            }
        }
    }

    fn change_all(&mut self, action: ZoneAction) -> Answer<()> {
        use ZoneState::{Closed, Empty, ExplicitlyOpen, Full, ImplicitlyOpen};
        let concerned: &[ZoneState] = match action {
            ZoneAction::Open => &[Closed],
            ZoneAction::Close => &[ImplicitlyOpen, ExplicitlyOpen],
            ZoneAction::Finish => &[ImplicitlyOpen, ExplicitlyOpen, Closed],
            ZoneAction::Reset => &[ImplicitlyOpen, ExplicitlyOpen, Closed, Full],
        };
        if action == ZoneAction::Open && self.count(&[Closed, ExplicitlyOpen]) > MAX_OPEN {
            return Err(ZoneError::TooManyOpen);
        }
        let before: Vec<ZoneState> = self.zones.iter().map(|zone| zone.state).collect();
        for (zone, state) in (0..ZONES).zip(before) {
            if concerned.contains(&state) && state != Empty {
                self.change(zone, action)?;
            }
        }
        Ok(())
    }

    fn report(&self, zone: u32) -> ZoneInfo {
        let Zone { state, blocks } = &self.zones[zone as usize];
        let start = u64::from(zone) * STRIDE;
        let pointer = if *state == ZoneState::Full { !0 } else { start + blocks.len() as u64 };
        ZoneInfo { state: *state, write_pointer: pointer, start, capacity: CAPACITY }
    }
}

fn index(number: u64) -> usize {
    usize::try_from(number).expect("small numbers")
}

/// Returns blocks with these contents, cut at random; neighbours of one content share a buffer.
fn data(contents: &[u64], rng: &mut Rng) -> Segments {
    let mut data = Segments::new();
    for chunk in contents.chunk_by(|a, b| a == b) {
        let len = u32::try_from(chunk.len()).expect("a small number") * BLOCK;
        let whole = Buf::phantom(len, chunk[0]);
        let at = u32::try_from(rng.below(u64::from(len))).expect("a small number");
        data.push(whole.slice(0..at));
        data.push(whole.slice(at..len));
    }
    data
}

/// Returns the contents of the blocks of `data`; 0 for zeros.
fn contents(data: &Segments) -> Vec<u64> {
    let mut blocks: Vec<(u32, u64)> = Vec::new();
    for segment in data {
        let content = match segment.bytes() {
            Some(bytes) => {
                assert!(bytes.iter().all(|byte| *byte == 0), "only zeros are bytes");
                0
            }
            None => segment.checksum(),
        };
        let mut rest = segment.len();
        while rest > 0 {
            if blocks.last().is_none_or(|(len, _)| *len == BLOCK) {
                blocks.push((0, content));
            }
            let (len, of_block) = blocks.last_mut().expect("it is there");
            assert_eq!(*of_block, content, "a block has one content");
            let more = rest.min(BLOCK - *len);
            *len += more;
            rest -= more;
        }
    }
    assert!(blocks.iter().all(|(len, _)| *len == BLOCK), "whole blocks");
    blocks.into_iter().map(|(_, content)| content).collect()
}

struct Run {
    zones: Arc<Zones>,
    model: Model,
    rng: Rng,
    versions: u64,
    /// The number of times that each error was returned.
    answers: Vec<(ZoneError, u32)>,
}

impl Run {
    fn below(&mut self, bound: u64) -> u64 {
        self.rng.below(bound)
    }

    /// Returns an offset, mostly the write pointer.
    fn target(&mut self) -> u64 {
        let zone = self.below(u64::from(ZONES));
        match self.below(12) {
            0 => self.below(u64::from(ZONES) * STRIDE + 3),
            1 => zone * STRIDE + self.below(STRIDE),
            _ => zone * STRIDE + self.model.zones[index(zone)].blocks.len() as u64,
        }
    }

    fn new_contents(&mut self) -> Vec<u64> {
        let max = if self.below(8) == 0 { 9 } else { 3 };
        let count = 1 + self.below(max);
        self.versions += 1;
        let (first, is_even) = (self.versions * 100, self.below(2));
        (0..count).map(|number| first + number * is_even).collect()
    }

    fn note<T>(&mut self, answer: &Answer<T>) {
        let Err(error) = answer else { return };
        match self.answers.iter_mut().find(|(known, _)| known == error) {
            Some((_, count)) => *count += 1,
            None => self.answers.push((*error, 1)),
        }
    }

    async fn step(&mut self) {
        match self.below(100) {
            0..30 => {
                let (lba, new) = (self.target(), self.new_contents());
                let data = data(&new, &mut self.rng);
                let written = self.zones.write(lba, data, Class::HostWrite).await;
                self.note(&written);
                assert_eq!(written, self.model.write(lba, &new), "write {new:?} at {lba}");
            }
            30..45 => self.append().await,
            45..60 => self.copy().await,
            60..70 => {
                let (lba, count) = (self.target(), 1 + self.below(STRIDE));
                let read = self.zones.read(
                    lba,
                    u32::try_from(count).expect("a small number"),
                    Class::HostRead,
                );
                let read = read.await.map(|data| contents(&data));
                self.note(&read);
                assert_eq!(read, self.model.read(lba, count), "read {count} from {lba}");
            }
            70..90 => {
                let (zone, action) = (self.below(u64::from(ZONES) + 1), self.action());
                let zone = u32::try_from(zone).expect("a small number");
                let changed = self.zones.change(zone, action).await;
                self.note(&changed);
                assert_eq!(changed, self.model.change(zone, action), "{action:?} zone {zone}");
            }
            90..94 => {
                let action = self.action();
                let changed = self.zones.change_all(action).await;
                self.note(&changed);
                assert_eq!(changed, self.model.change_all(action), "{action:?} all");
            }
            94..97 => self.zones.flush().await,
            _ => sleep(Nanos(self.below(2_000_000)), Stage::Batch).await,
        }
    }

    fn action(&mut self) -> ZoneAction {
        let actions = [ZoneAction::Open, ZoneAction::Close, ZoneAction::Finish, ZoneAction::Reset];
        actions[index(self.below(4))]
    }

    async fn append(&mut self) {
        let (mut lba, new) = (self.target(), self.new_contents());
        if self.below(10) > 0 {
            lba -= lba % STRIDE;
        }
        let data = data(&new, &mut self.rng);
        let appended = self.zones.append(lba, data, Class::HostWrite).await;
        self.note(&appended);
        assert_eq!(appended, self.model.append(lba, &new), "append {new:?} at {lba}");
    }

    async fn copy(&mut self) {
        let source = |run: &mut Self| {
            let lba = run.below(u64::from(ZONES) * STRIDE + 1);
            (lba, u32::try_from(1 + run.below(2)).expect("a small number"))
        };
        let sources: Vec<_> = (0..=self.below(3)).map(|_| source(self)).collect();
        let to = self.target();
        let copied = self.zones.copy(&sources, to, Class::HostWrite).await;
        self.note(&copied);
        assert_eq!(copied, self.model.copy(&sources, to), "copy {sources:?} to {to}");
    }

    /// Compares states, write pointers, and the content of one zone.
    async fn check(&mut self) {
        for zone in 0..ZONES {
            assert_eq!(self.zones.report(zone), Ok(self.model.report(zone)));
        }
        assert_eq!(self.zones.report(ZONES), Err(ZoneError::OutOfRange));
        let start = self.below(u64::from(ZONES)) * STRIDE;
        let read = self.zones.read(start, 8, Class::HostRead).await.map(|data| contents(&data));
        assert_eq!(read, self.model.read(start, 8), "zone at {start}");
    }
}

/// Runs random commands on `media`; every kind of error must occur.
async fn run(media: Arc<dyn Media>, seed: u64) {
    let config = ZonesConfig {
        max_open: u32::try_from(MAX_OPEN).expect("a small number"),
        max_active: u32::try_from(MAX_ACTIVE).expect("a small number"),
        buffer_bytes: 5 * u64::from(BLOCK),
        zones: Some(ZONES),
    };
    let zones = Zones::format(media, config);
    let shape = zones.shape();
    assert_eq!((shape.block_bytes, shape.zones), (BLOCK, ZONES));
    assert_eq!((shape.zone_blocks, shape.zone_capacity), (STRIDE, CAPACITY));
    let (model, rng) = (Model::new(), Rng::new(seed));
    let mut run = Run { zones, model, rng, versions: 0, answers: Vec::new() };
    for _ in 0..3_000 {
        run.step().await;
        run.check().await;
    }
    let often = run.answers.iter().filter(|(_, count)| *count >= 5).count();
    assert_eq!(often, 8, "all refusals but those of failures: {:?}", run.answers);
}

#[test]
fn zones_in_memory_are_as_the_model() {
    for seed in 0..8 {
        let shape = Shape {
            page_bytes: 2 * BLOCK,
            spare_bytes: 44,
            pages_per_extent: 3,
            extents: ZONES + Zones::SPARE_EXTENTS,
            parallelism: 1,
            frames: None,
        };
        Reactor::new((seed % 2 == 1).then_some(seed))
            .run(async { run(Arc::new(Memory::new(shape)), seed).await });
    }
}

#[test]
fn zones_on_flash_are_as_the_model() {
    for seed in 0..8 {
        // An extent of one page on each of three dies, and perhaps one extent more than need be.
        let geometry = Geometry {
            channels: 3,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks_per_plane: ZONES + Zones::SPARE_EXTENTS + (u32::try_from(seed).unwrap() % 2),
            pages_per_block: 1,
            page_bytes: 2 * BLOCK,
            spare_bytes: 24 + 44,
        };
        let micros = Nanos::from_micros;
        let timing = Timing::uniform(
            Timekeeping::Staged,
            Registers::Double,
            micros(65),
            micros(450),
            micros(2_000),
            800_000_000,
        );
        Reactor::new((seed % 4 > 1).then_some(seed)).run(async {
            let cells = Arc::new(Cells::new(geometry, 0, 0, 0));
            let nand = Arc::new(Nand::new(cells, timing, FaultPlan::default(), Group::new()));
            let ftl = AppendFtl::format(nand, Region::all(&geometry), Stripe::All);
            run(Arc::new(ftl), seed).await;
        });
    }
}
