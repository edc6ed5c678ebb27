//! The admin commands about the queues of the function (Base 2.1, Create and Delete I/O Queue
//! commands, Doorbell Buffer Config command).

use crate::completion_queue::CompletionQueue;
use crate::function::Function;
use crate::polled_doorbells::PolledDoorbells;
use crate::segments::PAGE;
use crate::submission_queue::{QueueHandle, SubmissionQueue};
use spec::{AdminOpcode, Command, Status};
use std::rc::Rc;

impl Function {
    /// Executes a command of the admin queue about queues.
    pub(crate) fn manage(&self, admin: &SubmissionQueue, command: &Command) {
        let done = match command.admin_opcode() {
            AdminOpcode::CREATE_IO_CQ => self.create_completion_queue(command),
            AdminOpcode::CREATE_IO_SQ => self.create_submission_queue(command),
            AdminOpcode::DELETE_IO_CQ => self.delete_completion_queue(command),
            AdminOpcode::DELETE_IO_SQ => self.delete_submission_queue(command),
            AdminOpcode::DOORBELL_BUFFER_CONFIG => self.move_doorbells(command),
            other => unreachable!("{other} is not about queues"),
        };
        admin.complete(command, done.err().unwrap_or(Status::SUCCESS));
    }

    fn create_completion_queue(&self, command: &Command) -> Result<(), Status> {
        let id = command.managed_queue_id();
        let mut queues = self.queues.borrow_mut();
        if !self.may_have(id) || queues.completion(id).is_some() {
            return Err(Status::INVALID_QUEUE_ID);
        }
        let place = self.place(command)?;
        let vector = command.queue_interrupts().then(|| command.interrupt_vector());
        if vector.is_some_and(|vector| vector >= self.vectors) {
            return Err(Status::INVALID_INTERRUPT_VECTOR);
        }
        let memory = self.parts.memory.clone();
        let pending = queues.pending().clone();
        queues.add_completion(CompletionQueue::new(id, memory, place, vector, pending));
        Ok(())
    }

    fn create_submission_queue(&self, command: &Command) -> Result<(), Status> {
        let id = command.managed_queue_id();
        let mut queues = self.queues.borrow_mut();
        let completions = command.completion_queue_id();
        // The admin completion queue is for admin commands only.
        let completions = queues.completion(completions).filter(|_| completions > 0).cloned();
        let completions = completions.ok_or(Status::INVALID_COMPLETION_QUEUE)?;
        if !self.may_have(id) || queues.submission(id).is_some() {
            return Err(Status::INVALID_QUEUE_ID);
        }
        let place = self.place(command)?;
        let queue = SubmissionQueue::new(id, self.parts.clone(), place, completions);
        let handle = Rc::new(QueueHandle(queue.clone()));
        let opened = self.parts.controller.io_queue(id, place.1, handle);
        queue.open(opened.ok_or(Status::INVALID_QUEUE_ID)?);
        queues.add_submission(queue);
        Ok(())
    }

    fn delete_completion_queue(&self, command: &Command) -> Result<(), Status> {
        let id = command.managed_queue_id();
        let mut queues = self.queues.borrow_mut();
        if id == 0 || queues.completion(id).is_none() {
            return Err(Status::INVALID_QUEUE_ID);
        }
        if queues.uses(id) {
            return Err(Status::INVALID_QUEUE_DELETION);
        }
        queues.remove_completion(id);
        Ok(())
    }

    fn delete_submission_queue(&self, command: &Command) -> Result<(), Status> {
        let id = command.managed_queue_id();
        let removed = if id == 0 { None } else { self.queues.borrow_mut().remove_submission(id) };
        removed.ok_or(Status::INVALID_QUEUE_ID)?.close();
        Ok(())
    }

    fn move_doorbells(&self, command: &Command) -> Result<(), Status> {
        if self.mapped.is_some() {
            return Err(Status::INVALID_OPCODE);
        }
        let shadow = PolledDoorbells::shadow(self.parts.memory.clone(), command.prp())?;
        self.queues.borrow_mut().set_shadow(shadow);
        Ok(())
    }

    /// Returns whether the host may create an I/O queue with this id.
    fn may_have(&self, id: u16) -> bool {
        (1..=self.parts.controller.io_queues()).contains(&id)
    }

    /// Returns the address and the entries of the queue that a command creates.
    fn place(&self, command: &Command) -> Result<(u64, u16), Status> {
        let [address, _] = command.prp();
        let (size, (_, entries_max)) =
            (command.created_queue_size(), self.parts.controller.queues_max());
        if !(1..entries_max).contains(&size) {
            return Err(Status::INVALID_QUEUE_SIZE);
        }
        // Queues are contiguous (CAP.CQR).
        if !command.queue_is_contiguous() {
            return Err(Status::INVALID_FIELD);
        }
        if !address.is_multiple_of(PAGE) {
            return Err(Status::PRP_OFFSET_INVALID);
        }
        Ok((address, size + 1))
    }
}
