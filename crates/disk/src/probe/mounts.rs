/// A mount, of those that the kernel lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mount {
    /// The device of its files: major and minor number. Some file systems have a device number of
    /// their own.
    pub(super) device: (u32, u32),
    /// The mount point.
    pub(super) at: String,
    /// The mounted source.
    pub(super) source: String,
}

/// Parses the mounts of `/proc/self/mountinfo` (`proc_pid_mountinfo(5)`).
pub(super) fn mounts(mountinfo: &str) -> impl Iterator<Item = Mount> {
    mountinfo.lines().filter_map(|line| {
        let (front, back) = line.split_once(" - ")?;
        let front: Vec<&str> = front.split(' ').collect();
        let [_, _, device, _, at, ..] = front[..] else { return None };
        Some(Mount {
            device: numbers(device)?,
            at: unescaped(at),
            source: unescaped(back.split(' ').nth(1)?),
        })
    })
}

/// Parses the files and devices of `/proc/swaps` (`proc_swaps(5)`).
pub(super) fn swaps(swaps: &str) -> impl Iterator<Item = String> {
    swaps.lines().skip(1).filter_map(|line| line.split_whitespace().next().map(unescaped))
}

/// Parses the numbers of a device, as "major:minor".
pub(super) fn numbers(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.trim().split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Decodes blanks, line ends and backslashes, which are three octal digits after a backslash.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let octal = after.get(..3).filter(|_| *first == b'\\');
        let octal = octal.and_then(|digits| str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first is the example of `proc_pid_mountinfo(5)`.
    const MOUNTINFO: &str = "\
36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
37 35 0:45 /@home /with\\040blank\\134 rw shared:2 master:3 - btrfs /dev/sda1 rw,subvol=/@home
38 35 259:17 / /data rw - xfs /dev/nvme0n1p3 rw
";

    #[test]
    fn mounts_have_a_device_a_place_and_a_source() {
        let mount =
            |device, at: &str, source: &str| Mount { device, at: at.into(), source: source.into() };
        assert_eq!(
            mounts(MOUNTINFO).collect::<Vec<_>>(),
            [
                mount((98, 0), "/mnt2", "/dev/root"),
                mount((0, 45), "/with blank\\", "/dev/sda1"),
                mount((259, 17), "/data", "/dev/nvme0n1p3"),
            ]
        );
        assert_eq!(mounts("").count(), 0);
    }

    #[test]
    fn swaps_are_devices_and_files() {
        let text = "\
Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority
/dev/sda2                               partition\t8388604\t\t0\t\t-2
/swap\\040file                           file\t\t1048572\t\t0\t\t-3
";
        assert_eq!(swaps(text).collect::<Vec<_>>(), ["/dev/sda2", "/swap file"]);
    }
}
