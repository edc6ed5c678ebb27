//! Trees against a map of the standard library, and what is left of collections that are gone.

use super::{Collection, Entry, Kind, Nodes, node_key};
use crate::door::Door;
use crate::hidden;
use crate::transaction::tests::{SPACE, door, key};
use crate::users::Users;
use base::{Buf, Nanos, Rng, mix};
use clock::{Stage, UnixMillis, set_unix_now, unix_now};
use engine::Error;
use reactor::Reactor;
use std::collections::{BTreeMap, BTreeSet};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Names that share what they begin with, of any length.
fn name(rng: &mut Rng) -> Vec<u8> {
    let number = rng.below(400);
    let width = usize::try_from(number % 7).unwrap() * 35;
    format!("{number:0>width$}").into_bytes()
}

fn bytes(rng: &mut Rng) -> Vec<u8> {
    let len = if rng.below(40) == 0 { rng.below(9_000) } else { rng.below(120) };
    vec![b'v'; usize::try_from(len).unwrap()]
}

/// Does `does` to the hash "h" as one step.
async fn with<T>(door: &Door, does: impl AsyncFnOnce(&mut Collection, &mut Nodes<'_>) -> T) -> T {
    door.store().ensure_key_space(hidden::roots(SPACE)).await.unwrap();
    let mut transaction = door.transaction();
    let hash = Collection::open(&mut transaction, SPACE, &key("h")).await.unwrap();
    let mut hash = hash.unwrap_or_else(|| Collection::new(Kind::Hash));
    let at = key("h");
    let done = does(&mut hash, &mut Nodes::new(&mut transaction, SPACE, &at)).await;
    hash.save(&mut transaction, SPACE, &at).await.unwrap();
    transaction.commit().await.unwrap();
    done
}

async fn change(door: &Door, rng: &mut Rng, model: &mut Model) {
    let (shrinks, changes) = (rng.below(3) == 0, rng.below(30));
    with(door, async |hash, nodes| {
        for _ in 0..changes {
            let name = name(rng);
            if shrinks {
                let removed = hash.trees[0].remove(nodes, &name).await.unwrap();
                assert_eq!(removed.map(|buf| buf.bytes().unwrap().to_vec()), model.remove(&name));
            } else {
                let value = bytes(rng);
                let entry = Entry { key: Buf::copy_from(&name), value: Buf::copy_from(&value) };
                let before = hash.trees[0].insert(nodes, entry).await.unwrap();
                let before = before.map(|buf| buf.bytes().unwrap().to_vec());
                assert_eq!(before, model.insert(name, value));
            }
        }
    })
    .await;
}

fn plain(entries: Vec<Entry>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let plain = |buf: Buf| buf.bytes().unwrap().to_vec();
    entries.into_iter().map(|entry| (plain(entry.key), plain(entry.value))).collect()
}

async fn check(door: &Door, rng: &mut Rng, model: &Model) {
    let (from, count) = (rng.below(450), rng.below(100));
    let name = name(rng);
    with(door, async |hash, nodes| {
        let tree = &mut hash.trees[0];
        assert_eq!(tree.len(), model.len() as u64);
        let value = tree.get(nodes, &name).await.unwrap();
        assert_eq!(value.map(|buf| buf.bytes().unwrap().to_vec()).as_ref(), model.get(&name));
        let rank = tree.rank(nodes, &name).await.unwrap();
        assert_eq!(rank, model.range(..name).count() as u64);
        let slice = tree.slice(nodes, from, count).await.unwrap();
        let all = model.clone().into_iter();
        let (from, count) = (usize::try_from(from).unwrap(), usize::try_from(count).unwrap());
        assert_eq!(plain(slice), all.skip(from).take(count).collect::<Vec<_>>());
    })
    .await;
}

/// How many nodes can be found from the root, and how many there are.
async fn nodes_of(door: &Door) -> [usize; 2] {
    let mut transaction = door.transaction();
    let root = Collection::open(&mut transaction, SPACE, &key("h")).await.unwrap();
    let trees = root.map(|root| root.trees).unwrap_or_default();
    let mut left: Vec<_> = trees.iter().flat_map(super::Tree::children).collect();
    let mut found = 0;
    while let Some((height, id)) = left.pop() {
        found += 1;
        let node = door.store().get(hidden::nodes(SPACE), &node_key(id)).await.unwrap();
        left.extend(super::children_of(&node).into_iter().map(|id| (height - 1, id)));
    }
    [found, stored(door).await]
}

async fn stored(door: &Door) -> usize {
    let mut count = 0;
    let take = |_: &base::Key| {
        count += 1;
        true
    };
    match door.store().list(hidden::nodes(SPACE), None, take).await {
        Ok(()) | Err(Error::NoKeySpace) => count,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_tree_is_an_ordered_map_and_keeps_no_node_that_is_not_its_own() {
    for seed in 0..12 {
        Reactor::new(None).run(async {
            let (door, mut rng, mut model) = (door().await, Rng::new(mix(seed)), Model::new());
            let mut most = 0;
            for _ in 0..60 {
                change(&door, &mut rng, &mut model).await;
                check(&door, &mut rng, &model).await;
                let [found, there] = nodes_of(&door).await;
                assert_eq!(found, there, "seed {seed}");
                most = most.max(found);
            }
            assert!(most > 10, "seed {seed}: it was never more than {most} nodes");
            with(&door, async |hash, nodes| {
                for name in model.keys() {
                    hash.trees[0].remove(nodes, name).await.unwrap();
                }
            })
            .await;
            assert_eq!(nodes_of(&door).await, [0, 0]);
            assert_eq!(door.store().key_count(hidden::roots(SPACE)), Ok(0));
        });
    }
}

/// A scan returns the members that exist from its first step to its last, whatever is added and
/// removed between its steps.
#[test]
fn a_scan_in_steps_meets_all_that_stays() {
    let mut steps = 0;
    for seed in 0..60 {
        Reactor::new(None).run(async {
            let (door, mut rng, mut model) = (door().await, Rng::new(mix(seed)), Model::new());
            for _ in 0..20 {
                change(&door, &mut rng, &mut model).await;
            }
            let is_kept = |name: &Vec<u8>| name.last().is_some_and(|digit| digit % 5 == 0);
            let mut stays: BTreeSet<_> =
                model.keys().filter(|name| is_kept(name)).cloned().collect();
            let (mut met, mut cursor) = (BTreeSet::new(), 0);
            loop {
                let step = async |hash: &mut Collection, nodes: &mut Nodes<'_>| {
                    hash.trees[0].step(nodes, cursor, 1).await.unwrap()
                };
                let (entries, next) = with(&door, step).await;
                met.extend(plain(entries).into_iter().map(|(name, _)| name));
                let Some(next) = next else { break };
                cursor = next;
                steps += 1;
                with(&door, async |hash, nodes| {
                    for _ in 0..60 {
                        let name = name(&mut rng);
                        if !is_kept(&name) {
                            model.remove(&name);
                            hash.trees[0].remove(nodes, &name).await.unwrap();
                        }
                    }
                })
                .await;
                let grows = rng.below(5);
                if grows == 0 {
                    change(&door, &mut rng, &mut model).await;
                }
                stays.retain(|name| model.contains_key(name));
            }
            let missed = stays.difference(&met).count();
            assert_eq!(missed, 0, "seed {seed}: of {}", stays.len());
        });
    }
    assert!(steps > 100, "{steps} steps are too few");
}

/// Three hundred fields.
async fn fill(door: &Door) {
    with(door, async |hash, nodes| {
        for number in 0..300 {
            let name = Buf::copy_from(format!("field {number}").as_bytes());
            let entry = Entry { key: name.clone(), value: name };
            hash.trees[0].insert(nodes, entry).await.unwrap();
        }
    })
    .await;
    assert!(stored(door).await > 2);
}

/// Opens the store of `door` once more.
async fn reopen(door: &Door) -> Door {
    let (settings, pool) = (*door.settings(), door.pool().clone());
    let door = Door::new(door.store().clone(), Users::default(), settings, pool);
    door.prepare().await.unwrap();
    door
}

async fn tend(door: Door) {
    let door = std::rc::Rc::new(door);
    let tended = door.clone();
    clock::spawn(async move { tended.tend().await });
    clock::sleep(Nanos::from_secs(3), Stage::Queue).await;
    door.close().await;
}

#[test]
fn what_is_below_a_root_that_is_gone_is_removed_also_after_a_restart() {
    for expires in [false, true] {
        Reactor::new(None).run(async {
            let door = door().await;
            fill(&door).await;
            let mut transaction = door.transaction();
            let opened = Collection::open(&mut transaction, SPACE, &key("h")).await.unwrap();
            let mut hash = opened.unwrap();
            if expires {
                hash.expires = Some(UnixMillis(unix_now().0 + 5_000));
                hash.save(&mut transaction, SPACE, &key("h")).await.unwrap();
            } else {
                hash.discard(&mut transaction, SPACE, &key("h")).await.unwrap();
            }
            transaction.commit().await.unwrap();
            assert!(stored(&door).await > 2, "they are not removed yet");
            let door = reopen(&door).await;
            if expires {
                tend(reopen(&door).await).await;
                assert!(stored(&door).await > 2, "its time has not come");
                set_unix_now(UnixMillis(unix_now().0 + 4_000));
            }
            tend(reopen(&door).await).await;
            assert_eq!(nodes_of(&door).await, [0, 0]);
            assert_eq!(door.store().key_count(hidden::NOTES), Ok(1), "the next number alone");
        });
    }
}

#[test]
fn emptying_a_database_continues_after_a_restart() {
    Reactor::new(None).run(async {
        let door = door().await;
        fill(&door).await;
        // As it is when the roots are gone and the nodes are not.
        let note = base::Key::new(b"e\x01\x00").unwrap();
        let (store, write) = (door.store(), engine::Write::default());
        let nothing = Buf::copy_from(&[]);
        store.put(hidden::NOTES, &note, &nothing, write, store.announce()).await.unwrap();
        store.delete_key_space(hidden::roots(SPACE)).await.unwrap();
        assert!(stored(&door).await > 2);
        let door = reopen(&door).await;
        assert_eq!(nodes_of(&door).await, [0, 0]);
        fill(&door).await;
        let door = reopen(&door).await;
        assert!(nodes_of(&door).await[0] > 2, "it is emptied once");
    });
}
