//! Configuration space of the function (PCIe 6.0, section 7): what it is, where its registers are,
//! and the capabilities for power states, function level reset and MSI-X.

use crate::bar0::{BAR0_BYTES, MSIX_PENDING_OFFSET, MSIX_TABLE_OFFSET};
use controller::PCI_VENDOR_ID;
use std::cell::RefCell;

/// Bytes of the extended configuration space.
pub(crate) const CONFIG_BYTES: usize = 4_096;

/// Device id, of no list.
const DEVICE_ID: u16 = 0x0001;

/// Class code: mass storage, non-volatile memory, NVMe I/O controller.
const CLASS_CODE: [u8; 3] = [0x02, 0x08, 0x01];

const COMMAND: usize = 0x04;
const BUS_MASTER: u8 = 1 << 2;
const STATUS: usize = 0x06;
const BAR0: usize = 0x10;
const SUBSYSTEM: usize = 0x2c;
const CAPABILITIES: usize = 0x34;
const INTERRUPT_LINE: usize = 0x3c;

const POWER_CAPABILITY: usize = 0x40;
const EXPRESS_CAPABILITY: usize = 0x50;
const MSIX_CAPABILITY: usize = 0x90;

/// Device Control of the PCI Express capability, whose bit 15 starts a function level reset.
const DEVICE_CONTROL: usize = EXPRESS_CAPABILITY + 0x08;
const START_RESET: u8 = 1 << 7;

/// Configuration space: bytes, and which of their bits a host may write.
#[derive(Debug)]
pub(crate) struct ConfigSpace {
    bytes: RefCell<Box<[u8; CONFIG_BYTES]>>,
    vectors: u16,
}

impl ConfigSpace {
    pub(crate) fn new(vectors: u16) -> Self {
        Self { bytes: RefCell::new(initial(vectors)), vectors }
    }

    pub(crate) fn read(&self, offset: usize, into: &mut [u8]) {
        into.copy_from_slice(&self.bytes.borrow()[offset..offset + into.len()]);
    }

    /// Writes the bits that may be written. Returns true if this starts a function level reset.
    pub(crate) fn write(&self, offset: usize, from: &[u8]) -> bool {
        let bytes = &mut *self.bytes.borrow_mut();
        let mut starts_reset = false;
        for (at, &new) in (offset..).zip(from) {
            let mask = writable(at);
            bytes[at] = bytes[at] & !mask | new & mask;
            starts_reset |= at == DEVICE_CONTROL + 1 && new & START_RESET != 0;
        }
        starts_reset
    }

    /// Returns whether the function may access host memory (Bus Master Enable).
    pub(crate) fn is_bus_master(&self) -> bool {
        self.bytes.borrow()[COMMAND] & BUS_MASTER != 0
    }

    /// Restores the initial values.
    pub(crate) fn reset(&self) {
        *self.bytes.borrow_mut() = initial(self.vectors);
    }
}

fn initial(vectors: u16) -> Box<[u8; CONFIG_BYTES]> {
    let mut bytes = Box::new([0; CONFIG_BYTES]);
    let mut put = |at: usize, part: &[u8]| bytes[at..at + part.len()].copy_from_slice(part);
    let [vendor, device] = [PCI_VENDOR_ID, DEVICE_ID].map(u16::to_le_bytes);
    put(0x00, &vendor);
    put(0x02, &device);
    // It has a list of capabilities.
    put(STATUS, &[1 << 4]);
    put(0x09, &CLASS_CODE);
    // Memory with 64-bit addresses, without prefetch.
    put(BAR0, &[0b100]);
    put(SUBSYSTEM, &vendor);
    put(SUBSYSTEM + 2, &device);
    put(CAPABILITIES, &[byte(POWER_CAPABILITY)]);
    // Power Management, version 3: states D0 and D3hot, from which it returns without a reset.
    put(POWER_CAPABILITY, &[0x01, byte(EXPRESS_CAPABILITY), 0x03, 0x00, 1 << 3]);
    // PCI Express, version 2: an endpoint with role-based error reporting and function level
    // reset, on a link of 4 lanes at 8 GT/s.
    put(EXPRESS_CAPABILITY, &[0x10, byte(MSIX_CAPABILITY), 0x02, 0x00]);
    put(EXPRESS_CAPABILITY + 0x04, &(1_u32 << 28 | 1 << 15).to_le_bytes());
    put(EXPRESS_CAPABILITY + 0x0c, &(4_u32 << 4 | 3).to_le_bytes());
    put(EXPRESS_CAPABILITY + 0x12, &(4_u16 << 4 | 3).to_le_bytes());
    // MSI-X: the number of vectors is 0's based; the table and the pending bits are in BAR 0.
    put(MSIX_CAPABILITY, &[0x11, 0x00]);
    put(MSIX_CAPABILITY + 2, &(vectors - 1).to_le_bytes());
    put(MSIX_CAPABILITY + 4, &MSIX_TABLE_OFFSET.to_le_bytes());
    put(MSIX_CAPABILITY + 8, &MSIX_PENDING_OFFSET.to_le_bytes());
    bytes
}

/// Returns an offset in the first 256 bytes as a byte.
const fn byte(offset: usize) -> u8 {
    offset.to_le_bytes()[0]
}

/// Returns the bits of a byte that a host may write.
fn writable(at: usize) -> u8 {
    let address = (!(BAR0_BYTES - 1)).to_le_bytes();
    match at {
        // Memory space, bus master; no INTx.
        COMMAND => 0b010 | BUS_MASTER,
        0x05 => 0b100,
        _ if (BAR0..BAR0 + 8).contains(&at) => address[at - BAR0],
        INTERRUPT_LINE => 0xff,
        // Power state.
        _ if at == POWER_CAPABILITY + 4 => 0b11,
        // Device Control without the bit that starts a reset, which reads as 0.
        DEVICE_CONTROL => 0xff,
        _ if at == DEVICE_CONTROL + 1 => 0x7f,
        // MSI-X enable, and the mask of all vectors.
        _ if at == MSIX_CAPABILITY + 3 => 0xc0,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<const N: usize>(space: &ConfigSpace, offset: usize) -> [u8; N] {
        let mut bytes = [0; N];
        space.read(offset, &mut bytes);
        bytes
    }

    #[test]
    fn the_function_is_an_nvme_controller_to_any_driver() {
        // Linux, Windows and SeaBIOS bind by class code 010802h.
        let space = ConfigSpace::new(65);
        assert_eq!(read(&space, 0x08), [0, 0x02, 0x08, 0x01]);
        assert_eq!(read::<2>(&space, 0x00), *b"VK");
        assert_eq!(read::<1>(&space, 0x0e), [0], "one function, header type 0");
        assert_eq!(read::<1>(&space, 0x3d), [0], "no INTx");
    }

    #[test]
    fn the_list_of_capabilities_ends() {
        let space = ConfigSpace::new(65);
        let [mut at] = read::<1>(&space, 0x34);
        let mut ids = Vec::new();
        while at != 0 {
            let [id, next] = read(&space, at.into());
            ids.push(id);
            assert!(ids.len() < 9 && at.is_multiple_of(4));
            at = next;
        }
        assert_eq!(ids, [0x01, 0x10, 0x11], "power, PCI Express, MSI-X");
    }

    #[test]
    fn the_host_learns_the_size_of_bar_0_as_for_any_function() {
        // PCI: it writes ones and reads the bits that stay 0.
        let space = ConfigSpace::new(65);
        space.write(0x10, &[0xff; 8]);
        let read_back = u64::from_le_bytes(read(&space, 0x10));
        assert_eq!(!(read_back & !0xf) + 1, 16_384, "Windows wants 16 KiB at least");
        assert_eq!(read_back & 0xf, 0b0100, "64 bits, no prefetch");
        space.write(0x10, &0xfebc_8000_u64.to_le_bytes());
        assert_eq!(u64::from_le_bytes(read(&space, 0x10)), 0xfebc_8004);
    }

    #[test]
    fn msix_has_its_table_and_its_pending_bits_in_bar_0() {
        let space = ConfigSpace::new(65);
        let at = MSIX_CAPABILITY;
        assert_eq!(u16::from_le_bytes(read(&space, at + 2)), 64, "0's based");
        let [table, pending] = [at + 4, at + 8].map(|at| u32::from_le_bytes(read(&space, at)));
        assert_eq!((table & 7, pending & 7), (0, 0), "both in BAR 0");
        assert!(table + 65 * 16 <= pending && u64::from(pending) + 16 <= BAR0_BYTES);
        space.write(at + 2, &[0xff, 0xff]);
        assert_eq!(u16::from_le_bytes(read(&space, at + 2)), 0xc040, "enabled and masked");
    }

    #[test]
    fn only_bit_15_of_device_control_starts_a_reset() {
        let space = ConfigSpace::new(65);
        assert_eq!(read::<4>(&space, EXPRESS_CAPABILITY + 4)[3] & 0x10, 0x10, "it has FLR");
        assert!(!space.write(DEVICE_CONTROL, &[0xff, 0x7f]));
        assert!(space.write(DEVICE_CONTROL, &[0x00, 0x80]));
        assert_eq!(read(&space, DEVICE_CONTROL), [0, 0], "the bit reads as 0");
        assert!(space.write(DEVICE_CONTROL + 1, &[0x80]));
        space.write(0x04, &[0x06]);
        space.reset();
        assert_eq!(read::<2>(&space, 0x04), [0, 0]);
    }

    #[test]
    fn nothing_else_can_be_written() {
        let space = ConfigSpace::new(65);
        let before = read::<CONFIG_BYTES>(&space, 0);
        space.write(0, &[0xff; CONFIG_BYTES]);
        let after = read::<CONFIG_BYTES>(&space, 0);
        let changed: Vec<_> = (0..CONFIG_BYTES).filter(|&at| before[at] != after[at]).collect();
        let bar: Vec<_> = (0x11..0x18).collect();
        let others = [0x04, 0x05, 0x3c, 0x44, 0x58, 0x59, 0x93];
        let mut expected = [&bar[..], &others[..]].concat();
        expected.sort_unstable();
        assert_eq!(changed, expected);
    }
}
