use drive::Format;
use node::server::{
    BalanceConfig, Inquirer, Pace, Served, ServedResp, Server, ServerConfig, Status,
};
use node::{DiskDrive, DiskOptions, MemoryKind};
use reactor::{Reactor, Remote};
use std::net::SocketAddr;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

pub(crate) const NQN: &str = "nqn.2026-11.com.example:shared";

/// About the fewest that a drive can have.
const DRIVE_BYTES: u64 = 72 << 20;

const FORMAT: Format = Format { id: [1; 16], secret: [2; 16], extent_bytes: Some(1 << 20) };

/// A drive in a file.
pub(crate) struct File {
    folder: Arc<TempDir>,
    path: PathBuf,
}

impl File {
    pub(crate) fn formatted() -> Self {
        // A system's own folder for such files is often in memory.
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let path = folder.path().join("drive.kv");
        disk::create(&path, DRIVE_BYTES).unwrap();
        let file = Arc::new(disk::File::open(&path, disk::Access::Write, None).unwrap());
        let format = async { DiskDrive::format(file, FORMAT).await.unwrap() };
        Reactor::new(None).serve(&Remote::new().unwrap(), format).unwrap();
        Self { folder: Arc::new(folder), path }
    }

    /// Serves it in so many reactors.
    pub(crate) fn serve(&self, reactors: u16) -> Scene {
        self.serve_balanced(reactors, None)
    }

    /// The same with reactors that execute commands for each other.
    pub(crate) fn serve_balanced(&self, reactors: u16, balance: Option<BalanceConfig>) -> Scene {
        let served = Served::Disk { path: self.path.clone(), options: DiskOptions::default() };
        Scene { _folder: Some(self.folder.clone()), ..Scene::of(served, reactors, balance) }
    }
}

/// Serves a drive in memory in so many reactors.
pub(crate) fn serve_memory(reactors: u16) -> Scene {
    serve_memory_balanced(reactors, None)
}

/// The same with reactors that execute commands for each other.
pub(crate) fn serve_memory_balanced(reactors: u16, balance: Option<BalanceConfig>) -> Scene {
    let (size_bytes, kind) = (DRIVE_BYTES, MemoryKind::Kv);
    Scene::of(Served::Memory { size_bytes, kind, reactors: 1 }, reactors, balance)
}

/// Serves an emulated device without latencies in so many reactors.
pub(crate) fn serve_emulated_balanced(reactors: u16, balance: Option<BalanceConfig>) -> Scene {
    let served = Served::named("ideal", Path::new(""), Pace::None).unwrap();
    Scene::of(served, reactors, balance)
}

pub(crate) struct Scene {
    pub(crate) server: Server,
    inquirer: Inquirer,
    /// Keeps the file until the server has stopped: a server whose file is removed fails.
    _folder: Option<Arc<TempDir>>,
}

impl Scene {
    /// Serves a drive to NVMe/TCP hosts and Redis clients.
    fn of(served: Served, reactors: u16, balance: Option<BalanceConfig>) -> Self {
        let reactors = NonZero::new(reactors).unwrap();
        let any = ([127, 0, 0, 1], 0).into();
        let mut config = ServerConfig::of_one(served, NQN, any, reactors);
        let resp = ServedResp::of_users(None).unwrap().at("127.0.0.1:0").unwrap();
        config.devices[0].resp = Some(resp);
        let server = Server::start(ServerConfig { http: Some(any), balance, ..config }).unwrap();
        let inquirer = Inquirer::new(server.http_address().unwrap()).unwrap();
        Self { server, inquirer, _folder: None }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.addresses()[0]
    }

    pub(crate) fn status(&self) -> Status {
        self.inquirer.ask().unwrap()
    }
}
