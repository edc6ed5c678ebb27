//! `kvasir serve`: a device that NVMe hosts on a network can use.
//!
//! 1. [`address`] reads where; the device is a profile, with its delays or without, or memory.
//! 2. `node::server` serves it on threads of its own, and this one waits for a signal.
//! 3. [`report`] says how it was.

mod address;
mod report;

use crate::args::{ServeArgs, ServeClock};
use crate::device;
use crate::output::{Failure, Output};
use base::checksum::hash64;
use base::{human_bytes, parse_size};
use node::server::{Served, Server, ServerConfig, ServerError};
use node::{MEMORY_DRIVE_BYTES_MIN, Profile};
use report::{Listening, Stopped};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::{self, Write};

/// The largest drive in memory, which is more than machines have.
const MEMORY_BYTES_MAX: u64 = 1 << 44;

/// Serves the device that `args` name until a signal ends it.
pub(crate) fn run(args: &ServeArgs) -> Result<Output, Failure> {
    let nvme_tcp = address::parse(&args.nvme_tcp)?;
    let (served, description) = served(args)?;
    let config = ServerConfig {
        served,
        seed: args.seed,
        nqn: args.nqn.clone().unwrap_or_else(|| default_nqn(&args.device, args.seed)),
        serial: format!("{:016X}", hash64(identity(&args.device, args.seed).as_bytes())),
        nvme_tcp,
        reactors: args.cores,
    };
    // Before the threads start, so that all leave signals to this one.
    let mut signals = Signals::new([SIGINT, SIGTERM])
        .map_err(|error| Failure::Broken(format!("signals cannot be waited for: {error}")))?;
    let server = Server::start(config).map_err(failure)?;
    say(&Listening::new(args, &server, description), args.json)?;
    let (stopper, handle) = (server.stopper(), signals.handle());
    let waiting = std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            stopper.stop();
        }
    });
    let served = server.join();
    handle.close();
    // It has nothing left to wait for, and nothing that can fail.
    let _ = waiting.join();
    let stopped = Stopped::new(args, &served.map_err(failure)?);
    Ok(if args.json { Output::json(&stopped) } else { Output::new(stopped.text()) })
}

/// The device, and what it is in a line.
fn served(args: &ServeArgs) -> Result<(Served, String), Failure> {
    if let Some(size) = args.device.strip_prefix("mem:") {
        let possible = MEMORY_DRIVE_BYTES_MIN..=MEMORY_BYTES_MAX;
        let size_bytes = parse_size(size).ok().filter(|size| possible.contains(size));
        let size_bytes = size_bytes.ok_or_else(|| {
            let least = human_bytes(MEMORY_DRIVE_BYTES_MIN);
            Failure::Refused(format!(
                "a drive in memory is mem:SIZE, from {least} on, as mem:512MiB or mem:4GiB, and \
                 not mem:{size}"
            ))
        })?;
        return Ok((Served::Memory { size_bytes }, "keys and values in memory".to_owned()));
    }
    let profile = device::load(&args.device)?;
    let description = profile.description.clone();
    let profile = match args.clock {
        ServeClock::Real => profile,
        ServeClock::None => Profile::without_delays(profile),
    };
    Ok((Served::Emulated(Box::new(profile)), description))
}

/// What tells a device from others.
fn identity(device: &str, seed: u64) -> String {
    format!("{device}#{seed}")
}

/// A name that is the same each time that the same device is served (Base 2.1, NVMe Qualified
/// Names, the form with a UUID; RFC 9562, version 8).
fn default_nqn(device: &str, seed: u64) -> String {
    let name = identity(device, seed);
    let (high, low) = (hash64(name.as_bytes()), hash64(format!("{name}#").as_bytes()));
    let version = high & !0xf000 | 0x8000;
    let variant = low & !(0b11 << 62) | 0b10 << 62;
    format!(
        "nqn.2014-08.org.nvmexpress:uuid:{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        version >> 32,
        version >> 16 & 0xffff,
        version & 0xffff,
        variant >> 48,
        variant & 0xffff_ffff_ffff
    )
}

fn failure(error: ServerError) -> Failure {
    match error {
        ServerError::Name(_) | ServerError::Listen { .. } => Failure::refused(error),
        ServerError::Device(error) => crate::rig::device_failure(error),
        ServerError::Reactor(_) | ServerError::Machine(_) => Failure::Broken(error.to_string()),
    }
}

/// Prints at once what others wait for.
fn say(listening: &Listening, is_json: bool) -> Result<(), Failure> {
    let text = if is_json {
        serde_json::to_string(listening).expect("it has only names as keys") + "\n"
    } else {
        listening.text()
    };
    let mut stdout = io::stdout().lock();
    let said = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    said.map_err(|error| Failure::Broken(format!("the output cannot be written: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_name_has_a_uuid_and_is_that_of_the_device_and_its_seed() {
        let name = default_nqn("moke", 1);
        let uuid = name.strip_prefix("nqn.2014-08.org.nvmexpress:uuid:").unwrap();
        let parts: Vec<&str> = uuid.split('-').collect();
        assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
        assert!(parts[2].starts_with('8') && "89ab".contains(&parts[3][..1]), "{uuid}");
        assert_eq!(name, default_nqn("moke", 1));
        assert_ne!(name, default_nqn("moke", 2));
        assert_ne!(name, default_nqn("ideal", 1));
    }
}
