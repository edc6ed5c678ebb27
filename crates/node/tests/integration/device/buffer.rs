//! What is in a buffer when the power is lost.

use crate::device::machine::{log, moke};
use base::{Buf, Key, Nanos, Rng};
use clock::Stage;
use engine::{BatchOp, BatchWrite, Error, KeySpaceId, Store, Write, buffered_pages_max};
use media::Shape;
use node::profile::{Ack, LogFtl, Power, Stripe};
use node::{Device, FaultPlan, Profile};
use reactor::Reactor;
use std::sync::Arc;

const BUFFER_BYTES: u64 = 65_536;
const PAGE_BYTES: u32 = 4_096;
const SPACE: KeySpaceId = KeySpaceId(1);

/// Extents spread over all planes, so that pages of any number of them are on their way.
fn profile(pages: u64) -> Profile {
    let mut profile = moke(&[("channels", "2"), ("dies_per_channel", "2"), ("size_gb", "3")]);
    let nand = &mut profile.nand;
    (nand.blocks_per_plane, nand.pages_per_block) = (24, 32);
    (nand.page_bytes, nand.spare_bytes) = (PAGE_BYTES, 64);
    let log = log(&mut profile);
    log.ftl = LogFtl::Append { stripe: Stripe::All };
    log.ack = Ack::Buffer { bytes: BUFFER_BYTES };
    profile.namespaces[0].size_bytes = 4 << 20;
    profile.power = Some(Power { capacitor_nj: pages, program_nj: 1 });
    profile
}

fn number(rng: &mut Rng, below: u64) -> u32 {
    u32::try_from(rng.below(below)).expect("it is small")
}

/// Values of no byte, which fill summaries, of half a page and a little, which leave pages half
/// empty, and longer than the buffer; batches; deletes.
async fn change(store: &Arc<Store>, rng: &mut Rng) -> Result<(), Error> {
    let mut key = vec![0x5A; 8 + usize::try_from(rng.below(240)).expect("it is small")];
    key[0] = rng.below(100).to_le_bytes()[0];
    let key = Key::new(&key).expect("it has bytes");
    let len = match rng.below(12) {
        0..4 => 0,
        4..8 => 2_100 + number(rng, 1_900),
        8..11 => number(rng, 20_000),
        _ => 70_000 + number(rng, 60_000),
    };
    let value = Buf::phantom(len, if len == 0 { 0 } else { rng.next_u64() });
    match rng.below(8) {
        0 => store.delete(SPACE, &key, store.announce()).await,
        1 => {
            let member = |number: u8| BatchWrite {
                space: SPACE,
                key: Key::new(&[number, 1]).expect("it has bytes"),
                op: BatchOp::Put { value: Buf::phantom(2_200, 7), write: Write::default() },
            };
            store.write_batch((0..20).map(member).collect(), store.announce()).await
        }
        _ => store.put(SPACE, &key, &value, Write::default(), store.announce()).await.map(drop),
    }
}

async fn change_forever(store: Arc<Store>, mut rng: Rng) {
    loop {
        clock::sleep(Nanos(rng.below(3_000)), Stage::Core).await;
        match change(&store, &mut rng).await {
            Ok(()) | Err(Error::CapacityExceeded | Error::KeyNotFound) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// The pages that a loss of power after some time lost, and those that it saved.
fn loss(pages: u64, seed: u64) -> (u64, u64) {
    let profile = profile(pages);
    let cells = Device::manufacture(&profile, seed);
    Reactor::new(None).run(async {
        let device = Device::format(&profile, cells, seed, FaultPlan::default()).await;
        let device = device.expect("it is large enough");
        let mut rng = Rng::new(seed);
        for _ in 0..24 {
            let rng = Rng::new(rng.next_u64());
            clock::spawn(change_forever(device.store().clone(), rng));
        }
        clock::sleep(Nanos(3_000_000 + rng.below(60_000_000)), Stage::Core).await;
        let loss = device.lose_power().await;
        (loss.lost_pages, loss.saved_pages)
    })
}

/// A buffer of 16 pages has more of them in memory than 17: with so little energy some are lost.
/// With as much as is said to be enough none is.
#[test]
fn with_energy_for_all_pages_that_stores_may_have_in_memory_none_is_lost() {
    let nand = profile(0).nand;
    let planes = Stripe::All.units(&nand);
    let shape = Shape {
        page_bytes: PAGE_BYTES,
        spare_bytes: nand.spare_bytes,
        pages_per_extent: planes * nand.pages_per_block,
        extents: nand.blocks_per_plane,
        parallelism: planes,
        frames: None,
    };
    let enough = buffered_pages_max(&shape, BUFFER_BYTES);
    let (mut lost, mut most) = (0, 0);
    for seed in 0..60 {
        lost += loss(17, seed).0;
        let (none, saved) = loss(enough, seed);
        assert_eq!(none, 0, "seed {seed}");
        most = most.max(saved);
    }
    assert!(lost > 0 && most > 17, "the load is hard: {lost} pages lost, {most} saved");
    assert!(most <= enough, "{most} saved");
}
