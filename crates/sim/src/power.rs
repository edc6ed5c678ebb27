use base::Nanos;
use clock::{Rank, Stage};
use std::cell::Cell;
use std::rc::Rc;

/// Whether there is power still. Clones tell of the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Power(Rc<Cell<bool>>);

impl Power {
    /// Cuts hosts off from their device, whatever its capacitors still let it do.
    pub(crate) fn cut(&self) {
        self.0.set(true);
    }

    /// Ends at once while there is power, and never without.
    pub(crate) async fn on(&self) {
        if self.0.get() {
            clock::park(Rank::Free, Stage::Queue).await;
            unreachable!("a host without a device is not woken");
        }
    }
}

/// What a loss of power left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    /// When it was, on the clock of the device.
    pub(crate) at: Nanos,
    /// Whether something was in memory that nothing saved.
    pub(crate) forgets: bool,
    /// Whether what is left outlives another loss of power too.
    pub(crate) is_lasting: bool,
}
