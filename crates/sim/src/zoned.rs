//! Zones by the ZNS command set: one writer for each zone, all at once, on a small device.

use crate::host_queue::{HostQueue, Transport};
use crate::ledger::Excuses;
use crate::load::{Life, Load};
use crate::power::Loss;
use crate::tally::Tally;
use crate::zone_host::{Writer, ZoneHost};
use base::Rng;
use base::limits::BLOCK_BYTES;
use clock::LocalFuture;
use node::profile::{NamespaceKind, Stripe, Zoned};
use node::{Device, Profile};
use std::rc::Rc;

/// Steps of each zone's writer between two power cuts.
const STEPS: u64 = 60;

/// Blocks of a zone, of so many pages for each block of flash.
const PAGES_PER_BLOCK: u32 = 8;

/// A host, its zones and a device for them.
pub(crate) struct ZonedLoad {
    profile: Profile,
    host: Rc<ZoneHost>,
    transport: Transport,
}

impl ZonedLoad {
    pub(crate) fn new(seed: u64, transport: Transport) -> Self {
        let mut rng = Rng::new(seed);
        let (profile, zone_bytes) = tiny(&mut rng);
        let zones = profile.namespaces[0].size_bytes / zone_bytes;
        Self { profile, host: Rc::new(ZoneHost::new(zones)), transport }
    }

    async fn work(&self, device: &Rc<Device>, life: Life) {
        let zones = device.zones(Device::NAMESPACE).expect("it is a namespace of zones");
        let shape = zones.shape();
        let page_blocks = u64::from(self.profile.nand.page_bytes / BLOCK_BYTES);
        let Life { power, mut rng, is_last, number, may_be_cut, .. } = life;
        let writers = (0..self.host.zones()).map(|zone| {
            let (host, power) = (self.host.clone(), power.clone());
            let (device, transport) = (device.clone(), self.transport);
            let mut rng = Rng::new(rng.next_u64());
            async move {
                let queue = HostQueue::open(transport, device.controller(), &mut rng).await;
                let host = &*host;
                let writer = Writer { host, zone, shape, page_blocks, queue, power, may_be_cut };
                if number > 0 {
                    writer.look(true).await;
                }
                if !is_last {
                    writer.work(rng, STEPS).await;
                }
            }
        });
        clock::join_all(writers.collect()).await;
    }
}

fn index(bound: u64, rng: &mut Rng) -> usize {
    usize::try_from(rng.below(bound)).expect("below a usize")
}

/// The profile `zn540` made small, and the bytes of one of its zones.
fn tiny(rng: &mut Rng) -> (Profile, u64) {
    let mut profile = Profile::load("zn540").expect("a built-in profile");
    let nand = &mut profile.nand;
    (nand.channels, nand.dies_per_channel) = (2, 2);
    (nand.blocks_per_plane, nand.pages_per_block) = (16, PAGES_PER_BLOCK);
    nand.page_bytes = [4_096, 16_384][index(2, rng)];
    nand.spare_bytes = nand.page_bytes / 16;
    let stripe = [Stripe::Die, Stripe::Channel, Stripe::All][index(3, rng)];
    let blocks: u32 = match stripe {
        Stripe::Die => 1,
        Stripe::Channel => 2,
        Stripe::All => 4,
    };
    let zone_bytes = u64::from(blocks * PAGES_PER_BLOCK * nand.page_bytes);
    let zones = 6 + rng.below(3);
    let namespace = &mut profile.namespaces[0];
    namespace.size_bytes = zones * zone_bytes;
    namespace.kind = NamespaceKind::Zoned(Zoned {
        stripe,
        max_open: 4,
        max_active: 4 + u32::from(rng.below(2) == 0),
        buffer_bytes: u64::from(nand.page_bytes) * (5 + rng.below(8)),
    });
    (profile, zone_bytes)
}

impl Load for ZonedLoad {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn is_buffered(&self) -> bool {
        true
    }

    fn subjects_on_page(&self) -> usize {
        (self.profile.nand.page_bytes / BLOCK_BYTES) as usize
    }

    fn operations_in_life(&self) -> u64 {
        STEPS * u64::from(self.host.zones()) * 2
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
