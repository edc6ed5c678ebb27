//! Keys that no command of a host of a fabric can name: List omits them, and log page C1h counts
//! them.

use crate::fabrics::host::{BLOCK, KV, Line, World, run};
use base::{Buf, Key, Rng};
use controller::KeyCounts;
use engine::{BatchOp, BatchWrite, Condition, KeySpaceId, Write};
use spec::{Command, LogPage, Status};
use std::collections::BTreeSet;

const SPACE: KeySpaceId = KeySpaceId(1);

/// Key 2 is the longest that a command holds, key 3 the next one.
fn key(number: u64) -> Key {
    let len = [1, 9, 16, 17, 40, 255][usize::try_from(number % 6).expect("below 6")];
    let mut bytes = vec![u8::try_from(number).expect("few"); len];
    bytes[0] = u8::try_from(number).expect("few");
    Key::new(&bytes).expect("1 to 255 bytes")
}

fn get(nsid: u32, bytes: u32) -> Command {
    Command::get_log_page(LogPage(0xc1), nsid, bytes)
}

async fn counts(admin: &Line, nsid: u32) -> (u64, u64) {
    let page: KeyCounts = admin.structure(get(nsid, 24)).await;
    (page.keys.get(), page.long_keys.get())
}

async fn store_by_another_door(world: &World, key: &Key) {
    let store = world.device.store();
    let announced = store.announce();
    let value = Buf::copy_from(b"v");
    let put = store.put(SPACE, key, &value, Write::default(), announced).await;
    put.expect("there is room");
}

#[test]
fn the_page_has_its_figures_where_the_guide_says() {
    run(async |world| {
        let (admin, _) = world.admin().await;
        for number in 0..12 {
            store_by_another_door(&world, &key(number)).await;
        }
        let mut expected = Vec::new();
        for word in [1_u64, 12, 6] {
            expected.extend_from_slice(&word.to_le_bytes());
        }
        expected.extend_from_slice(&[0; 8]);
        assert_eq!(admin.read(get(KV, 32)).await, expected, "zeros behind its end");
        // Of all namespaces that the host has.
        assert_eq!(counts(&admin, 0).await, (12, 6));
        assert_eq!(counts(&admin, u32::MAX).await, (12, 6));
        assert_eq!(admin.status(get(BLOCK, 24)).await, Status::INVALID_FIELD, "it has no keys");
        assert_eq!(admin.status(get(9, 24)).await, Status::INVALID_NAMESPACE);
        world.device.store().delete_key_space(SPACE).await.expect("it is there");
        world.device.store().create_key_space(SPACE).await.expect("it is gone");
        assert_eq!(counts(&admin, KV).await, (0, 0));
    });
}

#[test]
fn list_has_the_keys_that_a_command_can_name_and_no_others() {
    run(async |world| {
        let (_admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        for number in 0..60 {
            store_by_another_door(&world, &key(number)).await;
        }
        let (mut met, mut last) = (Vec::new(), Vec::new());
        loop {
            // Two of the longest at a time.
            let list = io.answer(Command::list(KV, &last, 4 + 2 * 20), &[], 4 + 2 * 20).await;
            let keys = keys_of(list.data.bytes().expect("they are bytes"));
            let new: Vec<_> = keys.into_iter().filter(|key| *key != last).collect();
            let Some(end) = new.last() else { break };
            last.clone_from(end);
            met.extend(new);
        }
        met.sort_unstable();
        let short = (0..60).map(key).filter(|key| !key.is_long());
        let mut short: Vec<_> = short.map(|key| key.as_bytes().to_vec()).collect();
        short.sort_unstable();
        assert_eq!(met, short);
    });
}

/// The keys of a List (KV 1.1, List data structure).
fn keys_of(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let count = u32::from_le_bytes(bytes[..4].try_into().expect("4 bytes"));
    bytes = &bytes[4..];
    let mut keys = Vec::new();
    for _ in 0..count {
        let len = usize::from(u16::from_le_bytes([bytes[0], bytes[1]]));
        keys.push(bytes[2..2 + len].to_vec());
        bytes = &bytes[(2 + len).next_multiple_of(4)..];
    }
    keys
}

#[test]
fn the_page_counts_what_a_model_has_after_stores_deletes_and_batches() {
    let mut seed = 0;
    run(async |world| {
        seed += 1;
        let (admin, _) = world.admin().await;
        let (store, mut rng) = (world.device.store().clone(), Rng::new(seed));
        let mut model = BTreeSet::new();
        for step in 0..600 {
            let key = key(rng.below(60));
            match rng.below(5) {
                0 | 1 => {
                    store_by_another_door(&world, &key).await;
                    model.insert(key);
                }
                2 | 3 => {
                    let deleted = store.delete(SPACE, &key, store.announce()).await;
                    assert_eq!(deleted.is_ok(), model.remove(&key), "{deleted:?}");
                }
                _ => {
                    let other = self::key(rng.below(60));
                    if other == key {
                        continue;
                    }
                    let value = Buf::copy_from(b"batch");
                    let write = |key: &Key, op| BatchWrite { space: SPACE, key: key.clone(), op };
                    let stored = BatchOp::Put { value, write: Write::default() };
                    let deleted = BatchOp::Delete { condition: Condition::Always };
                    let writes = vec![write(&key, stored), write(&other, deleted)];
                    let written = store.write_batch(writes, store.announce()).await;
                    written.expect("there is room");
                    model.insert(key);
                    model.remove(&other);
                }
            }
            if step % 20 == 0 {
                let long = model.iter().filter(|key: &&Key| key.as_bytes().len() > 16).count();
                let expected = (model.len() as u64, long as u64);
                assert_eq!(counts(&admin, KV).await, expected, "step {step}");
            }
        }
    });
}
