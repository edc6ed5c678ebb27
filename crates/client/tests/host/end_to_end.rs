//! A host and this repository's target, in virtual time.

use crate::world::{ADDRESS, BLOCKS, KV, NQN, ROUGH, World, host, run};
use base::{Buf, Key, Nanos, Rng};
use client::{Association, Error, Namespace, Pairs, PairsError, Settings};
use clock::Stage;
use controller::{Queue, Submission};
use net::Conditions;
use nvme_tcp::framing::DataDigest;
use nvme_tcp::pdu::Digests;
use spec::{
    Command, CommandSet, QualifiedName, Status, StoreOptions, SubsystemType, TransportType,
};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) const BOTH: Digests = Digests { header: true, data: true };

pub(crate) fn settings() -> Settings {
    Settings::new(host(1), NQN)
}

pub(crate) fn key(name: &[u8]) -> Key {
    Key::new(name).unwrap()
}

pub(crate) fn value(seed: u64, len: usize) -> Buf {
    let mut bytes = vec![0; len];
    Rng::new(seed).fill(&mut bytes);
    Buf::copy_from(&bytes)
}

fn missing<T>() -> Result<T, PairsError> {
    Err(PairsError::Status(Status::KEY_DOES_NOT_EXIST))
}

pub(crate) async fn use_pairs(world: World, settings: Settings, queues: usize) {
    let (association, queue) = world.connect(settings, queues).await;
    let namespace = association.kv_namespace(KV).await.unwrap();
    assert_eq!(namespace.formats[0].key_bytes_max.get(), 16);
    let pairs = Pairs::new(queue.clone(), KV);
    for (at, len) in
        [0, 1, 511, 8_192, 8_193, 16_384, 65_536, 65_537, 300_001, 2 << 20].into_iter().enumerate()
    {
        let (name, stored) = (key(format!("key {at}").as_bytes()), value(at as u64, len));
        assert_eq!(pairs.exist(&name).await, Ok(false));
        assert_eq!(pairs.retrieve(&name).await.map(drop), missing());
        pairs.store(&name, stored.clone(), StoreOptions::MUST_NOT_EXIST).await.unwrap();
        let again = pairs.store(&name, value(9, 7), StoreOptions::MUST_NOT_EXIST).await;
        assert_eq!(again, Err(PairsError::Status(Status::KEY_EXISTS)));
        assert_eq!(pairs.exist(&name).await, Ok(true));
        let found = pairs.retrieve(&name).await.unwrap();
        assert_eq!(found.len() as usize, len);
        assert_eq!(found.bytes().unwrap_or_default(), stored.bytes().unwrap_or_default());
    }
    pairs.delete(&key(b"key 3")).await.unwrap();
    let update = pairs.store(&key(b"key 3"), value(1, 5), StoreOptions::MUST_EXIST).await;
    assert_eq!(update, missing());
    let mut listed = pairs.list(None).await.unwrap();
    listed.sort();
    let expected: Vec<Key> =
        [0, 1, 2, 4, 5, 6, 7, 8, 9].map(|at| key(format!("key {at}").as_bytes())).into();
    assert_eq!(listed, expected);
    assert_eq!(queue.failure(), None);
    queue.close();
    association.shut_down().await.unwrap();
    clock::sleep(Nanos::from_millis(10), Stage::Queue).await;
    assert!(world.network.open().is_empty(), "every connection has ended");
}

#[test]
fn pairs_of_all_lengths_come_back() {
    let cases = [
        (Digests::NONE, None, false, 1),
        (BOTH, None, false, 2),
        (Digests::NONE, None, true, 1),
        (Digests { header: true, data: false }, None, false, 1),
        (BOTH, Some(DataDigest::Padded), false, 2),
        (BOTH, Some(DataDigest::Exact), true, 1),
    ];
    for (seed, (digests, data_digest, flow_control, queues)) in (0..).zip(cases) {
        for conditions in [Conditions::CALM, ROUGH] {
            run(seed, conditions, async |world| {
                let settings = Settings { digests, data_digest, flow_control, ..settings() };
                use_pairs(world, settings, queues).await;
            });
        }
    }
}

#[test]
fn large_values_are_not_copied() {
    run(1, Conditions::CALM, async |world| {
        let (association, queue) = world.connect(settings(), 1).await;
        let pairs = Pairs::new(queue, KV);
        let name = key(b"key");
        pairs.store(&name, value(1, 60_000), StoreOptions::NONE).await.unwrap();
        // The first reply may have been read ahead.
        pairs.retrieve(&name).await.unwrap();
        let before = association.counters().copied();
        for _ in 0..20 {
            assert_eq!(pairs.retrieve(&name).await.unwrap().len(), 60_000);
        }
        assert_eq!(association.counters().copied(), before);
    });
}

#[test]
fn keys_are_listed_once_over_many_replies() {
    run(2, Conditions::CALM, async |world| {
        let (_association, queue) = world.connect(settings(), 1).await;
        let names: BTreeSet<Vec<u8>> =
            (0..9_000_u32).map(|at| [&at.to_be_bytes()[..], b"twelve bytes"].concat()).collect();
        for name in &names {
            let name = key(name);
            let command = Command::store(KV, name.as_bytes(), 1, StoreOptions::NONE);
            queue.submit(Submission::with_data(command, &name, Buf::copy_from(b"v")));
        }
        for _ in &names {
            assert_eq!(queue.next().await.status, Status::SUCCESS);
        }
        let pairs = Pairs::new(queue, KV);
        let (mut found, mut replies, mut after) = (Vec::new(), 0, None);
        loop {
            let keys = pairs.list(after.as_ref()).await.unwrap();
            let Some(last) = keys.last().cloned() else { break };
            found.extend(keys.iter().map(|key| key.as_bytes().to_vec()));
            (after, replies) = (Some(last), replies + 1);
            assert!(found.len() <= names.len(), "the list comes to an end");
        }
        assert!(replies > 2, "they do not fit one reply");
        found.sort();
        assert!(found.iter().eq(&names));
    });
}

#[test]
fn concurrent_commands_return_the_stored_values() {
    for seed in 0..6 {
        run(seed, ROUGH, async |world| use_many_pairs(&world, seed).await);
    }
}

/// Many commands on different keys at a time agree with a map.
pub(crate) async fn use_many_pairs(world: &World, seed: u64) {
    let settings = Settings { digests: BOTH, queue_entries: 17, ..settings() };
    let (_association, queue) = world.connect(settings, 2).await;
    let mut rng = Rng::new(seed);
    let mut model: BTreeMap<u64, Buf> = BTreeMap::new();
    for _ in 0..15 {
        let mut asked = BTreeMap::new();
        for number in 0..40_u64 {
            let name = key(&number.to_le_bytes());
            let before = model.get(&number).cloned();
            let submission = match rng.below(4) {
                0 => {
                    let len = [9, 3_000, 9_000, 40_000][rng.below(4).to_le_bytes()[0] as usize];
                    let stored = value(rng.next_u64(), len);
                    model.insert(number, stored.clone());
                    let command =
                        Command::store(KV, name.as_bytes(), stored.len(), StoreOptions::NONE);
                    Submission::with_data(command, &name, stored)
                }
                1 => {
                    model.remove(&number);
                    Submission::new(Command::delete(KV, name.as_bytes()), &name)
                }
                _ => Submission::new(Command::retrieve(KV, name.as_bytes(), 50_000), &name),
            };
            let is_read = submission.command.transfer() == spec::Transfer::ToHost;
            asked.insert(queue.submit(submission), is_read.then_some(before));
        }
        for _ in 0..40 {
            let completion = queue.next().await;
            match asked.remove(&completion.id).expect("each is answered once") {
                None => assert_eq!(completion.status, Status::SUCCESS),
                Some(None) => assert_eq!(completion.status, Status::KEY_DOES_NOT_EXIST),
                Some(Some(stored)) => {
                    assert_eq!(completion.status, Status::SUCCESS);
                    assert_eq!(completion.result, u64::from(stored.len()));
                    assert_eq!(completion.data.bytes(), stored.bytes());
                }
            }
        }
    }
}

#[test]
fn a_missing_subsystem_or_namespace_is_named() {
    run(3, Conditions::CALM, async |world| {
        let unknown =
            Settings { subsystem: "nqn.2026-11.com.example:other".to_owned(), ..settings() };
        let error = Association::connect(unknown, world.stream().await).await.unwrap_err();
        assert_eq!(error, Error::UnknownSubsystem("nqn.2026-11.com.example:other".to_owned()));
        let association = world.associate(settings()).await;
        for nsid in [3, 7, 0xffff_fffe] {
            assert_eq!(association.kv_namespace(nsid).await, Err(Error::NoNamespace(nsid)));
        }
        let other = association.kv_namespace(BLOCKS).await;
        let is_other = |error: &Error| {
            *error == Error::NoNamespace(BLOCKS)
                || *error == Error::NotKeyValue { nsid: BLOCKS, set: CommandSet::NVM }
        };
        assert!(other.as_ref().is_err_and(is_other), "{other:?}");
        assert!(association.kv_namespace(KV).await.is_ok());
    });
}

#[test]
fn a_discovery_subsystem_tells_of_the_other() {
    run(4, ROUGH, async |world| {
        let discovery = Settings { subsystem: QualifiedName::DISCOVERY.to_owned(), ..settings() };
        let association = world.associate(discovery).await;
        let entries = association.discover().await.unwrap();
        let [entry] = &entries[..] else { panic!("{entries:?}") };
        assert_eq!(entry.transport_type, TransportType::TCP);
        assert_eq!(entry.subsystem_type, SubsystemType::NVM);
        assert_eq!(entry.subsystem.as_str(), Some(NQN));
        assert_eq!(entry.address.as_str(), Some(ADDRESS));
        assert_eq!(entry.service.as_str(), Some("4420"));
        association.shut_down().await.unwrap();
    });
}

#[test]
fn an_idle_host_is_kept_alive() {
    run(5, Conditions::CALM, async |world| {
        let settings = Settings { keep_alive: Nanos::from_secs(1), ..settings() };
        let (association, queue) = world.connect(settings, 1).await;
        clock::sleep(Nanos::from_secs(60), Stage::Queue).await;
        assert_eq!((association.failure(), queue.failure()), (None, None));
        assert_eq!(Pairs::new(queue, KV).exist(&key(b"key")).await, Ok(false));
    });
}

#[test]
fn connections_that_are_cut_complete_everything() {
    for seed in 0..40 {
        run(seed, ROUGH, async |world| {
            let (association, queue) = world.connect(settings(), 2).await;
            let mut rng = Rng::new(seed);
            let [cut, at] = [rng.below(3), rng.below(3_000_000)];
            let network = world.network.clone();
            clock::spawn_at(clock::now() + Nanos(at), async move || {
                network.cut(cut);
            });
            for number in 0..100_u64 {
                let (name, stored) = (key(&number.to_le_bytes()), value(number, 10_000));
                let command = Command::store(KV, name.as_bytes(), stored.len(), StoreOptions::NONE);
                queue.submit(Submission::with_data(command, &name, stored));
            }
            for _ in 0..100 {
                let status = queue.next().await.status;
                assert!(
                    [Status::SUCCESS, Status::HOST_PATHING_ERROR].contains(&status),
                    "{status}"
                );
            }
            clock::sleep(Nanos::from_secs(20), Stage::Queue).await;
            let error = association.failure().or(queue.failure());
            assert!(matches!(error, Some(Error::Broken | Error::Ended)), "{error:?}");
        });
    }
}

/// Many reads and writes of different blocks at a time agree with an array.
#[test]
fn blocks_come_back_as_they_were_written() {
    let block = |number: u64| value(number, 4_096).bytes().unwrap().to_vec();
    for seed in 0..4 {
        run(seed, ROUGH, async |world| {
            let settings = Settings { digests: BOTH, queue_entries: 17, ..settings() };
            let association = world.associate(settings).await;
            let namespace = association.namespace(BLOCKS).await.unwrap();
            let Namespace::Blocks(blocks) = &namespace else { panic!("it is of blocks") };
            assert_eq!(blocks.size.get(), 100);
            let streams = vec![world.stream().await, world.stream().await];
            let queue = association.io_queue(streams, namespace.reads()).await.unwrap();
            let mut rng = Rng::new(seed);
            let mut model = vec![vec![0; 4_096]; 100];
            for _ in 0..10 {
                let mut asked = BTreeMap::new();
                // Ten commands on ten blocks each: none is in the way of another.
                for first in (0..100_u64).step_by(10) {
                    let len = 1 + rng.below(10);
                    let range = usize::try_from(first).unwrap()..;
                    let range = range.start..range.start + usize::try_from(len).unwrap();
                    let blocks = u32::try_from(len).unwrap();
                    let is_write = rng.below(2) == 0;
                    let (command, data) = if is_write {
                        model[range.clone()].fill_with(|| block(rng.next_u64()));
                        let data = Buf::copy_from(&model[range.clone()].concat());
                        (Command::write(BLOCKS, first, blocks), data)
                    } else {
                        (Command::read(BLOCKS, first, blocks), Buf::phantom(0, 0))
                    };
                    let submission = Submission { command, long_key: None, data };
                    asked.insert(queue.submit(submission), (is_write, range));
                }
                for _ in 0..10 {
                    let completion = queue.next().await;
                    assert_eq!(completion.status, Status::SUCCESS);
                    let (is_write, range) = asked.remove(&completion.id).unwrap();
                    let expected = if is_write { Vec::new() } else { model[range].concat() };
                    assert!(completion.data.bytes().unwrap_or_default() == expected);
                }
            }
            let submit = |command, data| {
                queue.submit(Submission { command, long_key: None, data });
            };
            submit(Command::flush(BLOCKS), Buf::phantom(0, 0));
            assert_eq!(queue.next().await.status, Status::SUCCESS);
            submit(Command::write_zeroes(BLOCKS, 0, 100), Buf::phantom(0, 0));
            assert_eq!(queue.next().await.status, Status::SUCCESS);
            submit(Command::compare(BLOCKS, 99, 1), Buf::copy_from(&[0; 4_096]));
            assert_eq!(queue.next().await.status, Status::SUCCESS);
            submit(Command::read(BLOCKS, 99, 2), Buf::phantom(0, 0));
            assert_eq!(queue.next().await.status, Status::LBA_OUT_OF_RANGE);
            assert_eq!(queue.failure(), None);
        });
    }
}
