//! Table pages and pages of records that are lost while a store is being opened, one or many.

use crate::cached_hash::medium::{Lost, Slow};
use crate::cached_hash::model::{Model, Plan, SPACE, check, counted, run_clients, shape};
use engine::{Error, How, Live, Recovery, Store};
use media::ExtentId;
use reactor::Reactor;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// How a store was opened, and its counts then.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Found {
    how: How,
    counted: (Live, u64),
    live: Vec<(ExtentId, Live)>,
}

/// A medium as a loss of power leaves it, and the acknowledged writes.
#[derive(Clone)]
struct Cut {
    plan: Plan,
    media: Rc<Slow>,
    model: Model,
}

impl Cut {
    /// Returns the state after two lives, both with checkpoints or both without. In the second the
    /// cleaner is at work.
    fn after(plan: Plan) -> Self {
        let media = Arc::new(Slow::new(shape(plan.spare_bytes), plan.seed));
        let model = Rc::new(RefCell::new(Model::new()));
        Reactor::new(Some(plan.seed)).run(async {
            let store = Store::format(media.clone(), plan.config());
            store.create_key_space(SPACE).await.unwrap();
            run_clients(&store, plan, &model).await;
        });
        let plan = Plan { seed: plan.seed + 1_000, ..plan };
        Reactor::new(Some(plan.seed)).run(async {
            let (store, _) = Store::open(media.clone(), plan.config()).await.unwrap();
            run_clients(&store, plan, &model).await;
        });
        let model = model.borrow().clone();
        let media = Reactor::new(None).run(async { media.remains(plan.seed).await });
        Self { plan, media: Rc::new(media), model }
    }

    /// Opens the store while reads lose pages, and then calls `then`.
    fn open<T>(
        &self,
        lost: Lost,
        then: impl AsyncFnOnce(&Arc<Store>, Recovery, &Slow) -> T,
    ) -> (Found, T) {
        Reactor::new(Some(self.plan.seed)).run(async {
            let media = Arc::new(self.media.remains(self.plan.seed).await);
            media.lose(lost);
            let (store, recovery) = Store::open(media.clone(), self.plan.config()).await.unwrap();
            let mut live = store.live_by_extent();
            live.retain(|(_, live)| live.records > 0);
            let found = Found { how: recovery.how, counted: counted(store.usage()), live };
            media.lose(Lost::None);
            let then = then(&store, recovery, &media).await;
            (found, then)
        })
    }
}

fn plans() -> impl Iterator<Item = Plan> {
    let small = |plan: &Plan| Plan { dram_bytes: 0, buffered: false, clients: 12, ..*plan };
    (0..6).map(move |seed| {
        let checkpoint_bytes = [0, 300 << 10, 60 << 10][usize::try_from(seed % 3).unwrap()];
        Plan { checkpoint_bytes, operations: 120, ..small(&Plan::of(seed)) }
    })
}

/// Whichever table page is lost while opening, the store has the same content and the same counts
/// for each extent.
#[test]
fn a_table_page_that_is_lost_while_opening_changes_nothing() {
    let mut reads_lost = 0;
    for plan in plans() {
        let cut = Cut::after(plan);
        let (whole, reads) = cut.open(Lost::None, async |_, _, media| media.table_reads());
        let every = |step: u64| (0..reads).step_by(usize::try_from(step.max(1)).unwrap());
        let ones = every(reads / 15).map(Lost::Nth);
        let many = [2, 3, 7, 40, 200].map(Lost::OneOf);
        for lost in ones.chain(many) {
            let (found, pages) = cut.open(lost, async |store, recovery, media| {
                assert_eq!(recovery.lost_pages, 0, "{plan:?} {lost:?}");
                media.lose(Lost::OneOf(9));
                let model = Rc::new(RefCell::new(cut.model.clone()));
                check(store, plan, &model).await;
                run_clients(store, plan, &model).await;
                check(store, plan, &model).await;
                media.pages_lost()
            });
            assert_eq!(found.counted, whole.counted, "{plan:?} {lost:?}");
            if found.how == whole.how {
                assert_eq!(found, whole, "{plan:?} {lost:?}: by extent");
            }
            reads_lost += pages.0;
        }
    }
    assert!(reads_lost > 1_000, "{reads_lost} were lost");
}

/// Checks that each acknowledged key has its value, or an error if its own record is lost. Returns
/// the number of lost ones.
async fn unreadable(store: &Arc<Store>, model: &Model, what: &str) -> u64 {
    let mut unreadable = 0;
    for (key, content) in model {
        match store.get(SPACE, key).await {
            Ok(value) => assert_eq!((value.len(), value.checksum()), *content, "{what}: {key:?}"),
            Err(Error::Unrecovered) => unreadable += 1,
            Err(error) => panic!("{what}: {error} for {key:?}"),
        }
    }
    unreadable
}

/// Pages of both kinds are lost: the store opens and loses only the keys whose records are lost. No
/// key goes back to an older value, then or after the next loss of power.
#[test]
fn pages_of_tables_and_records_that_are_lost_while_opening_cost_their_own_keys_only() {
    let (mut tables_lost, mut records_lost, mut excused) = (0, 0, 0);
    for plan in plans() {
        let cut = Cut::after(plan);
        for (number, (tables, records)) in
            [(50, 300), (20, 1_000), (7, 3_000), (1_000, 100)].repeat(3).into_iter().enumerate()
        {
            let what = format!("{plan:?}, one of {tables} and {records}, number {number}");
            let cut = Cut { plan: Plan { seed: plan.seed + number as u64, ..plan }, ..cut.clone() };
            let (_, (media, lost)) =
                cut.open(Lost::OneOfEach(tables, records), async |store, recovery, media| {
                    media.lose(Lost::OneOf(tables));
                    let lost = recovery.lost_pages;
                    if lost == 0 {
                        let keys = unreadable(store, &cut.model, &what).await;
                        let pages = media.pages_lost().1;
                        assert!(keys <= 8 * pages, "{what}: {keys} keys with {pages} pages");
                    }
                    let live: u64 = store.live_by_extent().iter().map(|(_, live)| live.bytes).sum();
                    assert_eq!(store.usage().values.bytes, live, "{what}");
                    let (of_tables, of_records) = media.pages_lost();
                    tables_lost += of_tables;
                    records_lost += of_records;
                    (media.remains(plan.seed).await, lost)
                });
            if lost > 0 {
                excused += 1;
                continue;
            }
            let again = Cut { media: Rc::new(media), ..cut.clone() };
            // A page lost at the end of its block looks torn by now, so that older values may be
            // back; it opens all the same.
            again.open(Lost::None, async |_, _, _| ());
        }
    }
    assert!(tables_lost > 1_000 && records_lost > 100, "{tables_lost} and {records_lost} lost");
    assert!(excused < 40, "{excused} have lost pages of extents without a summary");
}
