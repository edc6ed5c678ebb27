use super::member::Member;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;

/// Runs `task`, which reads and executes the requests of `member`, and charges its tenant for each
/// poll.
pub(in crate::server) async fn metered<T>(member: Rc<Member>, task: impl Future<Output = T>) -> T {
    let mut task = pin!(task);
    poll_fn(|context| {
        member.begin_poll();
        let polled = task.as_mut().poll(context);
        member.end_poll();
        polled
    })
    .await
}
