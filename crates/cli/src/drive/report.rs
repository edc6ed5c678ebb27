use crate::number::{counted, grouped};
use crate::path::shown;
use crate::table;
use base::human_bytes;
use drive::DriveInfo;
use serde::Serialize;
use std::fmt::Write;
use std::path::Path;

/// A drive, as its superblock describes it.
#[derive(Debug, Serialize)]
pub(crate) struct DriveReport {
    path: String,
    /// The id that hosts see, in hexadecimal.
    id: String,
    size_bytes: u64,
    /// Most bytes of pairs, headers and padding included.
    capacity_bytes: u64,
    unit_bytes: u32,
    extent_bytes: u64,
    extents: u32,
    /// Number of times it was opened for writing.
    mounts: u32,
}

impl DriveReport {
    pub(crate) fn new(path: &Path, info: &DriveInfo) -> Self {
        let id = info.id.iter().fold(String::new(), |mut id, byte| {
            write!(id, "{byte:02x}").expect("a string takes any text");
            id
        });
        Self {
            path: shown(path),
            id,
            size_bytes: info.size_bytes,
            capacity_bytes: node::capacity_bytes(info),
            unit_bytes: info.unit_bytes,
            extent_bytes: info.extent_bytes,
            extents: info.extents,
            mounts: info.mounts,
        }
    }

    pub(crate) const fn extent_bytes(&self) -> u64 {
        self.extent_bytes
    }

    /// Returns the text after a format.
    pub(crate) fn formatted(&self) -> String {
        format!("{} is an empty drive\n\n{}", self.path, self.facts())
    }

    /// Returns the text for an existing drive.
    pub(crate) fn described(&self) -> String {
        let mounts = table::facts(&[("opened", counted(self.mounts.into(), "time"))]);
        format!("{} is a Kvasir drive\n\n{}{mounts}", self.path, self.facts())
    }

    pub(crate) fn facts(&self) -> String {
        let extents =
            format!("{} of {}", grouped(self.extents.into()), human_bytes(self.extent_bytes));
        table::facts(&[
            ("id", self.id.clone()),
            ("size", human_bytes(self.size_bytes)),
            ("room for pairs", human_bytes(self.capacity_bytes)),
            ("units", format!("{} bytes", self.unit_bytes)),
            ("extents", extents),
        ])
    }
}
