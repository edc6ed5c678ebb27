use crate::memory_drive::MEMORY_DRIVE_BYTES_MIN;
use crate::{Profile, ProfileError};
use base::{human_bytes, parse_size};
use std::path::Path;

/// The largest drive in memory, which is more than machines have.
const MEMORY_BYTES_MAX: u64 = 1 << 44;

/// A device to serve, as it is to be put together.
#[derive(Clone, Debug, PartialEq)]
pub enum Served {
    /// An emulated drive.
    Emulated(Box<Profile>),
    /// A drive in memory.
    Memory {
        /// Bytes that hosts see.
        size_bytes: u64,
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
    /// It is too small or too large, or that is no size.
    #[error(
        "a drive in memory is mem:SIZE, from {least} on, as mem:512MiB or mem:4GiB, and not \
         mem:{0}",
        least = human_bytes(MEMORY_DRIVE_BYTES_MIN)
    )]
    MemorySize(String),
}

impl Served {
    /// The device that `name` is the name of: `mem:SIZE`, or that of a profile, whose path begins
    /// in `folder` if it is not absolute.
    pub fn named(name: &str, folder: &Path, pace: Pace) -> Result<Self, NotServed> {
        if let Some(size) = name.strip_prefix("mem:") {
            let possible = MEMORY_DRIVE_BYTES_MIN..=MEMORY_BYTES_MAX;
            let size_bytes = parse_size(size).ok().filter(|size| possible.contains(size));
            let size_bytes = size_bytes.ok_or_else(|| NotServed::MemorySize(size.to_owned()))?;
            return Ok(Self::Memory { size_bytes });
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

    /// What it is, in a line.
    pub fn description(&self) -> &str {
        match self {
            Self::Emulated(profile) => &profile.description,
            Self::Memory { .. } => "keys and values in memory",
        }
    }
}
