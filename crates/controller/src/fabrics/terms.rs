/// The parameters of a queue's Connect.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// 0 for the admin queue.
    pub(crate) id: u16,
    pub(crate) entries: u16,
    pub(crate) has_flow_control: bool,
}

impl Terms {
    /// Returns the submission queue head after one more command, without meaning if flow control is
    /// off.
    #[inline]
    pub(crate) fn head_after(self, head: u16) -> u16 {
        if !self.has_flow_control || head + 1 == self.entries { 0 } else { head + 1 }
    }
}
