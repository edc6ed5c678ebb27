use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The most time that a server may take to start.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The data that survives a loss of power.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mode {
    /// None: memory only.
    Memory,
    /// All but the last second's.
    EverySec,
    /// All acknowledged data.
    Group,
}

impl Mode {
    pub(crate) const ALL: [Self; 3] = [Self::Memory, Self::EverySec, Self::Group];
}

/// A Redis server, stopped on drop.
pub(crate) struct Server {
    pub(crate) port: u16,
    child: Child,
}

impl Server {
    /// Starts an empty server, Kvasir's or redis-server, with its data in `folder`.
    pub(crate) fn start(mode: Mode, is_ours: bool, folder: &Path) -> Result<Self, String> {
        if is_ours { kvasir(mode, folder) } else { redis(mode, folder, None) }
    }

    /// Starts a server in memory for up to `places` clients.
    pub(crate) fn with_places(places: usize, is_ours: bool, folder: &Path) -> Result<Self, String> {
        if !is_ours {
            return redis(Mode::Memory, folder, Some(places));
        }
        let file = folder.join("server.toml");
        let text = format!(
            "[server]\nclock = \"none\"\nnvme_tcp = [\":0\"]\n[limits]\nconnections = {places}\n\
             [[device]]\nname = \"memory\"\ndevice = \"mem:1GiB\"\nresp = \":0\"\n\
             [[subsystem]]\ndevice = \"memory\"\n"
        );
        std::fs::write(&file, text).map_err(|error| error.to_string())?;
        let mut command = Command::new(Self::program()?);
        command.args(["serve", "--json", "--config"]).arg(file);
        ready(command)
    }

    /// Serves the drive at this path without a value cache.
    pub(crate) fn of_cold(drive: &Path) -> Result<Self, String> {
        let mut command = Command::new(Self::program()?);
        command.args(["serve", "--json", "--resp", ":0", "--cache", "off"]);
        command.args(["--durability", "capacitor", "--device"]).arg(drive);
        ready(command)
    }

    /// Serves the drive at this path as users do.
    pub(crate) fn of_drive(drive: &Path) -> Result<Self, String> {
        let mut command = Command::new(Self::program()?);
        command.args(["serve", "--json", "--resp", ":0", "--device"]).arg(drive);
        ready(command)
    }

    /// Asks the server to stop, and waits until it has.
    pub(crate) fn stop(mut self) -> Result<(), String> {
        let process = Pid::from_child(&self.child);
        kill_process(process, Signal::TERM).map_err(|error| error.to_string())?;
        self.child.wait().map_err(|error| error.to_string())?;
        Ok(())
    }

    /// Returns the path of Kvasir's program, which is in this one's folder.
    pub(crate) fn program() -> Result<PathBuf, String> {
        let here = std::env::current_exe().map_err(|error| error.to_string())?;
        Ok(here.with_file_name("kvasir"))
    }

    /// Connects a client that sends each request at once.
    pub(crate) fn connect(&self) -> std::io::Result<TcpStream> {
        let stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// Returns a file of its process in `/proc`.
    pub(crate) fn told(&self, file: &str) -> Result<String, String> {
        let path = format!("/proc/{}/{file}", self.child.id());
        std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn redis(mode: Mode, folder: &Path, places: Option<usize>) -> Result<Server, String> {
    let aof = folder.join("aof");
    let _ = std::fs::remove_dir_all(&aof);
    std::fs::create_dir(&aof).map_err(|error| error.to_string())?;
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let port = free.map_err(|error| error.to_string())?.port();
    let mut command = Command::new("redis-server");
    command.args(["--port", &port.to_string(), "--save", ""]).arg("--dir").arg(&aof);
    command.args(match mode {
        Mode::Memory => ["--appendonly", "no", "--appendfsync", "no"],
        Mode::EverySec => ["--appendonly", "yes", "--appendfsync", "everysec"],
        Mode::Group => ["--appendonly", "yes", "--appendfsync", "always"],
    });
    if let Some(places) = places {
        command.args(["--maxclients", &places.to_string()]);
    }
    let child = command.stdout(Stdio::null()).spawn();
    let child = child.map_err(|error| format!("redis-server: {error}"))?;
    let (server, start) = (Server { port, child }, Instant::now());
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        if start.elapsed() > TIMEOUT {
            return Err("redis-server does not answer".to_owned());
        }
        sleep(Duration::from_millis(10));
    }
    Ok(server)
}

fn kvasir(mode: Mode, folder: &Path) -> Result<Server, String> {
    let mut command = Command::new(Server::program()?);
    command.args(["serve", "--json", "--resp", ":0", "--device"]);
    if mode == Mode::Memory {
        command.args(["mem:4GiB", "--clock", "none"]);
    } else {
        let durability = if mode == Mode::Group { "group" } else { "everysec" };
        command.arg(format(folder)?).args(["--durability", durability]);
    }
    ready(command)
}

/// Creates an empty drive of 8 GiB in `folder`, fully written, and replaces an existing one.
pub(crate) fn format(folder: &Path) -> Result<PathBuf, String> {
    let (program, drive) = (Server::program()?, folder.join("drive.kv"));
    let _ = std::fs::remove_file(&drive);
    let mut format = Command::new(&program);
    let made = format.arg("format").arg(&drive).args(["--size", "8GiB", "--fill"]).output();
    let made = made.map_err(|error| {
        format!("{}: {error}: build it by cargo build --profile dist", program.display())
    })?;
    if !made.status.success() {
        return Err(String::from_utf8_lossy(&made.stderr).into_owned());
    }
    Ok(drive)
}

/// Starts `command` and waits for the line that says that the server is ready.
fn ready(mut command: Command) -> Result<Server, String> {
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(|error| {
        let program = command.get_program().to_string_lossy();
        format!("{program}: {error}: build it by cargo build --profile dist")
    })?;
    let mut line = String::new();
    let said = BufReader::new(child.stdout.take().expect("it is piped")).read_line(&mut line);
    let ready: Option<serde_json::Value> = serde_json::from_str(&line).ok();
    let uri = ready.as_ref().and_then(|ready| ready["devices"][0]["resp"].as_str());
    let port = uri.and_then(|uri| uri.rsplit(':').next()?.parse().ok());
    match (said, port) {
        (Ok(_), Some(port)) => Ok(Server { port, child }),
        _ => Err(format!("kvasir serve said {line:?}")),
    }
}
