use pcie::{PciFunction, Region};

/// The function of a client whose connection is closed at once.
pub(super) struct NoFunction;

impl PciFunction for NoFunction {
    fn bytes(&self, _: Region) -> u64 {
        0
    }

    fn vectors(&self) -> u16 {
        0
    }

    fn read(&self, _: Region, _: u64, _: &mut [u8]) {}

    fn write(&self, _: Region, _: u64, _: &[u8]) {}

    fn reset(&self) {}

    fn close(&self) {}
}
