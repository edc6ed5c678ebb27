use crate::park::{park_unaccounted, wake};
use crate::rank::Rank;
use crate::schedule::with;
use crate::stage::Stages;
use crate::task::{TaskId, account, current, spawn_child, stages};
use std::cell::RefCell;
use std::rc::Rc;

struct Joined<T> {
    parent: TaskId,
    results: Vec<Option<T>>,
    missing: usize,
    /// The account of the child that finished last: the one the parent waited for.
    last: Stages,
}

/// Runs `futures` side by side, each as a task, and returns their results in order when the last is
/// done. The caller's account grows by that of the child that finished last.
///
/// The children count as holding what the caller holds.
pub async fn join_all<T, F>(futures: Vec<F>) -> Vec<T>
where
    T: 'static,
    F: Future<Output = T> + 'static,
{
    if futures.is_empty() {
        return Vec::new();
    }
    let joined = Rc::new(RefCell::new(Joined {
        parent: current(),
        results: futures.iter().map(|_| None).collect(),
        missing: futures.len(),
        last: Stages::default(),
    }));
    let held = with(|schedule| schedule.tasks[schedule.current as usize].held);
    for (index, future) in futures.into_iter().enumerate() {
        let joined = joined.clone();
        let child = async move {
            let result = future.await;
            finish(&joined, index, result);
        };
        spawn_child(child, held);
    }
    let waited = park_unaccounted(Rank::Core).await;
    let mut joined = joined.borrow_mut();
    assert_eq!(joined.last.total(), waited, "a child's stages add up to its time");
    account(&joined.last);
    joined.results.drain(..).map(|result| result.expect("every child has finished")).collect()
}

fn finish<T>(joined: &RefCell<Joined<T>>, index: usize, result: T) {
    let mut joined = joined.borrow_mut();
    joined.results[index] = Some(result);
    joined.missing -= 1;
    if joined.missing == 0 {
        joined.last = stages();
        wake(joined.parent);
    }
}
