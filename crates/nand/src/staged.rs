use crate::geometry::{DieId, Geometry};
use crate::timing::Registers;
use base::Nanos;
use clock::{Class, Group, Hold, Rank, Resource, Stage};

/// The dies and channels as things to wait for, one step at a time.
#[derive(Debug)]
pub(crate) struct Staged {
    dies: Vec<Die>,
    channels: Vec<Resource>,
}

#[derive(Debug)]
struct Die {
    register: Resource,
    array: Resource,
}

impl Staged {
    pub(crate) fn new(geometry: &Geometry, registers: Registers, group: Group) -> Self {
        let units = match registers {
            Registers::Single => 1,
            Registers::Double => 2,
        };
        let die = |_| Die {
            register: group.resource("a page register of a die", Rank::Register, units),
            array: group.resource("the array of a die", Rank::Array, 1),
        };
        let channel = |_| group.resource("a NAND channel", Rank::Channel, 1);
        Self {
            dies: (0..geometry.dies()).map(die).collect(),
            channels: (0..geometry.channels).map(channel).collect(),
        }
    }

    /// Waits for a page register of `die`, which an operation has from its start to its end.
    #[inline]
    pub(crate) async fn register(&self, die: DieId, class: Class) -> Hold {
        self.dies[die.0 as usize].register.acquire(class).await
    }

    /// Has the array of `die` do `work` for `time`.
    #[inline]
    pub(crate) async fn array(&self, die: DieId, class: Class, work: &'static str, time: Nanos) {
        self.dies[die.0 as usize].array.serve(class, Stage::Array, time).named(work).await;
    }

    /// Moves data between a register of `die` and the controller for `time`.
    #[inline]
    pub(crate) async fn transfer(&self, die: DieId, class: Class, time: Nanos) {
        if time > Nanos::ZERO {
            let channel = self.channels[die.0 as usize % self.channels.len()];
            channel.serve(class, Stage::Channel, time).await;
        }
    }
}
