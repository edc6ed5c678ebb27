//! Reactors of a model, each on a thread: they poll tasks as `reactor::Reactor` does, and wake one
//! another's. The way there of reactors that serve is checked in `reactor`.

use crate::sync::Mutex;
use clock::{LocalFuture, Schedule, TaskId};
use loom::sync::Condvar;
use std::mem::take;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// Tasks of a reactor that others have woken.
#[derive(Default)]
pub(super) struct Inbox {
    woken: Mutex<Vec<TaskId>>,
    is_news: Condvar,
}

impl Inbox {
    fn put(&self, task: TaskId) {
        self.woken.lock().unwrap().push(task);
        self.is_news.notify_one();
    }

    /// Waits for tasks. loom reports it if none can come.
    fn wait(&self) -> Vec<TaskId> {
        let mut woken = self.woken.lock().unwrap();
        while woken.is_empty() {
            woken = self.is_news.wait(woken).unwrap();
        }
        take(&mut *woken)
    }
}

pub(super) fn inboxes(reactors: u32) -> Arc<[Inbox]> {
    (0..reactors).map(|_| Inbox::default()).collect()
}

/// Runs `root` to its end as reactor `number`, and then all that it has spawned.
pub(super) fn run<T>(inboxes: &Arc<[Inbox]>, number: u32, root: impl Future<Output = T>) -> T {
    let (mut schedule, all) = (Box::new(Schedule::new(None)), inboxes.clone());
    schedule.join_peers(number, Box::new(move |task| all[task.reactor_id()].put(task)));
    let task = schedule.add_task();
    clock::install(schedule);
    let output = drive(&inboxes[number as usize], task, root);
    drop(clock::uninstall());
    output
}

fn drive<T>(inbox: &Inbox, root_task: TaskId, root: impl Future<Output = T>) -> T {
    let (mut root, mut context) = (pin!(root), Context::from_waker(Waker::noop()));
    let (mut tasks, mut output): (Vec<(TaskId, LocalFuture<'static, ()>)>, _) = (Vec::new(), None);
    let mut finished = None;
    loop {
        let next = clock::turn(finished.take(), &mut tasks);
        let Some(task) = next else {
            if tasks.is_empty()
                && let Some(output) = output
            {
                return output;
            }
            inbox.wait().into_iter().for_each(clock::wake);
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
