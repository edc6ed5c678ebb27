use crate::disk_drive::DURABILITIES;
use crate::memory_drive::{MEMORY_DRIVE_BYTES_MIN, MemoryKind};
use crate::{Device, DeviceError, DiskOptions, Profile, ProfileError};
use base::{SizeError, human_bytes, parse_size};
use std::path::{Path, PathBuf};

/// Maximum drive in memory, more than machines have.
const MEMORY_BYTES_MAX: u64 = 1 << 44;

/// The description of a device to serve.
#[derive(Clone, Debug, PartialEq)]
pub enum Served {
    /// An emulated drive.
    Emulated(Box<Profile>),
    /// A drive on a file or a block device.
    Disk {
        /// The file or device.
        path: PathBuf,
        /// Its options.
        options: DiskOptions,
    },
    /// A drive in memory.
    Memory {
        /// Size for hosts in bytes.
        size_bytes: u64,
        /// Kind of its namespace.
        kind: MemoryKind,
        /// How many reactors use it.
        reactors: u32,
    },
}

/// How a server treats the latencies of emulated devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Emulated in real time.
    Real,
    /// Not emulated.
    None,
}

/// Why a device cannot be served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotServed {
    /// The profile cannot be loaded.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// The drive in memory is too small, too large, or of an unknown kind.
    #[error(
        "a drive in memory is mem:SIZE, from {least} on, as mem:512MiB or mem:4GiB?kind=block, and \
         not mem:{0}",
        least = human_bytes(MEMORY_DRIVE_BYTES_MIN)
    )]
    Memory(String),
    /// The size is a small number without a unit.
    #[error("the size of a drive in memory, mem:SIZE, is wrong: {0}")]
    MemorySize(SizeError),
    /// Options of a disk were given for another device.
    #[error(
        "durability, checkpoint, scrub and cache are of a drive on a file or a block device: name \
         the path of one"
    )]
    NotADisk,
}

impl Served {
    /// Returns when stores are acknowledged, by the name that it has for drives on a disk.
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

    /// Parses the name of a device: `mem:SIZE[?kind=KIND]`, a profile, or the path of a drive.
    /// Relative paths start in `folder`.
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
            // The states of both are incompatible, so the devices need different names.
            Pace::None => {
                let mut profile = profile.without_delays();
                profile.name += " without delays";
                profile
            }
        })))
    }

    /// Parses `SIZE[?kind=KIND]` of a drive in memory.
    fn in_memory(text: &str) -> Result<Self, NotServed> {
        let wrong = || NotServed::Memory(text.to_owned());
        let (size, kind) = match text.split_once("?kind=") {
            Some((size, kind)) => (size, MemoryKind::named(kind).ok_or_else(wrong)?),
            None => (text, MemoryKind::default()),
        };
        let possible = MEMORY_DRIVE_BYTES_MIN..=MEMORY_BYTES_MAX;
        match parse_size(size) {
            Ok(size_bytes) if possible.contains(&size_bytes) => {
                Ok(Self::Memory { size_bytes, kind, reactors: 1 })
            }
            Err(error @ SizeError::NoUnit(_)) => Err(NotServed::MemorySize(error)),
            _ => Err(wrong()),
        }
    }

    /// Returns the drive with other options. Fails if it is not on a disk.
    pub fn with_options(self, options: DiskOptions) -> Result<Self, NotServed> {
        match self {
            Self::Disk { path, .. } => Ok(Self::Disk { path, options }),
            _ if options == DiskOptions::of_server() => Ok(self),
            _ => Err(NotServed::NotADisk),
        }
    }

    /// Returns the drive as one that so many reactors use, if they can share it.
    pub(super) fn used_by(mut self, by: u32) -> Self {
        match &mut self {
            Self::Disk { options, .. } => options.reactors = by,
            Self::Memory { reactors, .. } => *reactors = by,
            Self::Emulated(_) => {}
        }
        self
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
        assert_eq!(
            named("mem:64MiB?kind=block"),
            Ok(Served::Memory { size_bytes, kind, reactors: 1 })
        );
        let kind = MemoryKind::Kv;
        assert_eq!(
            named("mem:64MiB?kind=kv"),
            Ok(Served::Memory { size_bytes, kind, reactors: 1 })
        );
        assert_eq!(named("mem:64MiB"), Ok(Served::Memory { size_bytes, kind, reactors: 1 }));
        for wrong in ["64MiB?kind=zoned", "64MiB?", "64MiB?seed=1", "1KiB", "x", ""] {
            let error = named(&format!("mem:{wrong}")).unwrap_err().to_string();
            let end = format!("as mem:512MiB or mem:4GiB?kind=block, and not mem:{wrong}");
            assert!(error.ends_with(&end), "{error}");
        }
        let error = named("mem:64").unwrap_err().to_string();
        assert!(error.ends_with("64 has no unit: write 64MiB for mebibytes, or 64B for bytes"));
    }
}
