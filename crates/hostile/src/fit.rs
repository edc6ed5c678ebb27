//! Commands with their data, and where it is said to be.

use crate::entry;
use crate::input::Input;
use base::limits::VALUE_BYTES_MAX;
use controller::IN_CAPSULE_BYTES_MAX;
use spec::{Command, DataPointer, IDENTIFY_BYTES, Transfer};

/// Returns `command` with its data, or with room for its reply: mostly as the specification
/// requires.
pub(crate) fn io(command: Command, input: &mut Input<'_>) -> (Command, Vec<u8>) {
    let len = entry::data_len(&command);
    fitted(command, len, input)
}

/// As [`io`], for an admin command.
pub(crate) fn admin(command: Command, input: &mut Input<'_>) -> (Command, Vec<u8>) {
    let asked = u32::try_from(command.log_page_bytes()).unwrap_or(0).min(1 << 16);
    let len = input.pick(&[IDENTIFY_BYTES, asked, 0, 512]);
    fitted(command, len, input)
}

fn fitted(command: Command, len: u32, input: &mut Input<'_>) -> (Command, Vec<u8>) {
    let brings = command.transfer() == Transfer::ToController;
    let command = match input.below(8) {
        0..5 => command.with_data_pointer(DataPointer::Transport { len }),
        5 if brings && len <= IN_CAPSULE_BYTES_MAX => {
            command.with_data_pointer(DataPointer::InCapsule { offset: 0, len })
        }
        5 | 6 => {
            let len = match input.below(4) {
                0 => len / 2,
                1 => len.saturating_sub(1),
                2 => len.saturating_add(1),
                _ => 1,
            };
            command.with_data_pointer(DataPointer::Transport { len })
        }
        _ => pointing(&command, input),
    };
    let data = if brings { brought(&command, input) } else { Vec::new() };
    (command, data)
}

/// Returns the data that a transport would pass with `command`: as much as its pointer says, if
/// that moves any.
fn brought(command: &Command, input: &mut Input<'_>) -> Vec<u8> {
    let len = match command.data_pointer() {
        DataPointer::InCapsule { offset, len }
            if offset.saturating_add(len) <= IN_CAPSULE_BYTES_MAX =>
        {
            len
        }
        DataPointer::Transport { len } if command.uses_sgl() && len <= VALUE_BYTES_MAX => len,
        _ => 0,
    };
    entry::data(command, len, input)
}

/// Returns the command with any data pointer.
pub(crate) fn pointing(command: &Command, input: &mut Input<'_>) -> Command {
    let flags = input.pick(&[0x40, 0x40, 0x40, 0x80, 0x00, 0xc0, 0x41, 0xff]);
    let mut pointer = [0; 16];
    let address = match input.below(4) {
        0 | 1 => 0,
        2 => u64::from(input.number()),
        _ => u64::from_le_bytes(input.array()),
    };
    pointer[..8].copy_from_slice(&address.to_le_bytes());
    let len = if input.one_in(3) { entry::data_len(command) } else { input.number() };
    pointer[8..12].copy_from_slice(&len.to_le_bytes());
    // Base 2.1, SGL descriptor types and sub types: those of fabrics, and others.
    let known = [0x01, 0x5a, 0x00, 0x40, 0x41, 0x0f, 0x10, 0x20, 0x30, 0x5f, 0xf0];
    pointer[15] = if input.one_in(6) { input.byte() } else { input.pick(&known) };
    entry::with_pointer(command, flags, pointer)
}
