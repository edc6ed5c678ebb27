//! What a path holds: images as the formats' own tools make them, and as their specifications say.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use base::Rng;
use disk::{Access, File, Found, Usage, create, probe};
use drive::{MAGIC, MAGIC_AT};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Bytes of most images: a multiple of 64 KiB, and some more.
const BYTES: u64 = (5 << 20) + 12_345;

fn folder() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// Bytes and their position.
type Part<'a> = (u64, &'a [u8]);

/// Creates a file of `bytes` zeros, except for `parts`.
fn image(folder: &TempDir, bytes: u64, parts: &[Part<'_>]) -> PathBuf {
    let path = folder.path().join("image");
    let file = std::fs::File::create(&path).unwrap();
    file.set_len(bytes).unwrap();
    for (at, part) in parts {
        file.write_all_at(part, *at).unwrap();
    }
    path
}

fn found(parts: &[Part<'_>]) -> String {
    probe(&image(&folder(), BYTES, parts)).unwrap().to_string()
}

/// Returns a boot record with one partition of this kind.
fn boot_record(kind: u8) -> Vec<u8> {
    let mut sector = vec![0; 512];
    sector[..3].copy_from_slice(b"\xeb\x58\x90");
    (sector[446], sector[450]) = (0x80, kind);
    sector[510..].copy_from_slice(&[0x55, 0xaa]);
    sector
}

#[test]
fn every_known_format_is_named() {
    let raid = 0xa92b_4efc_u32.to_le_bytes();
    let zfs = 0x00ba_b10c_u64;
    let (zfs_little, zfs_big) = (zfs.to_le_bytes(), zfs.to_be_bytes());
    let cache = b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81";
    let cases: [(u64, &[u8], &str); 33] = [
        (1_024 + 56, &0xef53_u16.to_le_bytes(), "an ext2, ext3 or ext4 file system"),
        (0, b"XFSB\0\0\x10\0", "an xfs file system"),
        (65_536 + 64, b"_BHRfS_M", "a btrfs file system"),
        (1_024, &0xf2f5_2010_u32.to_le_bytes(), "an f2fs file system"),
        (54, b"FAT12   ", "a FAT file system"),
        (54, b"FAT16   ", "a FAT file system"),
        (82, b"FAT32   ", "a FAT file system"),
        (0, b"\xeb\x76\x90EXFAT   ", "an exFAT file system"),
        (0, b"\xeb\x52\x90NTFS    ", "an NTFS file system"),
        (16 * 2_048, b"\x01CD001\x01", "an ISO 9660 file system"),
        (16 * 2_048, b"\x00BEA01\x01", "a UDF file system"),
        (4_096 - 10, b"SWAPSPACE2", "swap space"),
        (65_536 - 10, b"SWAPSPACE2", "swap space"),
        (4_096 - 10, b"SWAP-SPACE", "swap space"),
        (0, b"LUKS\xba\xbe\0\x01", "a LUKS volume"),
        (16_384, b"SKUL\xba\xbe\0\x02", "a LUKS volume"),
        (4 << 20, b"SKUL\xba\xbe\0\x02", "a LUKS volume"),
        (0, b"LABELONE", "an LVM physical volume"),
        (512, b"LABELONE", "an LVM physical volume"),
        (3 * 512, b"LABELONE", "an LVM physical volume"),
        (0, &raid, "a member of a Linux RAID"),
        (4_096, &raid, "a member of a Linux RAID"),
        // 5 MiB and 12,345 bytes: 64 KiB before the last whole 64 KiB, and on 4 KiB 8 KiB before
        // the end.
        ((5 << 20) - 65_536, &raid, "a member of a Linux RAID"),
        ((5 << 20) + 4_096, &raid, "a member of a Linux RAID"),
        (128 << 10, &zfs_little, "a member of a ZFS pool"),
        ((128 + 37) << 10, &zfs_little, "a member of a ZFS pool"),
        (255 << 10, &zfs_big, "a member of a ZFS pool"),
        (4_096 + 24, cache, "a bcache device"),
        (
            4_096 + 24,
            b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef",
            "a bcachefs file system",
        ),
        (0, b"hsqs", "a squashfs file system"),
        (0, b"sqsh", "a squashfs file system"),
        (1_024, &0xe0f5_e1e2_u32.to_le_bytes(), "an EROFS file system"),
        (0, b"QFI\xfb\0\0\0\x03", "a qcow2 image"),
    ];
    for (at, magic, what) in cases {
        assert_eq!(found(&[(at, magic)]), format!("holds {what}"), "{magic:x?} at {at}");
        // The magic must be complete and in its place.
        let first = magic.len().min(4);
        let is_other = |text: String| text == "holds data of an unknown format";
        let mut broken = magic.to_vec();
        broken.iter_mut().take(first).for_each(|byte| *byte ^= 0x10);
        if at + 8 < 1 << 20 && !matches!(magic[0], 0xeb | 0 | 1) {
            assert!(is_other(found(&[(at, &broken)])), "{broken:x?} at {at}");
            assert!(is_other(found(&[(at + 4, magic)])), "{magic:x?} at {}", at + 4);
        }
    }
}

#[test]
fn partition_tables_are_told_from_boot_records_without() {
    let (linux, protective) = (boot_record(0x83), boot_record(0xee));
    assert_eq!(found(&[(0, &linux)]), "holds a partition table (MBR)");
    assert_eq!(found(&[(0, &protective), (512, b"EFI PART")]), "holds a partition table (GPT)");
    assert_eq!(found(&[(0, &protective), (4_096, b"EFI PART")]), "holds a partition table (GPT)");
    // Only the copy is left.
    assert_eq!(found(&[(BYTES - 512, b"EFI PART")]), "holds a partition table (GPT)");
    assert_eq!(found(&[(BYTES - 4_096, b"EFI PART")]), "holds a partition table (GPT)");
    let unknown = "holds data of an unknown format";
    assert_eq!(found(&[(0, &boot_record(0))]), unknown);
    let mut code = linux.clone();
    code[462] = 0x33;
    assert_eq!(found(&[(0, &code)]), unknown, "what is no table is code");
    // A file system for a whole stick begins with a boot record.
    assert_eq!(found(&[(0, &linux), (82, b"FAT32   ")]), "holds a FAT file system");
}

#[test]
fn the_first_content_on_a_disk_counts() {
    let kvasir: (u64, &[u8]) = (MAGIC_AT, &MAGIC);
    assert_eq!(found(&[kvasir]), "holds a Kvasir drive");
    assert_eq!(found(&[kvasir, (65_600, b"_BHRfS_M")]), "holds a Kvasir drive");
    assert_eq!(found(&[kvasir, (BYTES - 512, b"EFI PART")]), "holds a Kvasir drive");
    assert_eq!(found(&[kvasir, (0, b"XFSB")]), "holds an xfs file system");
    assert_eq!(found(&[kvasir, (0, &boot_record(7))]), "holds a partition table (MBR)");
}

#[test]
fn data_is_unknown_and_zeros_are_empty() {
    let unknown = "holds data of an unknown format";
    assert_eq!(found(&[]), "is empty");
    assert_eq!(found(&[(0, &[1])]), unknown);
    assert_eq!(found(&[((1 << 20) - 1, &[1])]), unknown);
    // At the end, and as long as the distance between two sampled places.
    assert_eq!(found(&[(BYTES - 1, &[1])]), unknown);
    let long = vec![1; usize::try_from(BYTES / 1_024 + 8_192).unwrap()];
    assert_eq!(found(&[(BYTES / 3, &long)]), unknown);
    let mut random = vec![0; 100_000];
    Rng::new(1).fill(&mut random);
    assert_eq!(found(&[(0, &random)]), unknown);
    let folder = folder();
    // Shorter than the positions of some formats.
    for bytes in [0, 1, 7, 511, 512, 513, 4_095, 4_100, 70_000] {
        assert_eq!(probe(&image(&folder, bytes, &[])).unwrap(), Found::Empty, "{bytes}");
        if bytes > 0 {
            let path = image(&folder, bytes, &[(bytes - 1, b"x")]);
            assert_eq!(probe(&path).unwrap(), Found::Unknown, "{bytes}");
        }
    }
}

/// Has the tool that `script` starts with create an image; `None` if it is not installed.
fn image_of(folder: &TempDir, script: &str) -> Option<PathBuf> {
    let path = image(folder, 320 << 20, &[]);
    let run = |script: &str| {
        let mut shell = Command::new("sh");
        let tools = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap());
        shell.args(["-ec", script]).env("IMAGE", &path).env("PATH", tools).stdin(Stdio::null());
        shell.output().unwrap()
    };
    let tool = script.split(' ').next().unwrap();
    if !run(&format!("command -v {tool}")).status.success() {
        return None;
    }
    let made = run(script);
    assert!(made.status.success(), "{script}: {}", String::from_utf8_lossy(&made.stderr));
    Some(path)
}

/// For a missing tool, checks the bytes that it would write.
#[test]
fn images_of_other_tools_are_recognized() {
    let (record, protective) = (boot_record(0x83), boot_record(0xee));
    let swap = [(4_086, &b"SWAPSPACE2"[..])];
    let gpt = [(0, &protective[..]), (512, &b"EFI PART"[..])];
    let luks = "cryptsetup -q luksFormat --key-file /proc/self/comm --pbkdf pbkdf2 \
                --pbkdf-force-iterations 1000 $IMAGE";
    let cases: [(&str, &[Part<'_>], &str); 13] = [
        ("mkfs.ext4 -q -F $IMAGE", &[(1_080, &[0x53, 0xef])], "an ext2, ext3 or ext4 file system"),
        ("mkswap $IMAGE", &swap, "swap space"),
        ("mkfs.xfs -q $IMAGE", &[(0, b"XFSB")], "an xfs file system"),
        ("mkfs.btrfs -q $IMAGE", &[(65_600, b"_BHRfS_M")], "a btrfs file system"),
        ("mkfs.f2fs -q $IMAGE", &[(1_024, &[0x10, 0x20, 0xf5, 0xf2])], "an f2fs file system"),
        ("mkfs.vfat $IMAGE", &[(54, b"FAT16   ")], "a FAT file system"),
        ("mkfs.vfat -F 32 $IMAGE", &[(82, b"FAT32   ")], "a FAT file system"),
        ("mkfs.exfat $IMAGE", &[(3, b"EXFAT   ")], "an exFAT file system"),
        ("sfdisk -q -X dos $IMAGE <<-END\n,,\nEND", &[(0, &record)], "a partition table (MBR)"),
        ("sfdisk -q -X gpt $IMAGE <<-END\n,,\nEND", &gpt, "a partition table (GPT)"),
        (luks, &[(0, b"LUKS\xba\xbe")], "a LUKS volume"),
        ("mksquashfs /proc/self/comm $IMAGE -noappend", &[(0, b"hsqs")], "a squashfs file system"),
        ("qemu-img create -f qcow2 $IMAGE 9M", &[(0, b"QFI\xfb")], "a qcow2 image"),
    ];
    for (script, bytes, what) in cases {
        let folder = folder();
        let path = image_of(&folder, script).unwrap_or_else(|| image(&folder, BYTES, bytes));
        assert_eq!(probe(&path).unwrap().to_string(), format!("holds {what}"), "{script}");
    }
}

#[test]
fn the_user_of_a_disk_is_reported_before_its_content() {
    let folder = folder();
    let path = folder.path().join("disk");
    create(&path, 1 << 20).unwrap();
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().write_all_at(b"XFSB", 0).unwrap();
    let disk = File::open(&path, Access::Write, None).unwrap();
    let Found::Used(Usage::Locked(holder)) = probe(&path).unwrap() else { panic!("it is locked") };
    assert_eq!(holder.process, std::process::id());
    drop(disk);
    let reader = File::open(&path, Access::Read, None).unwrap();
    assert!(matches!(probe(&path).unwrap(), Found::Used(Usage::Locked(_))));
    drop(reader);
    assert_eq!(probe(&path).unwrap().to_string(), "holds an xfs file system");
    assert!(File::open(&path, Access::Write, None).is_ok(), "a probe keeps no lock");
}

/// A drive without its first superblock is still a drive, unless a known format replaced it.
#[test]
fn a_drive_that_another_system_overwrote_is_not_opened() {
    let folder = folder();
    let ext4 = (1_024 + 56, &0xef53_u16.to_le_bytes()[..]);
    let table = (510, &[0x55, 0xaa][..]);
    let (ours, damaged) = ((MAGIC_AT, &MAGIC[..]), (MAGIC_AT, &b"?"[..]));
    let opened = |parts: &[Part<'_>], access| {
        let image = image(&folder, BYTES, parts);
        File::open_drive(&image, access).map(|_| ()).map_err(|error| error.to_string())
    };
    for access in [Access::Read, Access::Write] {
        for parts in [&[ours][..], &[ours, ext4], &[ours, table], &[damaged], &[]] {
            assert_eq!(opened(parts, access), Ok(()), "{parts:?}");
        }
        for parts in [&[ext4][..], &[damaged, ext4]] {
            let said = opened(parts, access).unwrap_err();
            let expected = "holds an ext2, ext3 or ext4 file system: it is not a Kvasir drive";
            assert!(said.ends_with(expected), "{said}");
        }
    }
}

#[test]
fn a_path_that_is_no_disk_is_reported() {
    let folder = folder();
    assert_eq!(probe(&folder.path().join("none")).unwrap(), Found::Absent);
    assert_eq!(probe(folder.path()).unwrap(), Found::NotADisk);
    assert_eq!(probe(Path::new("/dev/null")).unwrap(), Found::NotADisk);
    let error = probe(Path::new("/dev/null/none")).unwrap_err();
    assert_eq!(error.source.kind(), ErrorKind::NotADirectory);
    assert!(error.to_string().starts_with("cannot tell what /dev/null/none holds: "));
}
