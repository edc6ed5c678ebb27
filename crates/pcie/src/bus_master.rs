use crate::bus::{HostMemory, Interrupts, OutsideMemory};
use std::cell::Cell;
use std::rc::Rc;

/// The way of a function to its host's memory and interrupts, which the host opens and closes by
/// Bus Master Enable (PCIe 6.0, section 7.5.1.1.3). While it is closed, no memory is there, and
/// interrupts are lost: MSI-X is a write to memory. An access by a controller that is enabled then
/// ends in its fatal status, as if the memory had gone.
pub(crate) struct BusMaster {
    memory: Rc<dyn HostMemory>,
    interrupts: Rc<dyn Interrupts>,
    is_enabled: Cell<bool>,
}

impl BusMaster {
    /// Returns a way that is closed.
    pub(crate) fn new(memory: Rc<dyn HostMemory>, interrupts: Rc<dyn Interrupts>) -> Self {
        Self { memory, interrupts, is_enabled: Cell::new(false) }
    }

    pub(crate) fn set_enabled(&self, is_enabled: bool) {
        self.is_enabled.set(is_enabled);
    }

    #[inline]
    fn memory(&self, address: u64) -> Result<&dyn HostMemory, OutsideMemory> {
        if self.is_enabled.get() { Ok(&*self.memory) } else { Err(OutsideMemory(address)) }
    }
}

impl HostMemory for BusMaster {
    #[inline]
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), OutsideMemory> {
        self.memory(address)?.read(address, into)
    }

    #[inline]
    fn write(&self, address: u64, bytes: &[u8]) -> Result<(), OutsideMemory> {
        self.memory(address)?.write(address, bytes)
    }

    #[inline]
    fn load(&self, address: u64) -> Result<u32, OutsideMemory> {
        self.memory(address)?.load(address)
    }

    #[inline]
    fn store(&self, address: u64, value: u32) -> Result<(), OutsideMemory> {
        self.memory(address)?.store(address, value)
    }

    #[inline]
    fn post(&self, address: u64, entries: &[[u8; 16]]) -> Result<(), OutsideMemory> {
        self.memory(address)?.post(address, entries)
    }
}

impl Interrupts for BusMaster {
    fn raise(&self, vector: u16) {
        if self.is_enabled.get() {
            self.interrupts.raise(vector);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HostRam;

    #[derive(Default)]
    struct Raised(Cell<u32>);

    impl Interrupts for Raised {
        fn raise(&self, vector: u16) {
            self.0.set(self.0.get() + u32::from(vector));
        }
    }

    #[test]
    fn closed_way_lets_nothing_through() {
        let (ram, raised) = (Rc::<HostRam>::default(), Rc::<Raised>::default());
        let address = ram.allocate(1);
        let master = BusMaster::new(ram.clone(), raised.clone());
        let outside = Err(OutsideMemory(address));
        for is_enabled in [false, true, false] {
            master.set_enabled(is_enabled);
            let before = (ram.writes(), raised.0.get());
            let expected = if is_enabled { Ok(()) } else { outside };
            assert_eq!(master.read(address, &mut [0; 8]), expected);
            assert_eq!(master.write(address, &[1; 8]), expected);
            assert_eq!(master.store(address, 7), expected);
            assert_eq!(master.post(address, &[[1; 16]]), expected);
            assert_eq!(master.load(address).map(|_| ()), expected);
            master.raise(1);
            let passed = u32::from(is_enabled);
            let after = (before.0 + 4 * u64::from(passed), before.1 + passed);
            assert_eq!((ram.writes(), raised.0.get()), after);
        }
    }
}
