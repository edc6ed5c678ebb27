//! A drive on a file of a folder.

use disk::{Access, File, create};
use drive::{Durability, Format};
use node::server::Served;
use node::{DiskDrive, DiskOptions};
use reactor::{Reactor, Remote};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Enough that cleaning finds victims nearly empty.
const DRIVE_BYTES: u64 = 2 << 30;

/// Bytes of each write that fills the file.
const FILL_BYTES: usize = 1 << 20;

/// The file of a drive. Dropping this removes it.
pub(crate) struct FileDrive(PathBuf);

impl FileDrive {
    /// Creates a file called `name` in `folder`, and formats it. Writes all of it
    /// first, because file systems are slower on the first write to a block.
    pub(crate) fn new(folder: &Path, name: &str) -> Result<Self, String> {
        let path = folder.join(format!("kvasir-stages-{name}-{}.kv", std::process::id()));
        create(&path, DRIVE_BYTES).map_err(|error| error.to_string())?;
        let drive = Self(path);
        drive.fill().map_err(|error| format!("cannot fill {}: {error}", drive.0.display()))?;
        drive.format().map_err(|error| format!("cannot format {}: {error}", drive.0.display()))?;
        Ok(drive)
    }

    /// Returns the drive as a device of a server.
    pub(crate) fn served(&self) -> Served {
        Served::Disk { path: self.0.clone(), options: options() }
    }

    /// Opens the drive on this thread's reactor.
    pub(crate) async fn open(&self) -> DiskDrive {
        let file = File::open(&self.0, Access::Write, None).expect("no other process has it");
        DiskDrive::open(Arc::new(file), options()).await.expect("the drive is whole")
    }

    fn fill(&self) -> std::io::Result<()> {
        let mut file = OpenOptions::new().write(true).open(&self.0)?;
        let zeros = vec![0; FILL_BYTES];
        for _ in 0..DRIVE_BYTES / FILL_BYTES as u64 {
            file.write_all(&zeros)?;
        }
        file.sync_all()
    }

    fn format(&self) -> Result<(), String> {
        let file = File::open(&self.0, Access::Write, None).map_err(|error| error.to_string())?;
        let remote = Remote::new().map_err(|error| error.to_string())?;
        let format = Format { id: [1; 16], secret: [2; 16], extent_bytes: None };
        let formatted =
            Reactor::new(None).serve(&remote, DiskDrive::format(Arc::new(file), format));
        let (formatted, _) = formatted.map_err(|error| error.to_string())?;
        formatted.map(drop).map_err(|error| error.to_string())
    }
}

/// Returns options without a cache of values and without a scrub. Stores are acknowledged when they
/// are written.
fn options() -> DiskOptions {
    let durability = Durability::Capacitor;
    DiskOptions { durability, scrub_rate: 0, cache_bytes: 0, ..DiskOptions::default() }
}

impl Drop for FileDrive {
    fn drop(&mut self) {
        // An error leaves the file in the folder that the user has named.
        let _ = fs::remove_file(&self.0);
    }
}
