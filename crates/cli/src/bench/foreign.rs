//! Detects data on a target that no run of `bench` wrote. `bench` overwrites it only when told to.
//!
//! [`check_drive`], [`check_pairs`], [`check_database`] and [`check_blocks`] each sample a few keys
//! or blocks, so that they are quick. They do not find data outside the sample.
//! `workload::Keys::may_be_of_a_run` and `workload::is_generated` recognise keys, values and blocks
//! of a run.

use crate::kv::shown_key;
use crate::output::Failure;
use crate::redis::{self, Line};
use base::limits::BLOCK_BYTES;
use base::{Buf, Key};
use client::{Pairs, PairsError};
use controller::{Queue, Submission};
use engine::{KeySpaceId, Store};
use resp_client::{Arg, Connection, Reply, Uri};
use spec::{Command, Status};
use std::collections::BTreeSet;
use std::sync::Arc;
use workload::{Keys, is_generated};

/// Keys in a sample.
const KEYS: usize = 64;

/// A key of at least this length shows by itself whether a run made it.
const TELLING_KEY_BYTES: usize = 8;

/// Shorter keys whose values are checked too.
const VALUES: usize = 4;

/// Most SCAN requests to a Redis server: an answer may contain no keys.
const SCANS: usize = 64;

/// Blocks in a sample: at each end of the namespace, where file systems and partition tables begin,
/// and between the two.
const BLOCKS_AT_ENDS: u64 = 32;
const BLOCKS_BETWEEN: u64 = 64;

/// Returns the error that refuses to write to `target` because of the data at `place`.
fn refusal(target: &str, place: &str) -> Failure {
    Failure::Refused(format!(
        "{target} holds data that kvasir bench did not write, as {place}; --overwrite has bench \
         write there nevertheless"
    ))
}

/// Refuses a drive in this process that holds pairs that no run wrote.
pub(super) async fn check_drive(target: &str, store: &Arc<Store>) -> Result<(), Failure> {
    let unread = |error: engine::Error| Failure::Broken(format!("{target}: {error}"));
    let (space, mut keys) = (KeySpaceId(1), Vec::new());
    let listed = store.list(space, None, |key| {
        keys.push(key.as_bytes().to_vec());
        keys.len() < KEYS
    });
    listed.await.map_err(unread)?;
    let value = async |key: &[u8]| {
        let key = Key::new(key).expect("the store listed it");
        match store.get(space, &key).await {
            Ok(value) => Ok(Some(value)),
            Err(engine::Error::KeyNotFound) => Ok(None),
            Err(error) => Err(unread(error)),
        }
    };
    check_keys(target, &keys, value).await
}

/// Refuses a namespace with pairs that no run wrote, or one that cannot list its keys. `lost`
/// returns the error of a lost connection, if the connection was lost.
pub(super) async fn check_pairs(
    target: &str,
    queue: &impl Queue,
    nsid: u32,
    lost: impl Fn() -> Option<Failure>,
) -> Result<(), Failure> {
    let unread = |error: PairsError| lost().unwrap_or_else(|| untold(target, &error.to_string()));
    let pairs = Pairs::new(queue.clone(), nsid);
    let listed = pairs.first_keys().await.map_err(unread)?;
    let keys: Vec<Vec<u8>> = listed.iter().map(|key| key.as_bytes().to_vec()).collect();
    let value = async |key: &[u8]| {
        let key = Key::new(key).expect("the target listed it");
        match pairs.retrieve(&key).await {
            Ok(value) => Ok(Some(value)),
            Err(PairsError::Status(Status::KEY_DOES_NOT_EXIST)) => Ok(None),
            Err(error) => Err(unread(error)),
        }
    };
    check_keys(target, &keys, value).await
}

/// Refuses a database of a Redis server that holds keys no run wrote, or a server that cannot list
/// its keys.
pub(super) async fn check_database(uri: &Uri, server: &Connection<Line>) -> Result<(), Failure> {
    let target = &uri.to_string();
    let ask = async |args: &[Arg<'_>]| {
        let reply = server.ask(args).await.map_err(|error| redis::broken(uri, &error))?;
        match reply.error() {
            None => Ok(reply),
            Some(said) => Err(untold(target, said)),
        }
    };
    if ask(&["DBSIZE".into()]).await?.integer() == Some(0) {
        return Ok(());
    }
    let value = async |key: &[u8]| match ask(&["GET".into(), key.into()]).await {
        Ok(Reply::Bulk(value)) => Ok(Some(value)),
        Ok(Reply::Null) => Ok(None),
        // The key is not a string.
        Ok(_) | Err(Failure::Refused(_)) => Ok(Some(Buf::copy_from(&[]))),
        Err(failure) => Err(failure),
    };
    let mut cursor = "0".to_owned();
    for _ in 0..SCANS {
        let count = KEYS.to_string();
        let reply = ask(&["SCAN", &cursor, "COUNT", &count].map(Arg::from)).await?;
        let Some((next, keys)) = page(&reply) else {
            return Err(untold(target, "an answer to SCAN that has no keys"));
        };
        if !keys.is_empty() {
            return check_keys(target, &keys, value).await;
        }
        if next == "0" {
            break;
        }
        cursor = next;
    }
    Ok(())
}

/// Parses the next cursor and the keys of a SCAN reply.
fn page(reply: &Reply) -> Option<(String, Vec<Vec<u8>>)> {
    let [cursor, keys] = reply.members()? else { return None };
    let cursor = String::from_utf8(cursor.bytes()?.to_vec()).ok()?;
    let keys = keys.members()?.iter().filter_map(Reply::bytes).map(<[u8]>::to_vec);
    Some((cursor, keys.collect()))
}

/// Returns the error for a target that does not list its keys, with what it `said` instead.
fn untold(target: &str, said: &str) -> Failure {
    Failure::Refused(format!(
        "{target} does not tell whether it holds data that kvasir bench did not write: {said}; \
         --overwrite has bench write there nevertheless"
    ))
}

/// Refuses keys that no run wrote. `value` reads a key that a run may have written.
async fn check_keys(
    target: &str,
    keys: &[Vec<u8>],
    value: impl AsyncFn(&[u8]) -> Result<Option<Buf>, Failure>,
) -> Result<(), Failure> {
    let mut values = 0;
    for key in keys {
        let mut is_foreign = !Keys::may_be_of_a_run(key);
        if !is_foreign && key.len() < TELLING_KEY_BYTES && values < VALUES {
            values += 1;
            let value = value(key).await?;
            is_foreign = value.is_some_and(|it| !is_generated(it.bytes().unwrap_or_default()));
        }
        if is_foreign {
            return Err(refusal(target, &format!("the key \"{}\"", shown_key(key))));
        }
    }
    Ok(())
}

/// Refuses a namespace with this many blocks if it holds blocks that no run wrote. `lost` returns
/// the error of a lost connection, if the connection was lost.
pub(super) async fn check_blocks(
    target: &str,
    queue: &impl Queue,
    (nsid, blocks): (u32, u64),
    lost: impl Fn() -> Option<Failure>,
) -> Result<(), Failure> {
    let blocks = looked_at(blocks);
    let mut first = None;
    for &block in &blocks {
        let command = Command::read(nsid, block, 1);
        let id = queue.submit(Submission { command, long_key: None, data: Buf::phantom(0, 0) });
        first.get_or_insert(id);
    }
    let mut foreign: Option<u64> = None;
    for _ in &blocks {
        let completion = queue.next().await;
        let place = completion.id - first.expect("something was submitted");
        let block = blocks[usize::try_from(place).expect("as many as there are blocks")];
        let bytes = completion.data.bytes().unwrap_or_default();
        match completion.status {
            Status::SUCCESS if bytes.iter().all(|&byte| byte == 0) || is_generated(bytes) => {}
            Status::SUCCESS => foreign = Some(foreign.map_or(block, |other| other.min(block))),
            status => {
                return Err(lost().unwrap_or_else(|| {
                    Failure::Broken(format!("{target}: block {block} cannot be read: {status}"))
                }));
            }
        }
    }
    match foreign {
        None => Ok(()),
        Some(block) => {
            let byte = block * u64::from(BLOCK_BYTES);
            Err(refusal(target, &format!("block {block}, which begins at byte {byte}")))
        }
    }
}

/// Returns the block numbers of the sample, in order.
fn looked_at(blocks: u64) -> Vec<u64> {
    let ends = (0..BLOCKS_AT_ENDS).flat_map(|at| [at, blocks.saturating_sub(at + 1)]);
    let between = (1..=BLOCKS_BETWEEN).map(|at| {
        let place = u128::from(blocks) * u128::from(at) / u128::from(BLOCKS_BETWEEN + 1);
        u64::try_from(place).expect("it is below their number")
    });
    let all: BTreeSet<u64> = ends.chain(between).filter(|&block| block < blocks).collect();
    all.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use node::{Device, FaultPlan, Profile};
    use reactor::Reactor;
    use workload::{Payload, ValueGenerator};

    /// The message for a namespace with written blocks, by the blocks that were written.
    fn judged_blocks(written: &[(u64, &[u8])]) -> Option<String> {
        let text = include_str!("../../tests/black_box/blocks.toml");
        let profile = Profile::parse("blocks", text).unwrap();
        let (nsid, blocks) = (2, profile.namespaces[1].size_bytes / u64::from(BLOCK_BYTES));
        let mut reactor = Reactor::new(None);
        let cells = Device::manufacture(&profile, 1);
        let formatted = Device::format(&profile, cells, 1, FaultPlan::default());
        let device = reactor.run(formatted).unwrap();
        let queue = device.controller().queue_pair();
        let judged = reactor.run(async {
            for (block, bytes) in written {
                let command = Command::write(nsid, *block, 1);
                let data = Buf::copy_from(bytes);
                queue.submit(Submission { command, long_key: None, data });
                assert!(queue.next().await.status.is_success());
            }
            check_blocks("t", &queue, (nsid, blocks), || None).await
        });
        judged.err().map(|failure| failure.to_string())
    }

    #[test]
    fn a_block_of_others_is_found_where_file_systems_begin_and_end() {
        let own = ValueGenerator::new(1, Payload::Full).value(2, 0, 8_192);
        let own = own.bytes().unwrap();
        assert_eq!(judged_blocks(&[]), None);
        let zeros = [0; 4_096];
        assert_eq!(judged_blocks(&[(0, &own[..4_096]), (1, &own[4_096..]), (5, &zeros)]), None);
        let mut other = zeros;
        other[1_080] = 0x53;
        for block in [0, 31] {
            let refusal = judged_blocks(&[(0, &own[..4_096]), (block, &other)]).unwrap();
            let byte = block * 4_096;
            let place = format!("as block {block}, which begins at byte {byte}; --overwrite");
            assert!(refusal.contains(&place), "{refusal}");
        }
    }

    #[test]
    fn the_sample_has_both_ends_and_the_middle() {
        let large = looked_at(1 << 40);
        assert_eq!(large.len(), 128);
        assert_eq!((large[31], large[127]), (31, (1 << 40) - 1));
        assert!(large[32..96].windows(2).all(|two| (two[1] - two[0]).abs_diff((1 << 40) / 65) < 2));
        assert_eq!(looked_at(3), [0, 1, 2]);
        assert_eq!(looked_at(0), [0_u64; 0]);
    }

    #[test]
    fn a_short_key_is_judged_by_its_value() {
        let judged = |key: &[u8], value: &[u8]| {
            let value = Buf::copy_from(value);
            let read = async |_: &[u8]| Ok(Some(value.clone()));
            let judged = Reactor::new(None).run(check_keys("t", &[key.to_vec()], read));
            judged.err().map(|failure| failure.to_string())
        };
        let own = ValueGenerator::new(1, Payload::Full).value(2, 0, 100);
        let own = own.bytes().unwrap();
        let run_key = Keys::new(16, 9).unwrap().key(3);
        assert_eq!(judged(run_key.as_bytes(), b"anything"), None);
        assert_eq!(judged(b"abc", own), None);
        for (key, value) in
            [(&b"abc"[..], &b"text of a user, which is longer"[..]), (b"name", b"v")]
        {
            let refusal = judged(key, value).unwrap();
            assert!(refusal.contains("--overwrite"), "{refusal}");
        }
        assert!(judged(b"greeting", own).unwrap().contains("as the key \"greeting\";"));
    }
}
