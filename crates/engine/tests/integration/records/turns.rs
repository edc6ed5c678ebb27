//! What the cleaner does between two turns of another task in real time.

use crate::records::rig::{SPACES, beside, config, key, shape, value};
use base::Rng;
use engine::{Ack, Store, Write};
use media::{Media, Memory};
use reactor::{Reactor, Remote};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

const WRITERS: u64 = 32;
const KEYS: u64 = 900;

/// Copiers of a medium of four dies may each have a piece between two turns, and one of them has
/// the rest of another piece.
const MOVED_MAX: u64 = 5 * 16;

async fn overwrite(store: Arc<Store>, writer: u64) {
    let mut rng = Rng::fork(writer, 1);
    for version in 0..400 {
        let (key, value) = (key(5 * rng.below(KEYS)), value(20, version));
        let put = store.put(SPACES[0], &key, &value, Write::default(), store.announce());
        put.await.expect("there is room");
    }
}

/// Gives way until all `outcomes` are there. Returns the most records that the cleaner has moved
/// between two of its turns.
async fn watch(store: &Store, outcomes: &[Rc<RefCell<Option<()>>>]) -> u64 {
    let (mut before, mut most) = (store.counters().records_moved, 0);
    while outcomes.iter().any(|outcome| outcome.borrow().is_none()) {
        clock::give_way().await;
        let now = store.counters().records_moved;
        most = most.max(now - before);
        before = now;
    }
    most
}

#[test]
fn the_cleaner_works_in_short_pieces_while_stores_wait_for_room() {
    let shape = shape(1_024, 64);
    let work = async move {
        let medium: Arc<dyn Media> = Arc::new(Memory::new(shape));
        let store = Store::format(medium, config(shape, Ack::Program));
        store.create_key_space(SPACES[0]).await.expect("there is room");
        let writers: Vec<_> =
            (0..WRITERS).map(|writer| beside(overwrite(store.clone(), writer))).collect();
        (watch(&store, &writers).await, store.counters().records_moved)
    };
    let served = Reactor::new(None).serve(&Remote::new().expect("a remote"), work);
    let (most, moved) = served.expect("it runs").0;
    assert!(moved > 1_000, "{moved} records were moved");
    assert!(most <= MOVED_MAX, "{most} records were moved between two turns");
}
