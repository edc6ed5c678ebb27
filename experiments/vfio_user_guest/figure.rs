use crate::guest::Guest;
use node::Profile;
use node::server::{Doorbells, Served as Drive, Server, ServerConfig};
use serde_json::Value;
use std::num::NonZero;
use std::path::PathBuf;
use tempfile::TempDir;

/// The flash of `ideal` with a namespace of blocks.
const BLOCKS: &str = include_str!("../shared/loopback/ideal-blocks.toml");

const NQN: &str = "nqn.2026-11.org.example:guest";

/// Bytes that are written first and then read, as in the experiment `vfio_user`.
const SIZE: &str = "128m";

/// A server of one reactor in this process, for one guest.
pub(crate) struct Served {
    server: Server,
    /// Has its vfio-user socket.
    folder: TempDir,
}

impl Served {
    /// Serves blocks on the flash of `ideal`, without delays.
    pub(crate) fn start(doorbells: Doorbells) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let profile = Profile::parse("ideal.toml", BLOCKS).expect("the file is a profile");
        let drive = Drive::Emulated(Box::new(profile.without_delays()));
        let address = ([127, 0, 0, 1], 0).into();
        let mut config = ServerConfig::of_one(drive, NQN, address, NonZero::<u16>::MIN);
        config.subsystems[0].vfio_user = vec![socket_in(&folder)];
        config.subsystems[0].doorbells = doorbells;
        let server = Server::start(config).expect("loopback has a free port");
        Self { server, folder }
    }

    /// Returns the path of its vfio-user socket.
    pub(crate) fn socket(&self) -> PathBuf {
        socket_in(&self.folder)
    }

    pub(crate) fn stop(self) {
        self.server.stop().expect("the server served");
    }
}

fn socket_in(folder: &TempDir) -> PathBuf {
    folder.path().join("vm.sock")
}

/// Reads random blocks for ten seconds, and returns the reads a second. The blocks are written
/// first: the device reads no flash for blocks that were never written.
pub(crate) fn reads_a_second(guest: &mut Guest) -> f64 {
    let device = guest.block_device(1);
    let fio = format!("fio --name=blocks --filename={device} --direct=1 --ioengine=libaio");
    guest.succeed(&format!("{fio} --iodepth=4 --rw=write --bs=128k --size={SIZE}"));
    let said = guest.succeed(&format!(
        "{fio} --iodepth=32 --rw=randread --bs=4k --size={SIZE} --norandommap --time_based \
         --ramp_time=2 --runtime=10 --output-format=json"
    ));
    let report: Value = serde_json::from_str(&said).expect("fio reports in JSON");
    let job = &report["jobs"][0];
    assert_eq!(job["error"], 0, "{said}");
    job["read"]["iops"].as_f64().expect("fio counts reads")
}
