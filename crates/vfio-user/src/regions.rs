//! The regions of a PCI device, by the indexes of `linux/vfio.h`.

use crate::wire::RegionInfo;
use pcie::{PciFunction, Region};

/// BAR 0 to 5, the expansion ROM, configuration space and VGA.
pub(crate) const REGIONS: u32 = 9;

/// `VFIO_PCI_BAR0_REGION_INDEX`.
const BAR0: u32 = 0;
/// `VFIO_PCI_CONFIG_REGION_INDEX`.
const CONFIG: u32 = 7;

/// Returns the region of an index that the function has.
pub(crate) fn region(index: u32) -> Option<Region> {
    match index {
        BAR0 => Some(Region::Bar0),
        CONFIG => Some(Region::Config),
        _ => None,
    }
}

/// Returns what the client learns of the region of an index below [`REGIONS`]. It accesses regions
/// by messages: none can be mapped.
pub(crate) fn info(function: &dyn PciFunction, index: u32) -> RegionInfo {
    let size = region(index).map_or(0, |region| function.bytes(region));
    let flags = if size > 0 { RegionInfo::READ | RegionInfo::WRITE } else { 0 };
    let argsz = size_of::<RegionInfo>().try_into().expect("the structure has 32 bytes");
    RegionInfo { argsz, flags, index, cap_offset: 0, size, offset: 0 }
}
