/// Maximum commands that a function fetches before other tasks of its reactor have their turn.
const COMMANDS_MAX: u32 = 32;

/// Maximum bytes of their data, which are copied: about as long as 32 small commands take.
const BYTES_MAX: u64 = 256 << 10;

/// What a function fetches without a pause.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    commands: u32,
    bytes: u64,
}

impl Turn {
    /// Counts a command with its bytes.
    #[inline]
    pub(crate) fn count(&mut self, bytes: u64) {
        self.commands += 1;
        self.bytes += bytes;
    }

    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.commands >= COMMANDS_MAX || self.bytes >= BYTES_MAX
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.commands == 0
    }
}
