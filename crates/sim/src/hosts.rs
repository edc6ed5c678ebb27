use crate::ledger::Excuses;
use crate::load::Life;
use crate::power::Loss;
use crate::tally::Tally;
use crate::target::Target;
use clock::LocalFuture;
use std::rc::Rc;

/// Hosts of keys and what they were answered. They outlive what they work on.
pub(crate) trait Hosts {
    /// They work on what is just open, for as long as there is work and power.
    fn live(self: Rc<Self>, target: Rc<dyn Target>, life: Life) -> LocalFuture<'static, ()>;

    /// About how many answers a life has.
    fn operations_in_life(&self) -> u64;

    /// Answers so far.
    fn operations(&self) -> u64;

    /// Their device is open again, and what it holds now is durable.
    fn opened(&self);

    /// What they work on is gone.
    fn cut_off(&self, loss: Loss);

    /// Holds all answers to what can be, and counts them.
    ///
    /// # Panics
    /// When they can not be, unless the faults that are to be excused explain it.
    fn check(&self, excuses: Excuses) -> Tally;
}
