use crate::disk_drive::DURABILITIES;
use crate::memory_drive::{MEMORY_DRIVE_BYTES_MIN, MemoryKind};
use crate::{Device, DeviceError, DiskOptions, Profile, ProfileError};
use base::{SizeError, human_bytes, parse_size};
use std::path::{Path, PathBuf};

/// The largest drive in memory, which is more than machines have.
const MEMORY_BYTES_MAX: u64 = 1 << 44;

/// A device to serve, as it is to be put together.
#[derive(Clone, Debug, PartialEq)]
pub enum Served {
    /// An emulated drive.
    Emulated(Box<Profile>),
    /// A drive on a file or a block device.
    Disk {
        /// The file or device.
        path: PathBuf,
        /// How it is used.
        options: DiskOptions,
    },
    /// A drive in memory.
    Memory {
        /// Bytes that hosts see.
        size_bytes: u64,
        /// What they see.
        kind: MemoryKind,
    },
}

/// What becomes of the latencies of emulated devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// They are kept, in real time.
    Real,
    /// There are none.
    None,
}

/// Why a device cannot be served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotServed {
    /// There is none.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// It is too small or too large, or of no kind that there is.
    #[error(
        "a drive in memory is mem:SIZE, from {least} on, as mem:512MiB or mem:4GiB?kind=block, and \
         not mem:{0}",
        least = human_bytes(MEMORY_DRIVE_BYTES_MIN)
    )]
    Memory(String),
    /// Its size is a small number without a unit.
    #[error("the size of a drive in memory, mem:SIZE, is wrong: {0}")]
    MemorySize(SizeError),
    /// It has no durability and no checkpoints.
    #[error(
        "durability, checkpoint, scrub and cache are of a drive on a file or a block device: name \
         the path of one"
    )]
    NotADisk,
}

impl Served {
    /// When stores are answered, by the name that it has for drives on a disk.
    pub(super) fn durability(&self) -> &'static str {
        match self {
            Self::Emulated(_) => "emulated",
            Self::Memory { .. } => "none",
            Self::Disk { options, .. } => {
                let is_it = |(_, durability): &&(&str, _)| *durability == options.durability;
                DURABILITIES.iter().find(is_it).map_or("none", |(name, _)| name)
            }
        }
    }

    /// The device that `name` is the name of: `mem:SIZE[?kind=KIND]`, that of a profile, or the
    /// path of a drive. Paths begin in `folder` if they are not absolute.
    pub fn named(name: &str, folder: &Path, pace: Pace) -> Result<Self, NotServed> {
        if let Some(memory) = name.strip_prefix("mem:") {
            return Self::in_memory(memory);
        }
        let path = folder.join(name);
        let is_toml = path.extension().is_some_and(|end| end == "toml");
        if !is_toml && !Profile::is_built_in(name) && (name.contains('/') || path.exists()) {
            return Ok(Self::Disk { path, options: DiskOptions::of_server() });
        }
        let profile = if Profile::is_path(name) {
            Profile::load(&folder.join(name).to_string_lossy())?
        } else {
            Profile::load(name)?
        };
        Ok(Self::Emulated(Box::new(match pace {
            Pace::Real => profile,
            // A state of the one is none of the other, so they are called differently.
            Pace::None => {
                let mut profile = profile.without_delays();
                profile.name += " without delays";
                profile
            }
        })))
    }

    /// The drive in memory of `SIZE[?kind=KIND]`.
    fn in_memory(text: &str) -> Result<Self, NotServed> {
        let wrong = || NotServed::Memory(text.to_owned());
        let (size, kind) = match text.split_once("?kind=") {
            Some((size, kind)) => (size, MemoryKind::named(kind).ok_or_else(wrong)?),
            None => (text, MemoryKind::default()),
        };
        let possible = MEMORY_DRIVE_BYTES_MIN..=MEMORY_BYTES_MAX;
        match parse_size(size) {
            Ok(size_bytes) if possible.contains(&size_bytes) => {
                Ok(Self::Memory { size_bytes, kind })
            }
            Err(error @ SizeError::NoUnit(_)) => Err(NotServed::MemorySize(error)),
            _ => Err(wrong()),
        }
    }

    /// The same drive, used in another way, if it is on a disk.
    pub fn with_options(self, options: DiskOptions) -> Result<Self, NotServed> {
        match self {
            Self::Disk { path, .. } => Ok(Self::Disk { path, options }),
            _ if options == DiskOptions::of_server() => Ok(self),
            _ => Err(NotServed::NotADisk),
        }
    }

    /// Returns why the device cannot be made with `seed`, if it is an emulated one.
    pub fn check(&self, seed: u64) -> Result<(), DeviceError> {
        match self {
            Self::Emulated(profile) => Device::check(profile, seed),
            Self::Disk { .. } | Self::Memory { .. } => Ok(()),
        }
    }

    /// What it is, in a line.
    pub fn description(&self) -> &str {
        match self {
            Self::Emulated(profile) => &profile.description,
            Self::Disk { .. } => "keys and values on a disk",
            Self::Memory { kind: MemoryKind::Kv, .. } => "keys and values in memory",
            Self::Memory { kind: MemoryKind::Block, .. } => "blocks in memory",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_in_memory_has_a_size_and_a_kind() {
        let named = |name: &str| Served::named(name, Path::new("."), Pace::None);
        let (size_bytes, kind) = (64 << 20, MemoryKind::Block);
        assert_eq!(named("mem:64MiB?kind=block"), Ok(Served::Memory { size_bytes, kind }));
        let kind = MemoryKind::Kv;
        assert_eq!(named("mem:64MiB?kind=kv"), Ok(Served::Memory { size_bytes, kind }));
        assert_eq!(named("mem:64MiB"), Ok(Served::Memory { size_bytes, kind }));
        for wrong in ["64MiB?kind=zoned", "64MiB?", "64MiB?seed=1", "1KiB", "x", ""] {
            let error = named(&format!("mem:{wrong}")).unwrap_err().to_string();
            let end = format!("as mem:512MiB or mem:4GiB?kind=block, and not mem:{wrong}");
            assert!(error.ends_with(&end), "{error}");
        }
        let error = named("mem:64").unwrap_err().to_string();
        assert!(error.ends_with("64 has no unit: write 64MiB for mebibytes, or 64B for bytes"));
    }
}
