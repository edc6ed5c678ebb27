use crate::fabrics::slots::Ticket;
use spec::{Completion, ErrorEntry, Status};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use zerocopy::IntoBytes;

/// Entries that a controller keeps (ELPE).
pub(crate) const ERRORS_KEPT: usize = 64;

/// The part of a command that an entry does not name.
const NOWHERE: u16 = 0xffff;

/// The commands of an association that failed last. All reactors that execute its commands write
/// it, so that a host that was told of a failure finds it there; what does not fail has no part in
/// that.
#[derive(Debug, Default)]
pub(crate) struct ErrorLog(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    count: u64,
    /// The latest first.
    entries: VecDeque<ErrorEntry>,
}

impl ErrorLog {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records how a command of a queue failed, or what else did. That a key is there, or is not,
    /// is no failure: it is what the host wanted to know.
    pub(crate) fn record(&self, queue_id: u16, command: Option<Ticket>, completion: Completion) {
        let status = completion.status();
        if matches!(status, Status::KEY_DOES_NOT_EXIST | Status::KEY_EXISTS) {
            return;
        }
        let State { count, entries } = &mut *self.state();
        *count += 1;
        entries.truncate(ERRORS_KEPT - 1);
        let [.., low, high]: [u8; 16] = zerocopy::transmute!(completion);
        entries.push_front(ErrorEntry {
            count: (*count).into(),
            queue_id: queue_id.into(),
            command_id: completion.command_id().into(),
            status: u16::from_le_bytes([low, high]).into(),
            location: NOWHERE.into(),
            nsid: command.map_or(0, |command| command.nsid).into(),
            opcode: command.map_or(0, |command| command.opcode.0),
            version: u8::from(command.is_some()),
            ..ErrorEntry::default()
        });
    }

    /// How many commands failed.
    pub(crate) fn count(&self) -> u64 {
        self.state().count
    }

    /// The log page: as many entries as are kept, those that there are not yet of zeros.
    pub(crate) fn page(&self) -> Vec<u8> {
        let mut entries: Vec<ErrorEntry> = self.state().entries.iter().cloned().collect();
        entries.resize_with(ERRORS_KEPT, ErrorEntry::default);
        entries.as_bytes().to_vec()
    }
}
