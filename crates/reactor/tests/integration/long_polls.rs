//! Polls that take long, and under which names they are counted.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use base::Nanos;
use clock::Stage;
use reactor::{LONG_POLL, LongPolls, Reactor, Remote, thread_cpu};
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

const MILLISECOND: Duration = Duration::from_millis(1);

/// Uses `time` of this thread's CPU time.
fn burn(time: Duration) {
    let spent = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap();
    let until = spent() + time;
    while spent() < until {}
}

async fn pause() {
    clock::sleep(Nanos::from_micros(300), Stage::Queue).await;
}

/// Returns the long polls of a reactor that is served for `root`.
fn long_polls(root: impl Future<Output = ()>) -> Vec<LongPolls> {
    let remote = Remote::new().unwrap();
    Reactor::new(None).serve(&remote, root).unwrap();
    remote.long_polls()
}

fn of<'a>(all: &'a [LongPolls], name: &str) -> Option<&'a LongPolls> {
    all.iter().find(|it| it.name == name)
}

#[test]
fn polls_that_use_the_cpu_for_long_are_counted_under_the_name_of_their_task() {
    let all = long_polls(async {
        clock::spawn(async {
            clock::name_task("burner");
            for time in [MILLISECOND, 3 * MILLISECOND, MILLISECOND / 100] {
                burn(time);
                pause().await;
            }
        });
        clock::join_all((0..3).map(|_| pause()).collect()).await;
        clock::sleep(Nanos::from_millis(20), Stage::Queue).await;
    });
    let burner = of(&all, "burner").expect("it burnt");
    assert_eq!(burner.count, 2, "{all:?}");
    let (longest, total) = (burner.longest.0, burner.total.0);
    // Readings of the CPU clock are up to 200 us old.
    assert!((2_800_000..8_000_000).contains(&longest), "{all:?}");
    assert!((longest + 800_000..2 * longest).contains(&total), "{all:?}");
}

#[test]
fn time_in_which_a_thread_does_not_run_is_not_counted() {
    // The system charges a thread with interrupts, and with time that other virtual machines have
    // its processor, so a sleep can cost CPU time.
    let mut charged = 0;
    let all = long_polls(async {
        clock::name_task("sleeper");
        for _ in 0..20 {
            let before = thread_cpu();
            std::thread::sleep(MILLISECOND);
            charged += u64::from(thread_cpu() - before > Nanos(LONG_POLL.0 / 2));
            pause().await;
            // The CPU time of others' polls is not that of this one.
            clock::spawn(async {
                clock::name_task("burner");
                burn(MILLISECOND);
            });
            pause().await;
        }
    });
    let counted = of(&all, "sleeper").map_or(0, |sleeper| sleeper.count);
    assert!(counted <= charged, "{charged}, {all:?}");
    assert!(charged < 20, "a thread that sleeps was charged each time");
    assert!(of(&all, "burner").is_some_and(|burner| burner.count == 20), "{all:?}");
}

#[test]
fn tasks_have_the_name_of_the_task_that_spawned_them() {
    let all = long_polls(async {
        clock::name_task("parent");
        let child = async {
            burn(MILLISECOND);
            clock::name_task("child");
            pause().await;
            burn(MILLISECOND);
        };
        clock::spawn(child);
        pause().await;
        clock::join_all((0..1).map(|_| async { burn(MILLISECOND) }).collect()).await;
        clock::sleep(Nanos::from_millis(5), Stage::Queue).await;
    });
    let counts: Vec<_> = all.iter().map(|it| (it.name, it.count)).collect();
    // The poll of a task counts under the name that it has at its end.
    assert_eq!(counts, [("child", 2), ("parent", 1)], "{all:?}");
    assert!(all.iter().all(|it| it.longest > LONG_POLL));
}

#[test]
fn a_task_without_a_name_is_another() {
    let all = long_polls(async {
        burn(MILLISECOND);
        pause().await;
    });
    assert_eq!(of(&all, "other").map(|it| it.count), Some(1), "{all:?}");
}
