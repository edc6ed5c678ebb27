//! Runs independent work on all cores.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

/// Returns the number of threads that this process can run at a time.
pub(crate) fn cores() -> NonZeroUsize {
    thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// Maps `items` by `make`, in their order, on `threads` threads. Calls `done` on this thread with
/// the number of finished items, after each.
pub(crate) fn map<T: Sync, R: Send>(
    items: &[T],
    threads: NonZeroUsize,
    make: impl Fn(&T) -> R + Sync,
    mut done: impl FnMut(u64),
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let take = || {
        let at = next.fetch_add(1, Ordering::Relaxed);
        items.get(at).map(|item| (at, item))
    };
    let mut results: Vec<Option<R>> = items.iter().map(|_| None).collect();
    let (sender, made) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..threads.get().min(items.len()) {
            let (sender, take, make) = (sender.clone(), &take, &make);
            scope.spawn(move || {
                while let Some((at, item)) = take() {
                    sender.send((at, make(item))).expect("the receiver outlives the threads");
                }
            });
        }
        drop(sender);
        for (count, (at, result)) in (1..).zip(made) {
            results[at] = Some(result);
            done(count);
        }
    });
    let result = |result: Option<R>| result.expect("a thread that does not end makes all panic");
    results.into_iter().map(result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    #[test]
    fn results_are_in_the_order_of_the_items_on_any_number_of_threads() {
        for threads in [1, 2, 7, 200] {
            let items: Vec<u64> = (0..100).collect();
            let mut counts = Vec::new();
            let threads = NonZeroUsize::new(threads).unwrap();
            let squares = map(&items, threads, |item| item * item, |count| counts.push(count));
            assert_eq!(squares, items.iter().map(|item| item * item).collect::<Vec<_>>());
            assert_eq!(counts, (1..=100).collect::<Vec<_>>());
        }
        assert!(map(&[0_u8; 0], cores(), |item| *item, |_| ()).is_empty());
    }

    #[test]
    fn so_many_are_made_at_a_time() {
        let together = Barrier::new(4);
        // One thread alone would wait forever.
        let made = map(&[0; 8], NonZeroUsize::new(4).unwrap(), |_| together.wait(), |_| ());
        assert_eq!(made.iter().filter(|result| result.is_leader()).count(), 2);
    }
}
