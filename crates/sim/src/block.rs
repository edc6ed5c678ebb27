//! Logical blocks by the NVM command set, on a small page-mapped device that cleans all the time.
//!
//! Each block is a subject of its own: a command on several is as many operations side by side, for
//! a device promises no more. Zeros are a content like any other.

use crate::block_host::{BlockHost, Request};
use crate::host_queue::{HostQueue, Transport};
use crate::ledger::Excuses;
use crate::load::{Life, Load};
use crate::power::{Loss, Power};
use crate::tally::Tally;
use base::Rng;
use base::limits::BLOCK_BYTES;
use clock::LocalFuture;
use node::profile::{Ack, Block, GcBlocking, GcFrontier, GcVictims, MultiPlane, NamespaceKind};
use node::{Device, Profile};
use std::rc::Rc;

/// Operations between two power cuts, after the device was filled.
const OPERATIONS: u64 = 900;

/// Most blocks of a command.
const SPAN_MAX: u64 = 6;

/// A host, its blocks and a device for them.
pub(crate) struct BlockLoad {
    profile: Profile,
    host: BlockHost,
    transport: Transport,
    /// Of 100 commands, how many are on a tenth of the blocks.
    hot_percent: u64,
}

impl BlockLoad {
    pub(crate) fn new(seed: u64, transport: Transport) -> Self {
        let mut rng = Rng::new(seed);
        let profile = tiny(&mut rng);
        let blocks = profile.namespaces[0].size_bytes / u64::from(BLOCK_BYTES);
        let hot_percent = [0, 50, 90][index(3, &mut rng)];
        Self { profile, host: BlockHost::new(blocks), transport, hot_percent }
    }

    async fn work(&self, device: &Device, life: Life) {
        let Life { power, mut rng, .. } = life;
        if life.may_be_cut {
            self.host.faults_may_revert();
        }
        let queue = HostQueue::open(self.transport, device.controller(), &mut rng).await;
        let blocks = self.host.blocks();
        if life.number == 0 {
            self.host.begin();
            let fill = (0..blocks / 4).map(|part| Request::Write { lba: part * 4, blocks: 4 });
            self.host.submit_all(&queue, &power, fill).await;
        } else {
            self.read_all(&queue, &power).await;
        }
        if life.is_last {
            return;
        }
        let requests: Vec<_> = (0..OPERATIONS).map(|_| self.request(&mut rng)).collect();
        self.host.submit_all(&queue, &power, requests.into_iter()).await;
        if rng.below(2) == 0 {
            self.host.finish(&queue, &power).await;
            self.read_all(&queue, &power).await;
        }
    }

    fn request(&self, rng: &mut Rng) -> Request {
        let blocks = 1 + rng.below(SPAN_MAX);
        let all = self.host.blocks() - blocks;
        let range = if rng.below(100) < self.hot_percent { all / 10 } else { all };
        let lba = rng.below(range + 1);
        match rng.below(100) {
            0..55 => Request::Write { lba, blocks },
            55..85 => Request::Read { lba, blocks },
            85..91 => Request::WriteZeroes { lba, blocks },
            91..98 => Request::Deallocate { lba, blocks },
            _ => Request::Flush,
        }
    }

    async fn read_all(&self, queue: &HostQueue, power: &Power) {
        let everything = (0..self.host.blocks()).map(|lba| Request::Read { lba, blocks: 1 });
        self.host.submit_all(queue, power, everything).await;
        self.host.finish(queue, power).await;
    }
}

fn index(bound: u64, rng: &mut Rng) -> usize {
    usize::try_from(rng.below(bound)).expect("below a usize")
}

/// The profile `970pro` made so small that it is full at once, and with another choice of
/// everything that may matter to order and content.
fn tiny(rng: &mut Rng) -> Profile {
    let mut profile = Profile::load("970pro").expect("a built-in profile");
    let nand = &mut profile.nand;
    (nand.channels, nand.dies_per_channel) = (2, 1);
    nand.planes_per_die = 1 + u32::from(rng.below(2) == 0);
    if nand.planes_per_die > 1 {
        nand.multi_plane = [MultiPlane::Together, MultiPlane::Independent][index(2, rng)];
    }
    (nand.blocks_per_plane, nand.pages_per_block) = (16, 8);
    nand.page_bytes = [4_096, 16_384][index(2, rng)];
    nand.spare_bytes = nand.page_bytes / 16;
    let planes = u64::from(nand.dies_per_channel * nand.channels * nand.planes_per_die);
    // Of each plane some blocks are left for cleaning, and of each block a page.
    let room = planes * u64::from((16 - 4) * (8 - 1) * nand.page_bytes);
    let victims = [GcVictims::Greedy, GcVictims::CostBenefit, GcVictims::Random, GcVictims::Fifo];
    let namespace = &mut profile.namespaces[0];
    namespace.size_bytes = room * (70 + rng.below(20)) / 100;
    namespace.size_bytes -= namespace.size_bytes % u64::from(4 * BLOCK_BYTES);
    namespace.kind = NamespaceKind::Block(Block {
        ack: if rng.below(2) == 0 { Ack::Buffer { bytes: 256 << 10 } } else { Ack::Program },
        gc_victims: victims[index(4, rng)],
        gc_blocking: [GcBlocking::Nothing, GcBlocking::Plane, GcBlocking::Controller]
            [index(3, rng)],
        gc_frontier: [GcFrontier::Own, GcFrontier::Shared][index(2, rng)],
        gc_free_blocks: 2,
        wear_gap: [0, 8][index(2, rng)],
    });
    profile
}

impl Load for BlockLoad {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn is_buffered(&self) -> bool {
        match &self.profile.namespaces[0].kind {
            NamespaceKind::Block(block) => block.ack != Ack::Program,
            _ => false,
        }
    }

    fn subjects_on_page(&self) -> usize {
        (self.profile.nand.page_bytes / BLOCK_BYTES) as usize
    }

    fn operations_in_life(&self) -> u64 {
        OPERATIONS * SPAN_MAX / 2
    }

    fn live(self: Rc<Self>, device: Rc<Device>, life: Life) -> LocalFuture<'static, ()> {
        Box::pin(async move { self.work(&device, life).await })
    }

    fn operations(&self) -> u64 {
        self.host.operations()
    }

    fn cut_off(&self, loss: Loss) {
        self.host.cut_off(loss);
    }

    fn check(&self, excuses: Excuses) -> Tally {
        self.host.check(excuses)
    }
}
