//! The cost of KEYS and of SCAN over many short pairs: time, and bytes that the server reads from
//! its disk.

use crate::servers::{Mode, Server, format};
use std::io::{BufRead, BufReader, Error, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// The default number of pairs, with keys of 16 and values of 30 bytes.
const PAIRS: usize = 2_000_000;
const VALUE: &str = "a value of 30 bytes, unchanged";

/// Stores that are sent together.
const PIPELINE: usize = 1_000;

/// The COUNT of each SCAN.
const COUNT: &str = "1000";

/// The cost of a pass over all keys.
struct Pass {
    keys: usize,
    time: Duration,
    read_bytes: u64,
}

/// Measures with `pairs` pairs and prints the result.
pub(crate) fn run(pairs: Option<String>, folder: &Path) -> Result<(), String> {
    let pairs = pairs.map_or(Ok(PAIRS), |text| text.parse());
    let pairs = pairs.ok().filter(|pairs| *pairs > 0);
    let pairs = pairs.ok_or("PAIRS is a whole number above 0, as in `redis keys 2000000`")?;
    println!("{pairs} pairs, keys of 16 and values of {} bytes:", VALUE.len());
    println!(
        "{:<22} {:>9} {:>13} {:>13} {:>13}",
        "", "KEYS, s", "KEYS read", "SCAN keys/s", "SCAN read"
    );
    let server = Server::start(Mode::Memory, false, folder)?;
    store(&server, pairs)?;
    row("redis-server", &server, pairs)?;
    drop(server);
    let drive = format(folder)?;
    let server = Server::of_drive(&drive)?;
    store(&server, pairs)?;
    row("kvasir, after stores", &server, pairs)?;
    server.stop()?;
    row("kvasir, after a start", &Server::of_drive(&drive)?, pairs)
}

/// Prints the row of a server that has `pairs` keys.
fn row(name: &str, server: &Server, pairs: usize) -> Result<(), String> {
    let wrong = |error: Error| format!("{name}: {error}");
    let mut client = Client::to(server).map_err(wrong)?;
    let keys = pass(server, || client.keys("no key is like this*").map_err(wrong))?;
    let scan = pass(server, || client.scan().map_err(wrong))?;
    if keys.keys != 0 || scan.keys < pairs {
        return Err(format!("{name}: KEYS found {} keys, SCAN {}", keys.keys, scan.keys));
    }
    println!(
        "{name:<22} {:>9.2} {:>9} MiB {:>13.0} {:>9} MiB",
        keys.time.as_secs_f64(),
        keys.read_bytes >> 20,
        f64::from(u32::try_from(scan.keys).unwrap_or(u32::MAX)) / scan.time.as_secs_f64(),
        scan.read_bytes >> 20,
    );
    Ok(())
}

fn pass(server: &Server, mut keys: impl FnMut() -> Result<usize, String>) -> Result<Pass, String> {
    let (before, start) = (read_bytes(server)?, Instant::now());
    let keys = keys()?;
    let time = start.elapsed();
    Ok(Pass { keys, time, read_bytes: read_bytes(server)? - before })
}

/// Returns the bytes that the server has read from its disk so far.
fn read_bytes(server: &Server) -> Result<u64, String> {
    let io = server.told("io")?;
    let line = io.lines().find_map(|line| line.strip_prefix("read_bytes: "));
    line.and_then(|bytes| bytes.parse().ok()).ok_or_else(|| "Linux counts no bytes read".to_owned())
}

fn store(server: &Server, pairs: usize) -> Result<(), String> {
    let mut client = Client::to(server).map_err(|error| error.to_string())?;
    for first in (0..pairs).step_by(PIPELINE) {
        let numbers = first..pairs.min(first + PIPELINE);
        client.store(numbers).map_err(|error| format!("stores: {error}"))?;
    }
    Ok(())
}

struct Client(BufReader<TcpStream>);

impl Client {
    fn to(server: &Server) -> Result<Self, Error> {
        server.connect().map(BufReader::new).map(Self)
    }

    fn store(&mut self, numbers: std::ops::Range<usize>) -> Result<(), Error> {
        let count = numbers.len();
        let (mut requests, len) = (Vec::new(), VALUE.len());
        for number in numbers {
            let key = format!("$16\r\nkey{number:013}\r\n");
            write!(requests, "*3\r\n$3\r\nSET\r\n{key}${len}\r\n{VALUE}\r\n")?;
        }
        self.0.get_mut().write_all(&requests)?;
        for _ in 0..count {
            let line = self.line()?;
            if line != "+OK" {
                return Err(Error::other(line));
            }
        }
        Ok(())
    }

    fn keys(&mut self, pattern: &str) -> Result<usize, Error> {
        write!(self.0.get_mut(), "*2\r\n$4\r\nKEYS\r\n${}\r\n{pattern}\r\n", pattern.len())?;
        self.strings().map(|keys| keys.len())
    }

    /// Returns the number of keys of a whole SCAN. No key is changed, so each comes once, or twice
    /// where redis-server resizes its table.
    fn scan(&mut self) -> Result<usize, Error> {
        let (mut cursor, mut count) = ("0".to_owned(), 0);
        loop {
            let words = ["SCAN", &cursor, "COUNT", COUNT];
            let bulks = words.map(|word| format!("${}\r\n{word}\r\n", word.len())).concat();
            write!(self.0.get_mut(), "*{}\r\n{bulks}", words.len())?;
            self.number('*')?;
            cursor = String::from_utf8_lossy(&self.string()?).into_owned();
            count += self.strings()?.len();
            if cursor == "0" {
                return Ok(count);
            }
        }
    }

    fn strings(&mut self) -> Result<Vec<Vec<u8>>, Error> {
        (0..self.number('*')?).map(|_| self.string()).collect()
    }

    fn string(&mut self) -> Result<Vec<u8>, Error> {
        let len = self.number('$')?;
        let mut bytes = vec![0; len + 2];
        self.0.read_exact(&mut bytes)?;
        bytes.truncate(len);
        Ok(bytes)
    }

    /// Reads a line of `kind` with a number.
    fn number(&mut self, kind: char) -> Result<usize, Error> {
        let line = self.line()?;
        let number = line.strip_prefix(kind).and_then(|number| number.parse().ok());
        number.ok_or_else(|| Error::other(format!("the server sent {line}")))
    }

    fn line(&mut self) -> Result<String, Error> {
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }
}
