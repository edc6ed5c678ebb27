use crate::cell_array::{CellArray, Working};
use crate::geometry::{BlockId, DieId, Geometry};
use crate::timing::{Planes, Registers, Timing};
use base::Nanos;
use clock::{Acquire, Class, Group, Rank, Resource, Serve, Stage, Suspension};

/// The planes, arrays and channels as resources, awaited one step at a time.
#[derive(Debug)]
pub(crate) struct Staged {
    geometry: Geometry,
    planes: Planes,
    /// One set for each die with [`Planes::Alone`], otherwise one for each plane.
    registers: Vec<PageRegisters>,
    /// One for each die, or for each plane with [`Planes::Independent`].
    arrays: Vec<CellArray>,
    /// By die: that of its channel.
    channels: Vec<Resource>,
    /// The additional time in the array for copying a page to or from the second register.
    cache_busy: Nanos,
    /// Page registers of each set.
    registers_of_plane: u32,
    program_suspension: Option<Suspension>,
    erase_suspension: Option<Suspension>,
}

#[derive(Clone, Copy, Debug)]
struct PageRegisters {
    of_all: Resource,
    /// For host reads. Separate when other work may keep a register while it waits or is suspended,
    /// otherwise the same resource.
    of_reads: Resource,
}

/// A step of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Read,
    Program,
    Erase,
    Copyback,
    /// Marks a block.
    Retire,
}

impl Step {
    /// Returns its name in traces.
    const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Program => "program",
            Self::Erase => "erase",
            Self::Copyback => "copyback",
            Self::Retire => "retire",
        }
    }
}

impl Staged {
    pub(crate) fn new(geometry: &Geometry, timing: &Timing, group: Group) -> Self {
        let suspension = |enter| Suspension { enter, resume: timing.resume };
        let (units, cache_busy) = match timing.registers {
            Registers::Single => (1, Nanos::ZERO),
            Registers::Double => (2, timing.cache_busy),
        };
        let suspends = timing.program_suspend.is_some() || timing.erase_suspend.is_some();
        let joint = suspends || timing.planes == Planes::Together;
        let (dies, planes) = (geometry.dies(), geometry.units());
        let of_plane = "a page register of a plane";
        let (registers, register, arrays, array) = match timing.planes {
            Planes::Alone => (dies, "a page register of a die", dies, "the array of a die"),
            Planes::Together => (planes, of_plane, dies, "the array of a die"),
            Planes::Independent => (planes, of_plane, planes, "the array of a plane"),
        };
        let page_registers = |_| {
            let of_all = group.resource(register, Rank::Register, units);
            let of_reads = joint.then(|| group.resource(register, Rank::Register, units));
            PageRegisters { of_all, of_reads: of_reads.unwrap_or(of_all) }
        };
        let array = |_| {
            if joint {
                CellArray::Station(group.station(array, Rank::Array))
            } else {
                CellArray::Plain(group.resource(array, Rank::Array, 1))
            }
        };
        let registers = (0..registers).map(page_registers).collect();
        let arrays = (0..arrays).map(array).collect();
        let channel = |_| group.resource("a NAND channel", Rank::Channel, 1);
        let channels: Vec<_> = (0..geometry.channels).map(channel).collect();
        let channel_of = |die| channels[geometry.channel_of(DieId(die)) as usize];
        Self {
            geometry: *geometry,
            planes: timing.planes,
            registers,
            arrays,
            channels: (0..dies).map(channel_of).collect(),
            cache_busy,
            registers_of_plane: units,
            program_suspension: timing.program_suspend.map(suspension),
            erase_suspension: timing.erase_suspend.map(suspension),
        }
    }

    /// Waits for a page register for `block`, which an operation holds from start to end.
    #[inline]
    pub(crate) fn register(&self, block: BlockId, class: Class) -> Acquire {
        let at = match self.planes {
            Planes::Alone => block.die.0,
            Planes::Together | Planes::Independent => self.unit(block),
        };
        let PageRegisters { of_all, of_reads } = self.registers[at as usize];
        let register = if class == Class::HostRead { of_reads } else { of_all };
        register.acquire(class)
    }

    /// Announces a program of `block`, which holds its register, so that programs for other planes
    /// of the die wait for its data. With one register for each plane, first waits until the die
    /// programs nothing.
    #[inline]
    pub(crate) async fn announce_program(&self, block: BlockId, class: Class) {
        if self.planes == Planes::Together
            && let CellArray::Station(array) = self.array_of(block)
        {
            let (kind, plane) = (Step::Program as u8, self.geometry.plane_of(block));
            if self.registers_of_plane == 1 {
                array.load(class, kind, plane).await;
            } else {
                array.announce(class, kind, plane);
            }
        }
    }

    /// Ends a read of `block`, whose data has left its register.
    #[inline]
    pub(crate) fn end_unload(&self, block: BlockId, class: Class) {
        if self.planes == Planes::Together
            && let CellArray::Station(array) = self.array_of(block)
        {
            array.end_unload(class, Step::Read as u8, self.geometry.plane_of(block));
        }
    }

    /// Has the array of `block` do `step` for `time`. Returns how often it was suspended.
    #[inline]
    pub(crate) fn array(&self, block: BlockId, class: Class, step: Step, time: Nanos) -> Working {
        let time = match step {
            Step::Read | Step::Program => time + self.cache_busy,
            Step::Erase | Step::Copyback | Step::Retire => time,
        };
        match self.array_of(block) {
            CellArray::Plain(array) => {
                Working::Plain(array.serve(class, Stage::Array, time).named(step.name()))
            }
            CellArray::Station(array) => {
                let mut operate = array.serve(class, Stage::Array, time).named(step.name());
                if self.planes == Planes::Together {
                    operate = operate.together(step as u8, self.geometry.plane_of(block));
                    if step == Step::Read {
                        operate = operate.unloads(self.registers_of_plane);
                    }
                }
                if let Some(suspension) = self.suspension(step) {
                    operate = operate.suspendable(suspension);
                }
                Working::Station(operate)
            }
        }
    }

    /// Moves data between a register of `die` and the controller for `time`. `None` if it takes no
    /// time.
    #[inline]
    pub(crate) fn transfer(&self, die: DieId, class: Class, time: Nanos) -> Option<Serve> {
        let channel = self.channels[die.0 as usize];
        (time > Nanos::ZERO).then(|| channel.serve(class, Stage::Channel, time))
    }

    #[inline]
    fn array_of(&self, block: BlockId) -> CellArray {
        let at = match self.planes {
            Planes::Alone | Planes::Together => block.die.0,
            Planes::Independent => self.unit(block),
        };
        self.arrays[at as usize]
    }

    const fn suspension(&self, step: Step) -> Option<Suspension> {
        match step {
            Step::Read | Step::Retire => None,
            Step::Program | Step::Copyback => self.program_suspension,
            Step::Erase => self.erase_suspension,
        }
    }

    /// Returns the number of the plane of `block` over all dies.
    #[inline]
    const fn unit(&self, block: BlockId) -> u32 {
        block.die.0 * self.geometry.planes_per_die + self.geometry.plane_of(block)
    }
}
