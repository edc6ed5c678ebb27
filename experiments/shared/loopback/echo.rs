//! The limit: a server that only receives requests and sends replies of the right size, by plain
//! system calls: one recv, then one send for all replies.

use crate::loopback::core;
use crate::loopback::exchange::{C2H_DATA, CAPSULE, CAPSULE_BYTES, HEADER_BYTES, RESPONSE, header};
use crate::loopback::send::write_all;
use crate::loopback::stage_clock::{StageClock, StageTimes};
use std::io::{ErrorKind, IoSlice, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;

/// Whether it waits for requests in the kernel or by polling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// It polls.
    Spin,
    /// It waits in the kernel.
    Block,
}

/// The values of an echo.
#[derive(Clone, Copy, Debug)]
pub enum Values {
    /// One value for all replies.
    One,
    /// Many values in memory. Each request reads or changes a random one: the cost of any target
    /// that keeps blocks in memory.
    Many(usize),
}

/// Serves one connection until its peer ends it.
pub fn start(wait: Wait, value_bytes: usize, values: Values) -> (SocketAddr, JoinHandle<()>) {
    serve(wait, value_bytes, values, None)
}

/// As [`start`], spinning, with one value. Also returns the times of its stages, which grow while
/// it serves.
pub fn start_measured(value_bytes: usize) -> (SocketAddr, JoinHandle<()>, Arc<StageTimes>) {
    let times = Arc::<StageTimes>::default();
    let (address, server) = serve(Wait::Spin, value_bytes, Values::One, Some(times.clone()));
    (address, server, times)
}

fn serve(
    wait: Wait,
    value_bytes: usize,
    values: Values,
    times: Option<Arc<StageTimes>>,
) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let address = listener.local_addr().expect("a bound socket has an address");
    let server = std::thread::spawn(move || {
        core::pin(core::SERVER);
        let (stream, _) = listener.accept().expect("the client connects");
        let clock = StageClock::new(times);
        Echo::new(stream, wait, value_bytes, values, clock).serve();
    });
    (address, server)
}

struct Echo {
    stream: TcpStream,
    buffer: Vec<u8>,
    filled: usize,
    /// Remaining bytes of the previous request after its header.
    skip: usize,
    value_bytes: usize,
    /// The values, concatenated.
    values: Vec<u8>,
    /// The number of values received.
    taken: u64,
    /// The position of the current value.
    place: usize,
    /// For each outstanding request: its id, and whether it reads a value.
    due: Vec<(u16, bool)>,
    clock: StageClock,
}

impl Echo {
    fn new(
        stream: TcpStream,
        wait: Wait,
        value_bytes: usize,
        values: Values,
        clock: StageClock,
    ) -> Self {
        stream.set_nodelay(true).expect("a TCP socket");
        stream.set_nonblocking(wait == Wait::Spin).expect("a socket");
        let buffer = vec![0; 256 << 10];
        let count = if let Values::Many(count) = values { count } else { 1 };
        let values = vec![0xa5; count * value_bytes];
        let (taken, place, due) = (0, 0, Vec::new());
        let (filled, skip) = (0, 0);
        Self { stream, buffer, filled, skip, value_bytes, values, taken, place, due, clock }
    }

    fn serve(&mut self) {
        self.clock.skip();
        loop {
            match self.stream.read(&mut self.buffer[self.filled..]) {
                Ok(0) => return,
                Ok(count) => {
                    self.filled += count;
                    self.take();
                    self.clock.end_receive();
                    if !self.due.is_empty() {
                        self.reply();
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    std::hint::spin_loop();
                    self.clock.skip();
                }
                Err(_) => return,
            }
        }
    }

    fn take(&mut self) {
        let mut at = 0;
        loop {
            let came = self.skip.min(self.filled - at);
            if self.values.len() > self.value_bytes {
                let place = self.place + self.value_bytes - self.skip;
                self.values[place..place + came].copy_from_slice(&self.buffer[at..at + came]);
            }
            (at, self.skip) = (at + came, self.skip - came);
            if self.skip > 0 || self.filled - at < CAPSULE_BYTES {
                break;
            }
            let pdu = &self.buffer[at..at + CAPSULE_BYTES];
            assert_eq!(pdu[0], CAPSULE, "the client sends nothing else to an echo");
            let length = u32::from_le_bytes([pdu[4], pdu[5], pdu[6], pdu[7]]) as usize;
            let id = u16::from_le_bytes([pdu[10], pdu[11]]);
            self.due.push((id, pdu[8] == 0x02));
            at += CAPSULE_BYTES;
            self.skip = length - CAPSULE_BYTES;
            if self.skip > 0 {
                self.place = self.next_place();
            }
        }
        self.buffer.copy_within(at..self.filled, 0);
        self.filled -= at;
        // An incomplete request is answered after its last byte.
    }

    fn reply(&mut self) {
        let last_is_whole = self.skip == 0;
        let whole = self.due.len() - usize::from(!last_is_whole);
        let headers: Vec<[u8; 2 * HEADER_BYTES]> =
            self.due[..whole].iter().map(|&(id, _)| self.headers(id)).collect();
        let places: Vec<usize> = (0..whole).map(|_| self.next_place()).collect();
        let mut parts = Vec::with_capacity(3 * whole);
        for ((header, place), &(_, wants_value)) in headers.iter().zip(places).zip(&self.due) {
            let (data, response) = header.split_at(HEADER_BYTES);
            if wants_value {
                parts.push(IoSlice::new(data));
                parts.push(IoSlice::new(&self.values[place..place + self.value_bytes]));
            }
            parts.push(IoSlice::new(response));
        }
        self.clock.end_reply();
        write_all(&self.stream, &mut parts, |has_sent| {
            if has_sent { self.clock.end_reply() } else { self.clock.skip() }
        });
        self.due.drain(..whole);
    }

    /// Returns the position of the next value, in a pseudorandom sequence.
    fn next_place(&mut self) -> usize {
        let count = self.values.len() / self.value_bytes;
        self.taken += 1;
        let number = base::mix(self.taken) % (count as u64);
        usize::try_from(number).expect("it is below their count") * self.value_bytes
    }

    fn headers(&self, id: u16) -> [u8; 2 * HEADER_BYTES] {
        let mut bytes = [0; 2 * HEADER_BYTES];
        bytes[..8].copy_from_slice(&header(C2H_DATA, 0b100, HEADER_BYTES, self.value_bytes));
        bytes[HEADER_BYTES..][..8].copy_from_slice(&header(RESPONSE, 0, HEADER_BYTES, 0));
        bytes[HEADER_BYTES + 20..HEADER_BYTES + 22].copy_from_slice(&id.to_le_bytes());
        bytes
    }
}
