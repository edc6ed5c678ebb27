//! The bus between a function and its host: what each side sees of the other.

/// A device function as its host sees it: configuration space, BARs, reset. A transport such as
/// vfio-user carries these accesses.
///
/// A function handles each access before it returns. It does its work in tasks, and may read and
/// write host memory and raise interrupts at any time until it is [closed](Self::close).
pub trait PciFunction {
    /// Returns the size of a region in bytes; 0 if the function lacks it.
    fn bytes(&self, region: Region) -> u64;

    /// Returns the number of MSI-X vectors.
    fn vectors(&self) -> u16;

    /// Reads from a region. The caller checks that the access is inside.
    fn read(&self, region: Region, offset: u64, into: &mut [u8]);

    /// Writes to a region. The caller checks that the access is inside.
    fn write(&self, region: Region, offset: u64, bytes: &[u8]);

    /// Resets the function as a function level reset does (PCIe 6.0, section 6.6.2). It touches
    /// neither host memory nor interrupts again until the host enables it.
    fn reset(&self);

    /// Ends the function when its host is gone.
    fn close(&self);
}

/// A region of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Region {
    /// Configuration space.
    Config,
    /// Base address register 0, with 64-bit addresses.
    Bar0,
}

/// Memory of the host, which a function reaches by DMA. Addresses are those of the bus.
///
/// The host may change its memory at any time, and may remove parts of it.
pub trait HostMemory {
    /// Copies bytes from `address` on.
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), OutsideMemory>;

    /// Copies bytes to `address` on. Nothing is written if a part is outside.
    fn write(&self, address: u64, bytes: &[u8]) -> Result<(), OutsideMemory>;

    /// Loads 4 bytes at once, before later accesses of this function. The address is a multiple of
    /// 4.
    fn load(&self, address: u64) -> Result<u32, OutsideMemory>;

    /// Stores 4 bytes at once, after earlier accesses of this function. The address is a multiple
    /// of 4.
    fn store(&self, address: u64, value: u32) -> Result<(), OutsideMemory>;

    /// Copies entries to `address` on, a multiple of 16, in one page. The last 4 bytes of each come
    /// at once, after all before them and after earlier accesses of this function.
    fn post(&self, address: u64, entries: &[[u8; 16]]) -> Result<(), OutsideMemory> {
        for (at, entry) in (address..).step_by(16).zip(entries) {
            let (before, last) = entry.split_last_chunk().expect("it has more than 4 bytes");
            self.write(at, before)?;
            self.store(at + before.len() as u64, u32::from_le_bytes(*last))?;
        }
        Ok(())
    }
}

/// An access to host memory went outside: the host has mapped no memory there, or none for this
/// kind of access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the host has no memory at {0:#x} for this access")]
pub struct OutsideMemory(pub u64);

/// The page of doorbells of BAR 0, which the host maps and writes without telling the function.
pub trait DoorbellPage {
    /// Loads the doorbell at `offset` from the first one, before later accesses of this function.
    /// The offset is a multiple of 4 below 4,096.
    fn load(&self, offset: u64) -> u32;

    /// Copies doorbells from the first one on. Each may be of another moment.
    fn read(&self, into: &mut [u8]);

    /// Stores a doorbell, as a host does.
    fn store(&self, offset: u64, value: u32);
}

/// The interrupts of a function.
pub trait Interrupts {
    /// Raises an MSI-X vector. Does nothing if the host has not set it up.
    fn raise(&self, vector: u16);
}
