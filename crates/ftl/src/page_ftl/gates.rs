use clock::Gate;

/// One gate for each channel.
#[derive(Debug)]
pub(crate) struct Gates(Box<[Gate]>);

impl Gates {
    pub(crate) fn new(channels: u32) -> Self {
        Self((0..channels).map(|_| Gate::new()).collect())
    }
    pub(crate) fn of(&self, channel: u32) -> &Gate {
        &self.0[channel as usize]
    }
}
