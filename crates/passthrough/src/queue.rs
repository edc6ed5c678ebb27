use crate::error::KernelError;
use crate::namespace::{Data, Namespace};
use base::Buf;
use controller::{Completion, Queue, Submission};
use spec::{Command, Status, Transfer};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// Executes commands on a namespace of the kernel one at a time: each has ended when its submission
/// returns. Clones share the queue.
#[derive(Clone, Debug)]
pub struct PassthroughQueue(Rc<Shared>);

#[derive(Debug)]
struct Shared {
    namespace: Namespace,
    next_id: Cell<u64>,
    completions: RefCell<VecDeque<Completion>>,
    failure: Cell<Option<KernelError>>,
}

impl PassthroughQueue {
    /// Returns a queue for commands of the Key Value command set on `namespace`.
    pub fn new(namespace: Namespace) -> Self {
        Self(Rc::new(Shared {
            namespace,
            next_id: Cell::new(0),
            completions: RefCell::default(),
            failure: Cell::new(None),
        }))
    }

    /// Returns the namespace.
    pub fn namespace(&self) -> &Namespace {
        &self.0.namespace
    }

    /// Returns why the kernel did not execute the last command that completed with
    /// [`spec::Status::HOST_PATHING_ERROR`].
    pub fn failure(&self) -> Option<KernelError> {
        self.0.failure.get()
    }

    fn execute(&self, submission: Submission) -> (Status, u64, Buf) {
        let nothing = || Buf::phantom(0, 0);
        if submission.long_key.is_some() {
            return (Status::INVALID_FIELD, 0, nothing());
        }
        let Submission { command, data, .. } = submission;
        let is_read = command.transfer() == Transfer::ToHost;
        let data = if is_read { Data::Room(command.size()) } else { Data::Sent(data) };
        match self.0.namespace.execute(&command, data) {
            Ok(ended) if ended.status.is_success() && is_read => {
                let data = filled(&command, ended.result, &ended.data);
                (ended.status, ended.result, data)
            }
            Ok(ended) => (ended.status, ended.result, nothing()),
            Err(error) => {
                self.0.failure.set(Some(error));
                (Status::HOST_PATHING_ERROR, 0, nothing())
            }
        }
    }
}

/// Returns the part of the data buffer that the device filled: a Retrieve returns its length in the
/// completion, a List in its own header.
fn filled(command: &Command, result: u64, room: &Buf) -> Buf {
    if command.opcode() != spec::Opcode::RETRIEVE {
        return room.clone();
    }
    let len = u32::try_from(result).unwrap_or(u32::MAX);
    room.slice(0..len.min(room.len()))
}

impl Queue for PassthroughQueue {
    fn submit(&self, submission: Submission) -> u64 {
        let id = self.0.next_id.replace(self.0.next_id.get() + 1);
        let (submitted, opcode) = (clock::host_now(), submission.command.opcode());
        let ended = self.execute(submission);
        let completion = Completion::over_link(id, opcode, submitted, ended);
        self.0.completions.borrow_mut().push_back(completion);
        id
    }

    async fn next(&self) -> Completion {
        let next = self.0.completions.borrow_mut().pop_front();
        next.expect("a completion is waited for after its submission")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Key;

    #[test]
    fn a_retrieve_returns_as_much_as_there_is_and_fits() {
        let room = Buf::copy_from(b"value and zeros");
        let command = Command::retrieve(1, b"key", 15);
        assert_eq!(filled(&command, 5, &room).bytes().unwrap(), b"value");
        assert_eq!(filled(&command, 0, &room).len(), 0);
        assert_eq!(filled(&command, 1 << 40, &room).len(), 15);
        assert_eq!(filled(&Command::list(1, b"", 15), 0, &room).len(), 15);
    }

    #[test]
    fn a_command_that_the_kernel_does_not_know_completes_with_a_path_error() {
        let queue = PassthroughQueue::new(Namespace::of_null());
        reactor::Reactor::new(None).run(async {
            let key = Key::new(b"key").unwrap();
            assert_eq!(queue.submit(Submission::new(Command::exist(1, b"key"), &key)), 0);
            let completion = queue.next().await;
            assert_eq!((completion.id, completion.status), (0, Status::HOST_PATHING_ERROR));
            assert!(queue.failure().unwrap().to_string().contains("ioctl"), "{queue:?}");
            let long = Key::new(&[7; 17]).unwrap();
            let command = Command::exist(1, long.as_bytes());
            assert_eq!(queue.submit(Submission::new(command, &long)), 1);
            assert_eq!(queue.next().await.status, Status::INVALID_FIELD);
        });
    }
}
