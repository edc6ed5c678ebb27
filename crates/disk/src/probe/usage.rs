use super::mounts::{mounts, numbers, swaps};
use crate::access::Access;
use crate::lock::{Holder, holder, lock};
use rustix::fs::{Mode, OFlags, major, minor, open};
use rustix::io::Errno;
use std::fs::{Metadata, metadata, read_dir, read_to_string};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::{fmt, io};

/// The user of a file or a block device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Usage {
    /// A file system on it, or on a partition of it.
    Mounted {
        /// The mount point.
        at: String,
        /// The mounted device, by the kernel's name for it.
        device: String,
    },
    /// The kernel swaps to it.
    Swap,
    /// Other devices are made of it, or of a partition of it: their names.
    Part(Vec<String>),
    /// A process has locked it.
    Locked(Holder),
    /// Locked or opened exclusively by a user that the kernel does not name.
    Exclusive,
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mounted { at, device } => write!(f, "is mounted ({device} at {at})"),
            Self::Swap => f.write_str("is swap space in use"),
            Self::Part(of) => write!(f, "is a part of {}", of.join(", ")),
            Self::Locked(holder) => write!(f, "is locked by {holder}"),
            Self::Exclusive => f.write_str("is opened exclusively by another program"),
        }
    }
}

/// A block device or a partition.
struct Device {
    numbers: (u32, u32),
    name: String,
    /// Its folder in sysfs.
    folder: PathBuf,
}

/// Returns the user of the file or block device at `path`.
pub(crate) fn usage(path: &Path) -> io::Result<Option<Usage>> {
    let it = metadata(path)?;
    if is_swap(&it)? {
        return Ok(Some(Usage::Swap));
    }
    let is_device = it.file_type().is_block_device();
    let part = if is_device { used_device(it.rdev())? } else { looped(&path.canonicalize()?)? };
    if part.is_some() {
        return Ok(part);
    }
    let fd = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    if !lock(fd.as_fd(), Access::Write)? {
        return Ok(Some(holder(fd.as_fd()).map_or(Usage::Exclusive, Usage::Locked)));
    }
    let exclusively = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::EXCL;
    match open(path, exclusively, Mode::empty()) {
        Err(Errno::BUSY) if is_device => Ok(Some(Usage::Exclusive)),
        _ => Ok(None),
    }
}

fn is_swap(it: &Metadata) -> io::Result<bool> {
    let same = |other: &Metadata| {
        if it.file_type().is_block_device() {
            other.file_type().is_block_device() && other.rdev() == it.rdev()
        } else {
            (other.dev(), other.ino()) == (it.dev(), it.ino())
        }
    };
    let listed = match read_to_string("/proc/swaps") {
        Ok(listed) => listed,
        // A kernel without swap has no such list.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    Ok(swaps(&listed).any(|path| metadata(path).is_ok_and(|other| same(&other))))
}

fn used_device(number: u64) -> io::Result<Option<Usage>> {
    let devices = device_and_partitions((major(number), minor(number)))?;
    let of = |numbers| devices.iter().find(|device| device.numbers == numbers);
    for mount in mounts(&read_to_string("/proc/self/mountinfo")?) {
        // A file system over several devices has a device number of its own; its source names a
        // device.
        let source = metadata(&mount.source).ok().filter(|it| it.file_type().is_block_device());
        let source = source.map(|it| (major(it.rdev()), minor(it.rdev())));
        if let Some(device) = of(mount.device).or_else(|| source.and_then(of)) {
            return Ok(Some(Usage::Mounted { at: mount.at, device: device.name.clone() }));
        }
    }
    let mut holders = Vec::new();
    for device in &devices {
        holders.extend(names(&device.folder.join("holders"))?);
    }
    Ok((!holders.is_empty()).then_some(Usage::Part(holders)))
}

/// Returns the device with these numbers and its partitions, from sysfs.
fn device_and_partitions(of: (u32, u32)) -> io::Result<Vec<Device>> {
    let folder = device_folder(of).canonicalize()?;
    let device = |folder: PathBuf, numbers| {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Device { numbers, name, folder }
    };
    let mut devices = Vec::new();
    for name in names(&folder)? {
        let part = folder.join(name);
        if part.join("partition").exists()
            && let Some(numbers) = numbers(&read_to_string(part.join("dev"))?)
        {
            devices.push(device(part, numbers));
        }
    }
    devices.push(device(folder, of));
    Ok(devices)
}

/// Returns a user of `path` under another name that prevents `access`: a loop device and its file
/// have separate locks.
pub(crate) fn other_usage(path: &Path, access: Access) -> io::Result<Option<Usage>> {
    let it = metadata(path)?;
    if !it.file_type().is_block_device() {
        return looped(&path.canonicalize()?);
    }
    let Some(file) = backing_file(it.rdev()) else { return Ok(None) };
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let Ok(fd) = open(&file, flags, Mode::empty()) else { return Ok(None) };
    let is_free = lock(fd.as_fd(), access)?;
    Ok((!is_free).then(|| holder(fd.as_fd()).map_or(Usage::Exclusive, Usage::Locked)))
}

/// Returns the backing file of a loop device, or of the loop device that has this partition.
fn backing_file(number: u64) -> Option<PathBuf> {
    let folder = device_folder((major(number), minor(number))).canonicalize().ok()?;
    let file = [folder.join("loop"), folder.parent()?.join("loop")]
        .iter()
        .find_map(|folder| read_to_string(folder.join("backing_file")).ok())?;
    Some(file.trim_end_matches('\n').into())
}

/// True when a block device is read-only.
pub(crate) fn is_read_only(path: &Path) -> io::Result<bool> {
    let number = metadata(path)?.rdev();
    let said = read_to_string(device_folder((major(number), minor(number))).join("ro"));
    Ok(said.is_ok_and(|said| said.trim_end() == "1"))
}

/// Returns the sysfs folder of the device with these numbers.
fn device_folder((major, minor): (u32, u32)) -> PathBuf {
    PathBuf::from(format!("/sys/dev/block/{major}:{minor}"))
}

/// Returns the loop device whose backing file is at `path`.
fn looped(path: &Path) -> io::Result<Option<Usage>> {
    for name in names(Path::new("/sys/block"))? {
        let backing = Path::new("/sys/block").join(&name).join("loop/backing_file");
        if read_to_string(backing).is_ok_and(|file| Path::new(file.trim_end_matches('\n')) == path)
        {
            return Ok(Some(Usage::Part(vec![name])));
        }
    }
    Ok(None)
}

/// Returns the sorted names in a folder; none if the folder does not exist.
fn names(folder: &Path) -> io::Result<Vec<String>> {
    let entries = match read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}
