//! Reactors of a model of loom, each on a thread: they poll tasks as [`Reactor`](crate::Reactor)
//! does, and wake one another's. `crate::loom_tests` checks the wake-ups of reactors that serve.

use clock::{LocalFuture, Schedule, TaskId};
use loom::sync::{Condvar, Mutex};
use std::mem::take;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// The reactors of a model.
#[derive(Clone)]
pub struct LoomPeers(Arc<[Inbox]>);

/// Tasks of a reactor that others have woken.
#[derive(Default)]
struct Inbox {
    woken: Mutex<Vec<TaskId>>,
    is_news: Condvar,
}

impl LoomPeers {
    /// Makes `reactors` of them.
    #[must_use]
    pub fn new(reactors: u32) -> Self {
        Self((0..reactors).map(|_| Inbox::default()).collect())
    }

    /// Runs `root` to its end as reactor `number`, and then all that it has spawned. loom reports a
    /// deadlock if a task waits for ever.
    pub fn run<T>(&self, number: u32, root: impl Future<Output = T>) -> T {
        let (mut schedule, all) = (Box::new(Schedule::new(None)), self.0.clone());
        schedule.join_peers(number, Box::new(move |task| all[task.reactor_id()].put(task)));
        let task = schedule.add_task();
        clock::install(schedule);
        let output = self.0[number as usize].drive(task, root);
        drop(clock::uninstall());
        output
    }
}

impl Inbox {
    fn put(&self, task: TaskId) {
        self.woken.lock().unwrap().push(task);
        self.is_news.notify_one();
    }

    fn wait(&self) -> Vec<TaskId> {
        let mut woken = self.woken.lock().unwrap();
        while woken.is_empty() {
            woken = self.is_news.wait(woken).unwrap();
        }
        take(&mut *woken)
    }

    fn drive<T>(&self, root_task: TaskId, root: impl Future<Output = T>) -> T {
        let (mut root, mut context) = (pin!(root), Context::from_waker(Waker::noop()));
        let mut tasks: Vec<(TaskId, LocalFuture<'static, ()>)> = Vec::new();
        let (mut output, mut finished) = (None, None);
        loop {
            let next = clock::turn(finished.take(), &mut tasks);
            let Some(task) = next else {
                if tasks.is_empty()
                    && let Some(output) = output
                {
                    return output;
                }
                self.wait().into_iter().for_each(clock::wake);
                continue;
            };
            if task == root_task {
                if let Poll::Ready(ready) = root.as_mut().poll(&mut context) {
                    (output, finished) = (Some(ready), Some(task));
                }
            } else {
                let at = tasks.iter().position(|(id, _)| *id == task).expect("it was spawned");
                if tasks[at].1.as_mut().poll(&mut context).is_ready() {
                    drop(tasks.swap_remove(at));
                    finished = Some(task);
                }
            }
        }
    }
}

/// Checks `model` in all orders, or in those in which threads are preempted at most `preemptions`
/// times.
pub fn check_by_loom(preemptions: Option<usize>, model: fn()) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.max_branches = 10_000;
    builder.check(model);
}
