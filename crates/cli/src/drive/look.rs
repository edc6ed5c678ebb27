use super::{failure, serve};
use crate::output::Failure;
use crate::path::shown;
use base::Key;
use disk::{Access, File, Found, OpenError, Usage, probe};
use node::{DiskError, DiskLook};
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

/// The program's name in the process table.
const PROGRAM: &str = "kvasir";

/// Opens the drive at `path` read-only and runs `act` with it, in a reactor.
pub(super) fn look<T, F>(
    path: &Path,
    act: impl FnOnce(Arc<File>, DiskLook) -> F,
) -> Result<T, Failure>
where
    F: Future<Output = Result<T, Failure>>,
{
    // Probe the file before this process locks it.
    let found = probe(path).map_err(Failure::refused)?;
    let file = match File::open_drive(path, Access::Read) {
        Ok(file) => Arc::new(file),
        Err(error) => return Err(not_opened(path, &error)),
    };
    serve(async {
        let opened = DiskLook::open(file.clone()).await;
        let drive = opened.map_err(|error| match error {
            DiskError::Medium(drive::OpenError::NotADrive) => not_a_drive(path, &found),
            error => failure(path, &file, &error),
        })?;
        act(file, drive).await
    })
}

fn not_opened(path: &Path, error: &OpenError) -> Failure {
    match error {
        OpenError::InUse { usage: Some(Usage::Locked(holder)), .. }
            if holder.program.as_deref() == Some(PROGRAM) =>
        {
            Failure::Refused(format!(
                "{} is in use by process {} ({PROGRAM}): stop that process first; kvasir top shows \
                 what a server does",
                shown(path),
                holder.process
            ))
        }
        error => Failure::refused(error),
    }
}

fn not_a_drive(path: &Path, found: &Found) -> Failure {
    let path = shown(path);
    Failure::Refused(match found {
        // The file has a superblock, and neither copy is readable.
        Found::Kvasir | Found::Used(_) | Found::Absent | Found::NotADisk => {
            format!("{path} holds no readable Kvasir drive")
        }
        found => format!("{path} {found}: it is not a Kvasir drive"),
    })
}

/// Returns `key` as text if it is text, otherwise in hexadecimal.
pub(super) fn readable(key: &Key) -> String {
    let bytes = key.as_bytes();
    if bytes.iter().all(|byte| byte.is_ascii_graphic() && !b"\"\\".contains(byte)) {
        format!("\"{}\"", bytes.escape_ascii())
    } else {
        format!("0x{}", hex(bytes))
    }
}

/// Returns two digits for each byte.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes any text");
        text
    })
}
