//! What clients cost that do nothing: memory, processor, and what one that works loses by them.

use crate::servers::Server;
use rustix::process::{Resource, getrlimit, setrlimit};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The default number of clients.
const CLIENTS: usize = 10_000;

/// Files that a process needs in addition to a socket for each client.
const FILES: u64 = 100;

/// The time of the idle and of the working measurement.
const WHILE: Duration = Duration::from_secs(5);

/// Bytes of the value that each client reads before it idles, and the number of pipelined reads.
const VALUE_BYTES: usize = 500;
const TIMES: usize = 100;

/// Clock ticks a second in `/proc`, which do not depend on the kernel's own.
const TICKS: f64 = 100.0;

/// The result for one server.
struct Shown {
    /// Memory for each client that has only connected, and for each that has sent requests.
    bytes: [f64; 2],
    /// The busy share of a core while all clients idle.
    busy: f64,
    /// Operations a second of one working client and the 99th percentile of their times, alone and
    /// beside the idle clients.
    working: [(f64, Duration); 2],
}

/// Measures with as many clients as `arguments` say, and prints the result.
pub(crate) fn run(
    mut arguments: impl Iterator<Item = String>,
    folder: &Path,
) -> Result<(), String> {
    let clients = arguments.next().map_or(Ok(CLIENTS), |text| text.parse());
    let clients = clients.ok().filter(|clients| *clients > 0);
    let clients = clients.ok_or("CLIENTS is a whole number above 0, as in `redis idle 10000`")?;
    raise_limit(clients as u64 + FILES)?;
    println!("{clients} clients that rest:");
    println!(
        "{:<13} {:>10} {:>10} {:>8} {:>11} {:>11} {:>10} {:>10}",
        "", "B, came", "B, worked", "core", "alone/s", "beside/s", "alone p99", "beside p99"
    );
    for is_ours in [false, true] {
        let shown = measure(is_ours, clients, folder)?;
        let [alone, beside] = shown.working;
        println!(
            "{:<13} {:>10.0} {:>10.0} {:>6.2} % {:>11.0} {:>11.0} {:>10.0?} {:>10.0?}",
            crate::name(is_ours),
            shown.bytes[0],
            shown.bytes[1],
            shown.busy * 100.0,
            alone.0,
            beside.0,
            alone.1,
            beside.1,
        );
    }
    Ok(())
}

/// Raises the file limit of this process and of those that it starts.
fn raise_limit(files: u64) -> Result<(), String> {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= files) {
        return Ok(());
    }
    limit.current = Some(files);
    setrlimit(Resource::Nofile, limit)
        .map_err(|error| format!("{files} open files are not allowed here: {error}"))
}

fn measure(is_ours: bool, clients: usize, folder: &Path) -> Result<Shown, String> {
    let server = Server::with_places(clients + 10, is_ours, folder)?;
    let wrong = |error: std::io::Error| format!("{}: {error}", crate::name(is_ours));
    let mut active = Client::to(&server).map_err(wrong)?;
    active.store().map_err(wrong)?;
    active.rest_after_work().map_err(wrong)?;
    let alone = active.work().map_err(wrong)?;
    let before = resident_bytes(&server)?;
    let mut idle = Vec::new();
    for _ in 0..clients {
        let mut client = Client::to(&server).map_err(wrong)?;
        client.ask(b"PING\r\n", b"+PONG\r\n".len()).map_err(wrong)?;
        idle.push(client);
    }
    let came = resident_bytes(&server)?;
    for client in &mut idle {
        client.rest_after_work().map_err(wrong)?;
    }
    let worked = resident_bytes(&server)?;
    let busy = busy_ticks(&server)?;
    sleep(WHILE);
    let busy = (busy_ticks(&server)? - busy) / TICKS / WHILE.as_secs_f64();
    let beside = active.work().map_err(wrong)?;
    let each = |bytes: f64| (bytes - before) / count(clients);
    Ok(Shown { bytes: [each(came), each(worked)], busy, working: [alone, beside] })
}

#[expect(clippy::cast_precision_loss, reason = "there are not that many")]
fn count(of: usize) -> f64 {
    of as f64
}

struct Client(TcpStream);

impl Client {
    fn to(server: &Server) -> std::io::Result<Self> {
        server.connect().map(Self)
    }

    /// Sends a request, and reads a reply of `len` bytes.
    fn ask(&mut self, request: &[u8], len: usize) -> std::io::Result<()> {
        self.0.write_all(request)?;
        self.0.read_exact(&mut vec![0; len])
    }

    /// Stores the value that all clients read.
    fn store(&mut self) -> std::io::Result<()> {
        let value = "v".repeat(VALUE_BYTES);
        let set = format!("*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n${VALUE_BYTES}\r\n{value}\r\n");
        self.ask(set.as_bytes(), b"+OK\r\n".len())
    }

    /// Reads a value with many pipelined requests, then idles.
    fn rest_after_work(&mut self) -> std::io::Result<()> {
        let answer = format!("${VALUE_BYTES}\r\n\r\n").len() + VALUE_BYTES;
        let get = b"*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n";
        self.ask(&get.repeat(TIMES), answer * TIMES)
    }

    /// Reads repeatedly. Returns the rate and the 99th percentile of the times.
    fn work(&mut self) -> std::io::Result<(f64, Duration)> {
        self.ask(b"*3\r\n$3\r\nSET\r\n$5\r\nshort\r\n$1\r\nv\r\n", b"+OK\r\n".len())?;
        let (start, mut times) = (Instant::now(), Vec::new());
        while start.elapsed() < WHILE {
            let begin = Instant::now();
            self.ask(b"*2\r\n$3\r\nGET\r\n$5\r\nshort\r\n", b"$1\r\nv\r\n".len())?;
            times.push(begin.elapsed());
        }
        let rate = count(times.len()) / start.elapsed().as_secs_f64();
        times.sort_unstable();
        Ok((rate, times[times.len() * 99 / 100]))
    }
}

/// Returns the server's resident memory.
fn resident_bytes(server: &Server) -> Result<f64, String> {
    let status = server.told("status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix("kB"));
    let kilobytes = kilobytes.and_then(|number| number.trim().parse::<f64>().ok());
    Ok(kilobytes.ok_or("Linux does not say how much memory it has")? * 1_024.0)
}

/// Returns the processor time of the server so far, in ticks of `/proc`.
fn busy_ticks(server: &Server) -> Result<f64, String> {
    let stat = server.told("stat")?;
    // The name may have blanks and ends with the last bracket; utime is the 12th field after it.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let times = fields.skip(11).take(2).map(str::parse::<f64>);
    times.sum::<Result<f64, _>>().map_err(|error| format!("what Linux says of it: {error}"))
}
