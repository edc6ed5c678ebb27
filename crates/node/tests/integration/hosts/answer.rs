use crate::hosts::entry::Entry;

/// The result of a command.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The host and the step of its session.
    pub(crate) step: String,
    pub(crate) asked: Entry,
    /// Status field without the phase bit: as Linux returns it from an ioctl.
    pub(crate) status: u16,
    /// DW0 and DW1.
    pub(crate) result: u64,
    pub(crate) data: Vec<u8>,
    /// R2Ts, and PDUs with data, that came for it.
    pub(crate) asked_for: usize,
    pub(crate) pieces: usize,
    /// Whether a flag of the last data stood for the response capsule.
    pub(crate) is_elided: bool,
}

impl Answer {
    /// The command succeeded.
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        let Self { step, asked, status, .. } = &self;
        assert!(*status == 0, "{step}: status {status:#06x}; sent was {asked:?}");
        self
    }

    /// It failed with this status, Do Not Retry (4000h) included.
    #[track_caller]
    pub(crate) fn fails(self, status: u16) -> Self {
        let Self { step, asked, status: found, .. } = &self;
        assert!(
            *found == status,
            "{step}: status {found:#06x}, not {status:#06x}; sent was {asked:?}"
        );
        assert!(self.data.is_empty(), "{step}: data of a failed command");
        self
    }

    /// A command that brings a structure of its own length succeeded, and brought all of it.
    #[track_caller]
    pub(crate) fn whole(self) -> Self {
        let answer = self.ok();
        assert_eq!(answer.data.len(), answer.asked.len() as usize, "{}: bytes", answer.step);
        answer
    }

    /// The host needs `holds` of `field`: `otherwise` is what becomes of it.
    #[track_caller]
    pub(crate) fn needs(
        self,
        field: &str,
        holds: impl FnOnce(&Self) -> bool,
        otherwise: &str,
    ) -> Self {
        assert!(
            holds(&self),
            "{}: {field} is not as the host needs it. {otherwise}.\nresult {:#x}, data {:02x?}",
            self.step,
            self.result,
            &self.data[..self.data.len().min(256)]
        );
        self
    }

    pub(crate) fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.data[at..at + 2].try_into().expect("there are 2"))
    }

    pub(crate) fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.data[at..at + 4].try_into().expect("there are 4"))
    }

    pub(crate) fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.data[at..at + 8].try_into().expect("there are 8"))
    }
}
