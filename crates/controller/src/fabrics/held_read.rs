use crate::span::Span;
use media::Blocks;
use spec::{Command, Opcode};

/// A Read of blocks that is held.
pub(crate) struct HeldRead {
    pub(crate) command: Command,
    /// Length of the host's buffer in bytes.
    pub(crate) room: u32,
}

impl HeldRead {
    /// Decodes a command for `blocks`. `room` is the length of the host's buffer. Returns `None` if
    /// it is another command, or one that must be refused.
    #[inline]
    pub(crate) fn decode(blocks: &dyn Blocks, command: &Command, room: u32) -> Option<Self> {
        if command.opcode() != Opcode::READ || command.is_fused() {
            return None;
        }
        let shape = blocks.shape();
        let span = Span::of(command).within(shape.blocks).ok()?;
        let bytes = span.transfer(shape.block_bytes).ok()?;
        if bytes > room {
            return None;
        }
        Some(Self { command: *command, room })
    }
}
