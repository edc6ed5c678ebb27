use crate::class::Class;
use crate::queue::Group;
use crate::rank::Rank;
use crate::resource::{Resource, Serve};
use crate::stage::Stage;
use base::Nanos;

/// Kinds of code that cost time on a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Code {
    /// Taking a command from its queue and decoding it.
    Parse,
    /// Looking a key up in the index, for each lookup.
    Probe,
    /// Posting a completion.
    Complete,
}

/// What each unit of [`Code`] costs on a simulated core. All zero: code is free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodeCosts {
    /// For [`Code::Parse`].
    pub parse: Nanos,
    /// For [`Code::Probe`].
    pub probe: Nanos,
    /// For [`Code::Complete`].
    pub complete: Nanos,
}

/// The simulated cores that a device's code runs on.
#[derive(Clone, Copy, Debug)]
pub struct Cores {
    resource: Resource,
    costs: CodeCosts,
}

impl Cores {
    /// Returns `count` cores on which code costs `costs`.
    pub fn new(group: Group, count: u32, costs: CodeCosts) -> Self {
        Self { resource: group.resource("a core", Rank::Core, count), costs }
    }

    /// True when code is free.
    pub fn are_free(&self) -> bool {
        self.costs == CodeCosts::default()
    }

    /// Spends the time of `units` of `code` on a core, waiting for one first. Both go to
    /// [`Stage::Core`]. `None` if the code costs nothing.
    #[inline]
    pub fn charge(&self, code: Code, units: u64) -> Option<Serve> {
        let unit = match code {
            Code::Parse => self.costs.parse,
            Code::Probe => self.costs.probe,
            Code::Complete => self.costs.complete,
        };
        let cost = Nanos(unit.0 * units);
        let charge = || self.resource.serve(Class::HostRead, Stage::Core, cost);
        (unit > Nanos::ZERO).then(|| charge().waiting_in(Stage::Core))
    }
}
