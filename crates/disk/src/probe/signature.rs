/// Bytes by which others know their own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signature {
    /// The positions, in bytes from the start, or a constant for one that depends on the disk's
    /// size.
    pub(super) at: &'static [u64],
    pub(super) magic: &'static [u8],
    pub(super) what: &'static str,
}

/// Means the position of Linux's oldest RAID superblocks: 64 KiB before the end, which is rounded
/// down to 64 KiB (kernel `include/uapi/linux/raid/md_p.h`, `MD_NEW_SIZE_SECTORS`).
const MD_0_90: u64 = u64::MAX;

/// Means the position of those of version 1.0: at least 8 KiB before the end, on 4 KiB (kernel
/// `drivers/md/md.c`, `super_1_load`).
const MD_1_0: u64 = u64::MAX - 1;

impl Signature {
    /// Returns its positions on a disk of `len` bytes.
    pub(super) fn places(&self, len: u64) -> impl Iterator<Item = u64> {
        self.at.iter().filter_map(move |at| match *at {
            MD_0_90 => (len & !0xffff).checked_sub(0x1_0000),
            MD_1_0 => len.checked_sub(0x2000).map(|at| at & !0xfff),
            at => Some(at),
        })
    }
}

const fn known(at: &'static [u64], magic: &'static [u8], what: &'static str) -> Signature {
    Signature { at, magic, what }
}

/// Uberblocks of a ZFS label: 128 KiB into it, a KiB or more each (ZFS on-disk specification,
/// 1.3.3). They are written in turn, so that any may be the first.
const ZFS: [u64; 128] = {
    let mut places = [0; 128];
    let mut at = 0;
    while at < 128 {
        places[at] = 0x2_0000 + at as u64 * 0x400;
        at += 1;
    }
    places
};

/// What is known, with where its bytes are said to be. Offsets are of the first byte of the magic.
///
/// | what | source |
/// |---|---|
/// | ext2, ext3, ext4 | kernel `Documentation/filesystems/ext4/super.rst`: at 1024, its 0x38 |
/// | xfs | kernel `fs/xfs/libxfs/xfs_format.h`, `XFS_SB_MAGIC` |
/// | btrfs | kernel `include/uapi/linux/btrfs_tree.h`: superblock at 64 KiB, magic at 0x40 |
/// | f2fs | kernel `include/linux/f2fs_fs.h`: superblock at 1024, magic 0xF2F52010 |
/// | FAT | Microsoft FAT specification: `BS_FilSysType` at 54 or 82 |
/// | exFAT | Microsoft exFAT specification, 3.1.2 |
/// | NTFS | kernel `fs/ntfs3/ntfs.h`, `struct NTFS_BOOT` |
/// | ISO 9660, UDF | ECMA-119 8.1, ECMA-167 2/9.1: descriptors from sector 16 of 2048 bytes |
/// | swap | kernel `include/linux/swap.h`: the last ten bytes of the first page |
/// | LUKS | LUKS1 2.1; LUKS2 2.1: a second header at one of these places |
/// | LVM | LVM2 `lib/label/label.h`: in one of the first four sectors |
/// | RAID | kernel `include/uapi/linux/raid/md_p.h`: `MD_SB_MAGIC` 0xA92B4EFC |
/// | ZFS | ZFS on-disk specification 1.3.3: 0x00BAB10C, in the byte order of its writer |
/// | bcache | bcache-tools `bcache.h`: superblock at 4096, magic at 24 |
/// | bcachefs | bcachefs-tools `libbcachefs/bcachefs_format.h`: the same |
/// | squashfs | kernel `fs/squashfs/squashfs_fs.h`, `SQUASHFS_MAGIC` |
/// | EROFS | kernel `fs/erofs/erofs_fs.h`: superblock at 1024, magic 0xE0F5E1E2 |
/// | qcow2 | QEMU `docs/interop/qcow2.rst` |
pub(super) const SIGNATURES: &[Signature] = &[
    known(&[0x438], &[0x53, 0xef], "an ext2, ext3 or ext4 file system"),
    known(&[0], b"XFSB", "an xfs file system"),
    known(&[0x1_0040], b"_BHRfS_M", "a btrfs file system"),
    known(&[0x400], &[0x10, 0x20, 0xf5, 0xf2], "an f2fs file system"),
    known(&[54], b"FAT12   ", "a FAT file system"),
    known(&[54], b"FAT16   ", "a FAT file system"),
    known(&[54], b"FAT     ", "a FAT file system"),
    known(&[82], b"FAT32   ", "a FAT file system"),
    known(&[3], b"EXFAT   ", "an exFAT file system"),
    known(&[3], b"NTFS    ", "an NTFS file system"),
    known(&[0x8001], b"CD001", "an ISO 9660 file system"),
    known(&[0x8001], b"BEA01", "a UDF file system"),
    known(&[0xff6, 0x1ff6, 0x3ff6, 0xfff6], b"SWAPSPACE2", "swap space"),
    known(&[0xff6, 0x1ff6, 0x3ff6, 0xfff6], b"SWAP-SPACE", "swap space"),
    known(&[0], b"LUKS\xba\xbe", "a LUKS volume"),
    known(
        &[0x4000, 0x8000, 0x1_0000, 0x2_0000, 0x4_0000, 0x8_0000, 0x10_0000, 0x20_0000, 0x40_0000],
        b"SKUL\xba\xbe",
        "a LUKS volume",
    ),
    known(&[0, 0x200, 0x400, 0x600], b"LABELONE", "an LVM physical volume"),
    known(&[0, 0x1000, MD_1_0, MD_0_90], &[0xfc, 0x4e, 0x2b, 0xa9], "a member of a Linux RAID"),
    known(&ZFS, &[0x0c, 0xb1, 0xba, 0, 0, 0, 0, 0], "a member of a ZFS pool"),
    known(&ZFS, &[0, 0, 0, 0, 0, 0xba, 0xb1, 0x0c], "a member of a ZFS pool"),
    known(
        &[0x1018],
        b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81",
        "a bcache device",
    ),
    known(
        &[0x1018],
        b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef",
        "a bcachefs file system",
    ),
    known(&[0], b"hsqs", "a squashfs file system"),
    known(&[0], b"sqsh", "a squashfs file system"),
    known(&[0x400], &[0xe2, 0xe1, 0xf5, 0xe0], "an EROFS file system"),
    known(&[0], b"QFI\xfb", "a qcow2 image"),
];
