use crate::park::{park_unaccounted, wake};
use crate::rank::Rank;
use crate::schedule::with;
use crate::stage::Stages;
use crate::task::{account, current, spawn_child, stages, start_child};
use crate::task_state::TaskId;
use std::cell::RefCell;
use std::rc::Rc;

struct Joined<T> {
    /// `None` until the parent waits.
    parent: Option<TaskId>,
    results: Vec<Option<T>>,
    missing: usize,
    /// The account of the child that finished last: the one the parent waited for.
    last: Stages,
}

/// Runs each of `futures` as a task and returns their results in order when all are done. The
/// caller's account grows by that of the child that finished last.
///
/// The children count as holding what the caller holds.
pub async fn join_all<T, F>(futures: Vec<F>) -> Vec<T>
where
    T: 'static,
    F: Future<Output = T> + 'static,
{
    let joined = Joined::of(futures.len());
    let held = held();
    for (index, future) in futures.into_iter().enumerate() {
        spawn_child(child(joined.clone(), index, future), held);
    }
    all(&joined).await
}

/// As [`join_all`], but polls each future once before it starts the next one, ahead of the tasks
/// that are ready. A future that need not wait finishes in that poll.
pub async fn join_at_once<T, F>(futures: impl ExactSizeIterator<Item = F>) -> Vec<T>
where
    T: 'static,
    F: Future<Output = T> + 'static,
{
    let joined = Joined::of(futures.len());
    let held = held();
    for (index, future) in futures.enumerate() {
        start_child(child(joined.clone(), index, future), held);
    }
    all(&joined).await
}

impl<T> Joined<T> {
    fn of(count: usize) -> Rc<RefCell<Self>> {
        let results = (0..count).map(|_| None).collect();
        let (parent, last) = (None, Stages::default());
        Rc::new(RefCell::new(Self { parent, results, missing: count, last }))
    }
}

fn held() -> u16 {
    with(|schedule| schedule.tasks[schedule.current as usize].held)
}

async fn child<T>(joined: Rc<RefCell<Joined<T>>>, index: usize, future: impl Future<Output = T>) {
    let result = future.await;
    let mut joined = joined.borrow_mut();
    joined.results[index] = Some(result);
    joined.missing -= 1;
    if joined.missing == 0 {
        joined.last = stages();
        if let Some(parent) = joined.parent {
            wake(parent);
        }
    }
}

/// Waits for all children.
async fn all<T>(joined: &RefCell<Joined<T>>) -> Vec<T> {
    if joined.borrow().missing > 0 {
        joined.borrow_mut().parent = Some(current());
        let waited = park_unaccounted(Rank::Core).await;
        let last = joined.borrow().last;
        assert_eq!(last.total(), waited, "a child's stages add up to its time");
        account(&last);
    }
    let results = std::mem::take(&mut joined.borrow_mut().results);
    results.into_iter().map(|result| result.expect("every child has finished")).collect()
}
