use clock::{LocalFuture, Schedule, TaskId};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// An executor for one thread, in virtual time.
pub struct Reactor {
    futures: Vec<Option<LocalFuture<'static, ()>>>,
    /// `None` only while it is installed.
    schedule: Option<Box<Schedule>>,
}

/// Takes the schedule back into its reactor, also when a task panics.
struct Installed<'a>(&'a mut Option<Box<Schedule>>);

impl Drop for Installed<'_> {
    fn drop(&mut self) {
        *self.0 = Some(clock::uninstall());
    }
}

impl Reactor {
    /// A reactor whose clock stands at zero; see [`Schedule::new`] for `shuffle`.
    pub fn new(shuffle: Option<u64>) -> Self {
        Self { futures: Vec::new(), schedule: Some(Box::new(Schedule::new(shuffle))) }
    }

    /// Runs `root` to its end, and everything else as far as that takes.
    ///
    /// # Panics
    /// When the clock runs dry before `root` is done: the message says who waits for what.
    pub fn run<T>(&mut self, root: impl Future<Output = T>) -> T {
        let mut schedule = self.schedule.take().expect("a reactor is not run from within itself");
        let root_task = schedule.add_task();
        clock::install(schedule);
        let _installed = Installed(&mut self.schedule);
        let mut root = pin!(root);
        let mut context = Context::from_waker(Waker::noop());
        let mut spawned = Vec::new();
        let mut finished = None;
        loop {
            let next = clock::turn(finished.take(), &mut spawned);
            for (task, future) in spawned.drain(..) {
                adopt(&mut self.futures, task, future);
            }
            let Some(task) = next else { panic!("{}", clock::stuck()) };
            if task == root_task {
                if let Poll::Ready(output) = root.as_mut().poll(&mut context) {
                    clock::end_task(task);
                    return output;
                }
                continue;
            }
            let slot = &mut self.futures[task.index()];
            let future = slot.as_mut().expect("the clock names only tasks that still run");
            if future.as_mut().poll(&mut context).is_ready() {
                *slot = None;
                finished = Some(task);
            }
        }
    }
}

fn adopt(
    futures: &mut Vec<Option<LocalFuture<'static, ()>>>,
    task: TaskId,
    future: LocalFuture<'static, ()>,
) {
    if futures.len() <= task.index() {
        futures.resize_with(task.index() + 1, || None);
    }
    futures[task.index()] = Some(future);
}

impl std::fmt::Debug for Reactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tasks = self.futures.iter().flatten().count();
        write!(f, "Reactor with {tasks} tasks, {:?}", self.schedule)
    }
}
