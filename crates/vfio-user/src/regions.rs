//! The regions of a PCI device, by the indexes of `linux/vfio.h`.

use crate::wire::{RegionInfo, SparseMap};
use pcie::{PciFunction, Region};
use zerocopy::IntoBytes;

/// BAR 0 to 5, the expansion ROM, configuration space and VGA.
pub(crate) const REGIONS: u32 = 9;

/// `VFIO_PCI_BAR0_REGION_INDEX`.
const BAR0: u32 = 0;
/// `VFIO_PCI_CONFIG_REGION_INDEX`.
const CONFIG: u32 = 7;

/// Bytes of [`RegionInfo`] alone, and of one with a [`SparseMap`].
const ALONE: u32 = 32;
const WITH_AREA: u32 = 64;
const _: () = assert!(size_of::<RegionInfo>() == ALONE as usize);
const _: () = assert!(size_of::<RegionInfo>() + size_of::<SparseMap>() == WITH_AREA as usize);

/// Returns the region of an index that the function has.
pub(crate) fn region(index: u32) -> Option<Region> {
    match index {
        BAR0 => Some(Region::Bar0),
        CONFIG => Some(Region::Config),
        _ => None,
    }
}

/// Adds to `reply` what the client, which has room for `argsz` bytes, learns of the region of an
/// index below [`REGIONS`]. It accesses regions by messages, but for the doorbells if
/// `are_doorbells_mapped`. Returns whether the reply comes with their file: a client with too
/// little room learns how much there is to say, and asks again.
pub(crate) fn describe(
    function: &dyn PciFunction,
    (index, argsz): (u32, u32),
    are_doorbells_mapped: bool,
    reply: &mut Vec<u8>,
) -> bool {
    let size = region(index).map_or(0, |region| function.bytes(region));
    let flags = if size > 0 { RegionInfo::READ | RegionInfo::WRITE } else { 0 };
    let mut info = RegionInfo { argsz: ALONE, flags, index, cap_offset: 0, size, offset: 0 };
    if index != BAR0 || !are_doorbells_mapped {
        reply.extend_from_slice(info.as_bytes());
        return false;
    }
    info.argsz = WITH_AREA;
    info.flags |= RegionInfo::MAP;
    let is_told = argsz >= WITH_AREA;
    if is_told {
        info.flags |= RegionInfo::CAPABILITIES;
        info.cap_offset = ALONE;
    }
    reply.extend_from_slice(info.as_bytes());
    if is_told {
        let area = SparseMap {
            id: SparseMap::ID,
            version: SparseMap::VERSION,
            next: 0,
            areas: 1,
            reserved: 0,
            offset: pcie::DOORBELLS.start,
            size: pcie::DOORBELLS.end - pcie::DOORBELLS.start,
        };
        reply.extend_from_slice(area.as_bytes());
    }
    is_told
}
