//! The zoned drive, and a host that runs its own translation layer on it.

use super::host_ftl::{Batch, Cleaning, HostFtl, Place, Shape};
use crate::device;
use crate::output::Failure;
use crate::reproduce::fresh::fresh;
use base::limits::BLOCK_BYTES;
use base::{Buf, BufMut, Nanos, Rng};
use controller::{Completion, QueuePair, Submission};
use ftl::Zones;
use node::profile::{NamespaceKind, Stripe};
use node::{Device, Profile};
use spec::{COPY_RANGE_BYTES, Command, CopyRange, Status, ZoneSendAction};
use std::collections::{HashMap, HashSet, VecDeque};
use zerocopy::IntoBytes;

/// The profile's name.
pub(super) const NAME: &str = "cnex-oc";

pub(super) const SEED: u64 = 1;

/// Blocks of each plane: few, so that filling the drive is quick.
const BLOCKS_PER_PLANE: u32 = 32;

/// Pages of a block: few for the same reason.
const PAGES_PER_BLOCK: u32 = 128;

/// Most bytes of a command, the device's limit.
const COMMAND_BYTES_MAX: u32 = 2 << 20;

/// Pages in flight to a zone while the drive is filled.
const FILL_DEPTH: usize = 8;

/// The link between host and drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link {
    /// Of each direction; 0 is no limit.
    pub(super) bytes_per_second: u64,
    pub(super) transfer: Nanos,
}

impl Link {
    /// Returns a link with `lanes` times the bandwidth.
    pub(super) const fn times(self, lanes: u64) -> Self {
        Self { bytes_per_second: self.bytes_per_second * lanes, ..self }
    }
}

/// How the host moves live pages out of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moves {
    /// No moves: the free zones suffice for the measurement.
    None,
    /// The host reads pages and writes them back.
    ThroughHost,
    /// The host has the drive copy pages.
    InDevice,
}

/// The load of the host's applications.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    /// Operations of one page each: half of them reads, half overwrites.
    pub(super) operations: u64,
    /// Operations in flight.
    pub(super) depth: u32,
}

/// Result of the load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Went {
    /// Bytes per second that the applications read and wrote.
    pub(super) bytes_per_second: f64,
    pub(super) moved_pages: u64,
}

/// Returns the drive of the profile behind `link`.
pub(super) fn profile(link: Link) -> Result<Profile, Failure> {
    let mut profile = device::load(NAME)?;
    let nand = &mut profile.nand;
    (nand.blocks_per_plane, nand.pages_per_block) = (BLOCKS_PER_PLANE, PAGES_PER_BLOCK);
    let size_bytes = nand.raw_bytes();
    nand.blocks_per_plane += Zones::SPARE_EXTENTS;
    let planes = u64::from(nand.channels * nand.dies_per_channel * nand.planes_per_die);
    let page_bytes = u64::from(nand.page_bytes);
    let namespace = &mut profile.namespaces[0];
    namespace.size_bytes = size_bytes;
    let NamespaceKind::Zoned(zoned) = &mut namespace.kind else {
        panic!("{NAME} is a zoned drive");
    };
    zoned.stripe = Stripe::All;
    (zoned.max_open, zoned.max_active) = (BLOCKS_PER_PLANE, BLOCKS_PER_PLANE);
    zoned.buffer_bytes = planes * 2 * page_bytes;
    profile.link.bytes_per_second = link.bytes_per_second;
    profile.link.transfer = link.transfer;
    Ok(profile)
}

/// Returns the space of the host's translation layer, with `over_provisioning` beside the free
/// zones and the average unwritten part of open zones.
pub(super) fn shape(profile: &Profile, over_provisioning: f64) -> Shape {
    let nand = &profile.nand;
    let planes = nand.channels * nand.dies_per_channel * nand.planes_per_die;
    let pages_per_zone = planes * nand.pages_per_block;
    let (zones, lanes) = (BLOCKS_PER_PLANE, 3);
    // Each open zone may need a new zone at the same time.
    let free_min = lanes + 1;
    let open = f64::from(lanes + 1);
    let full = (f64::from(zones - free_min) - open / 2.0) * f64::from(pages_per_zone);
    #[expect(clippy::cast_possible_truncation, reason = "less than the pages of the drive")]
    #[expect(clippy::cast_sign_loss, reason = "a number of pages is not below zero")]
    let pages = (full / (1.0 + over_provisioning)) as u32;
    let batch = COMMAND_BYTES_MAX / nand.page_bytes;
    Shape { zones, pages_per_zone, pages, lanes, free_min, batch }
}

/// Runs `load` on a new drive that holds the data of `ftl`.
pub(super) fn measure(
    profile: &Profile,
    ftl: &HostFtl,
    moves: Moves,
    load: Load,
) -> Result<Went, Failure> {
    let (mut reactor, device) = fresh(profile, SEED)?;
    let queue = device.controller().queue_pair();
    let zone_blocks = device.zones(Device::NAMESPACE).expect("it is zoned").shape().zone_blocks;
    let mut host = Host::new(queue, ftl.clone(), moves, zone_blocks, profile.nand.page_bytes);
    reactor.run(async {
        host.fill().await?;
        // Otherwise buffered data would be programmed during the measurement.
        device.flush().await.map_err(|error| broken(&error.to_string()))?;
        host.run(load).await
    })
}

/// The purpose of a command.
#[derive(Debug)]
enum Step {
    Fill,
    Read(Place),
    Write(Place),
    /// Reads a page of this lane's batch, at this index of its sources.
    Gather(u32, usize),
    /// Writes back a page of the batch.
    Put(u32),
    Copy(u32),
    Reset,
}

/// Moves pages, one batch at a time.
#[derive(Debug, Default)]
struct Lane {
    waiting: VecDeque<Batch>,
    present: Option<Batch>,
    /// Pages read of the current batch.
    read: Vec<Option<Buf>>,
    /// Commands in flight of the current batch.
    left: usize,
}

struct Host {
    queue: QueuePair,
    ftl: HostFtl,
    moves: Moves,
    zone_blocks: u64,
    page_bytes: u32,
    rng: Rng,
    /// By command number, minus that of the oldest command in flight.
    steps: VecDeque<Option<Step>>,
    first_step: u64,
    lanes: Vec<Lane>,
    /// Latest data of each place.
    stamps: Vec<u64>,
    stamp: u64,
    /// Places whose write is in flight: the host has their data in memory.
    in_memory: HashSet<Place>,
    /// Old places of pages in batches in flight, where the pages can still be read.
    sources: HashMap<Place, Place>,
    /// Per zone: reads in flight from it, and pages still to be moved out of it.
    readers: Vec<u32>,
    /// Whether each zone is to be reset.
    is_cleaned: Vec<bool>,
    batches: usize,
}

impl Host {
    fn new(
        queue: QueuePair,
        ftl: HostFtl,
        moves: Moves,
        zone_blocks: u64,
        page_bytes: u32,
    ) -> Self {
        let &Shape { zones, pages_per_zone, lanes, .. } = ftl.shape();
        Self {
            queue,
            ftl,
            moves,
            zone_blocks,
            page_bytes,
            rng: Rng::fork(SEED, 1),
            steps: VecDeque::new(),
            first_step: 0,
            lanes: (0..lanes).map(|_| Lane::default()).collect(),
            stamps: vec![0; (zones * pages_per_zone) as usize],
            stamp: 0,
            in_memory: HashSet::new(),
            sources: HashMap::new(),
            readers: vec![0; zones as usize],
            is_cleaned: vec![false; zones as usize],
            batches: 0,
        }
    }

    /// Writes the data of the translation layer, as fast as the drive accepts it.
    async fn fill(&mut self) -> Result<(), Failure> {
        let &Shape { zones, pages_per_zone, batch, .. } = self.ftl.shape();
        for zone in 0..zones {
            let written = self.ftl.written(zone);
            for page in (0..written).step_by(batch as usize) {
                let pages = batch.min(written - page);
                let place = zone * pages_per_zone + page;
                self.stamp += 1;
                self.stamps[place as usize..(place + pages) as usize].fill(self.stamp);
                let data = Buf::phantom(pages * self.page_bytes, self.stamp);
                self.append(place, data, Step::Fill);
                while self.steps.len() >= FILL_DEPTH {
                    self.next().await?;
                }
            }
        }
        while !self.steps.is_empty() {
            self.next().await?;
        }
        Ok(())
    }

    async fn run(&mut self, load: Load) -> Result<Went, Failure> {
        let start = clock::now();
        let moved_before = self.ftl.moved();
        let (mut issued, mut outstanding) = (0, 0);
        while issued < load.operations || !self.steps.is_empty() {
            while issued < load.operations && outstanding < load.depth && self.keeps_step() {
                issued += 1;
                outstanding += u32::from(self.issue());
            }
            if !self.steps.is_empty() {
                outstanding -= u32::from(self.next().await?);
            }
        }
        let seconds = (clock::now() - start).as_secs_f64();
        let moved_pages = self.ftl.moved() - moved_before;
        let bytes = load.operations * u64::from(self.page_bytes);
        Ok(Went { bytes_per_second: float(bytes) / seconds, moved_pages })
    }

    /// True if moves are not too far behind the writes that caused them.
    const fn keeps_step(&self) -> bool {
        self.batches <= 2 * self.lanes.len()
    }

    /// Starts an operation of an application. Returns false if the load ends here.
    fn issue(&mut self) -> bool {
        let is_write = self.rng.below(2) == 1;
        let page = self.rng.below(self.ftl.shape().pages.into());
        let page = u32::try_from(page).expect("below the pages");
        if is_write { self.write(page) } else { self.read(page) }
    }

    fn read(&mut self, page: u32) -> bool {
        let mut place = self.ftl.place(page);
        if self.in_memory.contains(&place) {
            return false;
        }
        while let Some(&source) = self.sources.get(&place) {
            place = source;
        }
        self.readers[self.ftl.zone_of(place) as usize] += 1;
        self.submit_read(place, Step::Read(place));
        true
    }

    fn write(&mut self, page: u32) -> bool {
        let place = self.ftl.write(page);
        self.stamp += 1;
        self.stamps[place as usize] = self.stamp;
        self.in_memory.insert(place);
        self.append(place, Buf::phantom(self.page_bytes, self.stamp), Step::Write(place));
        if self.moves == Moves::None {
            return true;
        }
        let Cleaning { batch, cleaned } = self.ftl.clean();
        if let Some(batch) = batch {
            self.enqueue(batch);
        }
        if let Some(zone) = cleaned {
            self.is_cleaned[zone as usize] = true;
            self.reset_when_left(zone);
        }
        true
    }

    /// Queues a batch behind the earlier ones of its lane. Until it moves, its pages are read from
    /// their old places.
    fn enqueue(&mut self, batch: Batch) {
        self.batches += 1;
        for (&source, to) in batch.sources.iter().zip(batch.to..) {
            self.readers[self.ftl.zone_of(source) as usize] += 1;
            self.stamps[to as usize] = self.stamps[source as usize];
            self.sources.insert(to, source);
        }
        let lane = batch.lane;
        self.lanes[lane as usize].waiting.push_back(batch);
        self.start_next(lane);
    }

    fn start_next(&mut self, number: u32) {
        let lane = &mut self.lanes[number as usize];
        if lane.present.is_some() {
            return;
        }
        let Some(batch) = lane.waiting.pop_front() else { return };
        lane.left = batch.sources.len();
        lane.read = vec![None; lane.left];
        lane.present = Some(batch.clone());
        if self.moves == Moves::InDevice {
            return self.copy(number, &batch);
        }
        for (at, &source) in batch.sources.iter().enumerate() {
            self.submit_read(source, Step::Gather(number, at));
        }
    }

    fn copy(&mut self, lane: u32, batch: &Batch) {
        let ranges: Vec<CopyRange> = batch
            .sources
            .iter()
            .map(|&source| CopyRange::new(self.lba(source), self.page_blocks()))
            .collect();
        let count = u32::try_from(ranges.len()).expect("a batch has few pages");
        let mut data = BufMut::unpooled((count * COPY_RANGE_BYTES) as usize);
        data.as_mut().copy_from_slice(ranges.as_bytes());
        let command = Command::copy(Device::NAMESPACE, self.lba(batch.to), count);
        self.submit(command, data.freeze(), Step::Copy(lane));
    }

    /// Waits for a completion and handles it. Returns true if it was an application's.
    async fn next(&mut self) -> Result<bool, Failure> {
        let completion = self.queue.next().await;
        if completion.status != Status::SUCCESS {
            let Completion { opcode, status, .. } = completion;
            return Err(broken(&format!("{opcode:?} failed: {status:?}")));
        }
        let at = usize::try_from(completion.id - self.first_step).expect("few are under way");
        let step = self.steps[at].take().expect("a command ends once");
        while self.steps.front().is_some_and(Option::is_none) {
            self.steps.pop_front();
            self.first_step += 1;
        }
        match step {
            Step::Fill | Step::Reset => return Ok(false),
            Step::Read(place) => {
                self.check(place, &completion.data)?;
                self.leave(place);
            }
            Step::Write(place) => {
                if completion.result != self.lba(place) {
                    return Err(broken("an append went elsewhere"));
                }
                self.in_memory.remove(&place);
            }
            Step::Gather(lane, at) => {
                self.gathered(lane, at, &completion.data)?;
                return Ok(false);
            }
            Step::Put(lane) => {
                self.one_less(lane);
                return Ok(false);
            }
            Step::Copy(lane) => {
                self.lanes[lane as usize].left = 1;
                self.one_less(lane);
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Handles the read of a page of a batch. After the last read, writes all pages back, in order.
    fn gathered(&mut self, number: u32, at: usize, data: &Buf) -> Result<(), Failure> {
        let lane = &mut self.lanes[number as usize];
        let batch = lane.present.as_ref().expect("its batch is present");
        let (source, to) = (batch.sources[at], batch.to);
        lane.read[at] = Some(data.clone());
        lane.left -= 1;
        let is_last = lane.left == 0;
        self.check(source, data)?;
        if is_last {
            let lane = &mut self.lanes[number as usize];
            let read = std::mem::take(&mut lane.read);
            lane.left = read.len();
            for (data, to) in read.into_iter().zip(to..) {
                self.append(to, data.expect("all were read"), Step::Put(number));
            }
        }
        Ok(())
    }

    /// Handles a completion of a lane's batch. After the last one, its pages are read from their
    /// new places.
    fn one_less(&mut self, number: u32) {
        let lane = &mut self.lanes[number as usize];
        lane.left -= 1;
        if lane.left > 0 {
            return;
        }
        let batch = lane.present.take().expect("its batch is present");
        self.batches -= 1;
        for (&source, to) in batch.sources.iter().zip(batch.to..) {
            self.sources.remove(&to);
            self.leave(source);
        }
        self.start_next(number);
    }

    fn leave(&mut self, place: Place) {
        let zone = self.ftl.zone_of(place);
        self.readers[zone as usize] -= 1;
        self.reset_when_left(zone);
    }

    fn reset_when_left(&mut self, zone: u32) {
        if self.is_cleaned[zone as usize] && self.readers[zone as usize] == 0 {
            self.is_cleaned[zone as usize] = false;
            let start = u64::from(zone) * self.zone_blocks;
            let reset = ZoneSendAction::Reset;
            let command = Command::zone_management_send(Device::NAMESPACE, start, reset);
            self.submit(command, Buf::phantom(0, 0), Step::Reset);
        }
    }

    fn append(&mut self, place: Place, data: Buf, step: Step) {
        let start = u64::from(self.ftl.zone_of(place)) * self.zone_blocks;
        let blocks = data.len() / BLOCK_BYTES;
        self.submit(Command::zone_append(Device::NAMESPACE, start, blocks), data, step);
    }

    fn submit_read(&mut self, place: Place, step: Step) {
        let command = Command::read(Device::NAMESPACE, self.lba(place), self.page_blocks());
        self.submit(command, Buf::phantom(0, 0), step);
    }

    fn submit(&mut self, command: Command, data: Buf, step: Step) {
        let id = self.queue.submit(Submission { command, long_key: None, data });
        assert_eq!(id, self.first_step + self.steps.len() as u64, "commands are numbered");
        self.steps.push_back(Some(step));
    }

    /// Checks that `data` is the latest data of `place`.
    fn check(&self, place: Place, data: &Buf) -> Result<(), Failure> {
        let is_right = data.checksum() == self.stamps[place as usize];
        if is_right { Ok(()) } else { Err(broken("a page has another page's data")) }
    }

    fn lba(&self, place: Place) -> u64 {
        let pages_per_zone = self.ftl.shape().pages_per_zone;
        let page = u64::from(place % pages_per_zone);
        u64::from(self.ftl.zone_of(place)) * self.zone_blocks + page * u64::from(self.page_blocks())
    }

    const fn page_blocks(&self) -> u32 {
        self.page_bytes / BLOCK_BYTES
    }
}

fn broken(what: &str) -> Failure {
    Failure::Broken(format!("the experiment went wrong: {what}"))
}

#[expect(clippy::cast_precision_loss, reason = "bytes of an experiment are far below 2^53")]
const fn float(bytes: u64) -> f64 {
    bytes as f64
}
