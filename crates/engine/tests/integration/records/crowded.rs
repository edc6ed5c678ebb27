//! More writers at once than there is room for: all but one wait for the cleaner.

use crate::records::medium::Wary;
use crate::records::rig::{SPACES, beside, format, key, rest, shape, store_one, value};
use base::Rng;
use engine::{Ack, Error, Store, Write};
use reactor::Reactor;
use std::sync::Arc;

const WRITERS: u64 = 48;
/// Of each writer.
const KEYS: u64 = 2;

/// Overwrites and deletes keys of one's own.
async fn write(store: Arc<Store>, writer: u64) -> Result<(), Error> {
    let mut rng = Rng::fork(writer, 1);
    for version in 0..40 {
        let key = key(writer + WRITERS * rng.below(KEYS));
        let announced = store.announce();
        if rng.below(4) == 0 {
            match store.delete(SPACES[0], &key, announced).await {
                Ok(()) | Err(Error::KeyNotFound) => {}
                Err(error) => return Err(error),
            }
        } else {
            let len = u32::try_from(rng.below(3_000)).expect("it is small");
            store.put(SPACES[0], &key, &value(len, version), Write::default(), announced).await?;
        }
    }
    Ok(())
}

#[test]
fn any_number_of_writers_wait_for_space_that_cleaning_can_free() {
    for seed in 0..20 {
        let medium = Arc::new(Wary::new(shape(1_024, 64)));
        Reactor::new(Some(seed)).run(async {
            let store = format(&medium, Ack::Program).await;
            store_one(&store, SPACES[0], 0, &value(100, 0)).await;
            // The cleaner has found that there is nothing to do.
            rest().await;
            let outcomes: Vec<_> =
                (0..WRITERS).map(|writer| beside(write(store.clone(), writer))).collect();
            while outcomes.iter().any(|outcome| outcome.borrow().is_none()) {
                rest().await;
            }
            for outcome in outcomes {
                assert_eq!(*outcome.borrow(), Some(Ok(())), "seed {seed}");
            }
        });
        assert!(medium.resets() > 0, "nothing was cleaned");
    }
}
