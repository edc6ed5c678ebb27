use super::disk::Disk;
use std::io;

/// The header of a GUID partition table (UEFI 2.10, 5.3.2), in the second logical block and, as a
/// copy, in the last.
const GPT: &[u8] = b"EFI PART";

/// The supported bytes of a logical block.
const BLOCKS: [u64; 2] = [512, 4_096];

/// The last bytes of a boot record (UEFI 2.10, 5.2.1).
const BOOT: [u8; 2] = [0x55, 0xaa];
const BOOT_AT: usize = 510;

/// The four entries before them, of 16 bytes each: in each the first says whether the machine is
/// started from it, and another of what kind it is.
const ENTRIES_AT: usize = 446;
const ENTRY_BYTES: usize = 16;
const KIND_AT: usize = 4;

/// Returns the position and the name of a disk's partition table.
pub(super) fn partitions(disk: &Disk<'_>) -> io::Result<Option<(u64, &'static str)>> {
    let copies = BLOCKS.iter().filter_map(|block| disk.len.checked_sub(*block));
    let record = disk.bytes::<512>(0)?.is_some_and(|sector| is_table(&sector));
    for at in BLOCKS.into_iter().chain(copies) {
        if disk.has(at, GPT)? {
            // The boot record before it only protects it.
            return Ok(Some((if record { BOOT_AT as u64 } else { at }, "GPT")));
        }
    }
    Ok(record.then_some((BOOT_AT as u64, "MBR")))
}

/// True when a sector is a boot record with a partition. Those of FAT and of boot loaders end with
/// the same bytes, but have code in place of the table.
fn is_table(sector: &[u8; 512]) -> bool {
    let mut entries = sector[ENTRIES_AT..BOOT_AT].chunks_exact(ENTRY_BYTES);
    sector[BOOT_AT..] == BOOT
        && entries.clone().all(|entry| matches!(entry[0], 0 | 0x80))
        && entries.any(|entry| entry[KIND_AT] != 0)
}
