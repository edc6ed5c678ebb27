use crate::fabrics::slots::CommandHead;
use crate::shared::Shared;
use spec::{Completion, ErrorEntry, Status};
use std::collections::VecDeque;
use zerocopy::IntoBytes;

/// Maximum entries of a controller's error log (ELPE).
pub(crate) const ERRORS_KEPT: usize = 64;

/// Parameter error location of an entry that names no part of the command.
const NOWHERE: u16 = 0xffff;

/// The last failed commands of an association. All reactors that execute its commands write it
/// before they respond, so that the host finds each failure there. Successful commands do not take
/// the lock.
#[derive(Debug, Default)]
pub(crate) struct ErrorLog(Shared<State>);

#[derive(Debug, Default)]
struct State {
    count: u64,
    /// Latest entry first.
    entries: VecDeque<ErrorEntry>,
}

impl ErrorLog {
    /// Records a failed command of a queue, or an error without a command. "Key exists" and "key
    /// does not exist" are results, not failures. A failed Connect adds no entry (Base 2.1, Connect
    /// command).
    pub(crate) fn record(
        &self,
        queue_id: u16,
        command: Option<CommandHead>,
        completion: Completion,
    ) {
        let status = completion.status();
        let is_result = matches!(status, Status::KEY_DOES_NOT_EXIST | Status::KEY_EXISTS);
        if is_result || command.is_some_and(|command| command.is_connect) {
            return;
        }
        let State { count, entries } = &mut *self.0.lock();
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

    /// Returns the number of failed commands.
    pub(crate) fn count(&self) -> u64 {
        self.0.lock().count
    }

    /// Returns the log page with the maximum number of entries; unused ones are zeros.
    pub(crate) fn page(&self) -> Vec<u8> {
        let mut entries: Vec<ErrorEntry> = self.0.lock().entries.iter().cloned().collect();
        entries.resize_with(ERRORS_KEPT, ErrorEntry::default);
        entries.as_bytes().to_vec()
    }
}
