//! The client, the same for the echo and for targets: plain system calls, spinning, a fixed number
//! of commands outstanding.

use crate::loopback::exchange::{
    C2H_DATA, C2H_SUCCESS, CAPSULE, CAPSULE_BYTES, Exchange, H2C_DATA, HEADER_BYTES,
    IN_CAPSULE_MAX, Kind, R2T, RESPONSE, header,
};
use crate::loopback::send::write_all;
use std::io::{ErrorKind, IoSlice, Read};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Keys that are stored first, and drawn in turn.
pub const KEYS: u64 = 4_096;

/// Blocks that are read and written at random: 128 MiB.
pub const BLOCKS: u64 = 32_768;

/// Whether large values wait for an R2T of the other side; an echo needs none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grants {
    /// They do.
    Awaited {
        /// The most bytes of a PDU with data that the target takes.
        data_max: usize,
    },
    /// They do not.
    None,
}

/// A connection under load.
pub struct Load {
    stream: TcpStream,
    grants: Grants,
    buffer: Vec<u8>,
    filled: usize,
    /// Remaining bytes of data of the previous PDU.
    skip: usize,
    value: Vec<u8>,
    next_key: u64,
    keys: u64,
    /// PDUs to send: a header each, and the offset and length of its part of the value.
    due: Vec<([u8; CAPSULE_BYTES], usize, usize)>,
    completed: usize,
}

impl Load {
    /// Returns a load over `stream`, which is ready for commands.
    pub fn new(stream: TcpStream, grants: Grants, value_bytes: usize) -> Self {
        stream.set_nodelay(true).expect("a TCP socket");
        stream.set_nonblocking(true).expect("a socket");
        Self {
            stream,
            grants,
            buffer: vec![0; 256 << 10],
            filled: 0,
            skip: 0,
            value: vec![0xa5; value_bytes],
            next_key: 0,
            keys: KEYS,
            due: Vec::new(),
            completed: 0,
        }
    }

    /// Sets the number of keys to draw from.
    pub fn set_keys(&mut self, keys: u64) {
        (self.keys, self.next_key) = (keys, 0);
    }

    /// Exchanges `count` commands, and returns the time in seconds.
    pub fn run(&mut self, exchange: Exchange, count: usize) -> f64 {
        assert_eq!(exchange.value_bytes, self.value.len(), "a load has values of one size");
        self.completed = 0;
        let mut submitted = 0;
        let start = Instant::now();
        while self.completed < count {
            while submitted < count && submitted - self.completed < exchange.depth {
                self.submit(exchange.kind, submitted);
                submitted += 1;
            }
            self.flush();
            self.receive();
        }
        start.elapsed().as_secs_f64()
    }

    /// Exchanges commands for about `time`, which also warms caches and windows. Returns their
    /// number.
    pub fn run_for(&mut self, exchange: Exchange, time: Duration) -> usize {
        let (mut count, start) = (0, Instant::now());
        let mut step = 64;
        while start.elapsed() < time {
            self.run(exchange, step);
            count += step;
            step = (2 * step).min(4_096);
        }
        count
    }

    /// Submits a command. Ids repeat after 65,536 commands, more than are ever outstanding.
    fn submit(&mut self, kind: Kind, number: usize) {
        let len = self.value.len();
        let stored = if kind.brings_data() { len } else { 0 };
        let is_inside = self.grants == Grants::None || stored <= IN_CAPSULE_MAX;
        let inside = if is_inside { stored } else { 0 };
        let mut pdu = [0; CAPSULE_BYTES];
        pdu[..8].copy_from_slice(&header(CAPSULE, 0, CAPSULE_BYTES, inside));
        let command = &mut pdu[8..];
        command[0] = kind.opcode();
        command[1] = 0x40;
        command[2..4]
            .copy_from_slice(&u16::try_from(number % 65_536).expect("below").to_le_bytes());
        command[4] = 1;
        let size = bytes_of(len);
        command[32..36].copy_from_slice(&size);
        command[39] = if inside > 0 { 0x01 } else { 0x5a };
        if kind.is_of_blocks() {
            // One block at a random place: NVM 1.1, SLBA; NLB is 0's based.
            command[40..48].copy_from_slice(&(base::mix(self.next_key) % self.keys).to_le_bytes());
            self.next_key += 1;
        } else {
            command[8..16].copy_from_slice(&self.next_key.to_le_bytes());
            command[40..44].copy_from_slice(&size);
            command[44] = 16;
            self.next_key = (self.next_key + 1) % self.keys;
        }
        self.due.push((pdu, CAPSULE_BYTES, inside));
    }

    fn flush(&mut self) {
        if self.due.is_empty() {
            return;
        }
        let mut parts = Vec::with_capacity(2 * self.due.len());
        for (header, header_len, data) in &self.due {
            parts.push(IoSlice::new(&header[..*header_len]));
            if *data > 0 {
                parts.push(IoSlice::new(&self.value[..*data]));
            }
        }
        write_all(&self.stream, &mut parts, |_| {});
        self.due.clear();
    }

    /// Processes one batch of received bytes.
    fn receive(&mut self) {
        match self.stream.read(&mut self.buffer[self.filled..]) {
            Ok(0) => panic!("the target has ended the connection"),
            Ok(count) => self.filled += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            Err(error) => panic!("the connection is broken: {error}"),
        }
        let mut at = 0;
        loop {
            let skipped = self.skip.min(self.filled - at);
            (at, self.skip) = (at + skipped, self.skip - skipped);
            if self.skip > 0 || self.filled - at < HEADER_BYTES {
                break;
            }
            let mut pdu = [0; HEADER_BYTES];
            pdu.copy_from_slice(&self.buffer[at..at + HEADER_BYTES]);
            self.take(&pdu);
            at += HEADER_BYTES;
        }
        self.buffer.copy_within(at..self.filled, 0);
        self.filled -= at;
    }

    fn take(&mut self, pdu: &[u8; HEADER_BYTES]) {
        let dword =
            |at: usize| u32::from_le_bytes([pdu[at], pdu[at + 1], pdu[at + 2], pdu[at + 3]]);
        match pdu[0] {
            RESPONSE => {
                let status = u16::from_le_bytes([pdu[22], pdu[23]]) >> 1;
                assert_eq!(status, 0, "every command of the load succeeds");
                self.completed += 1;
            }
            C2H_DATA => {
                self.skip = dword(4) as usize - HEADER_BYTES;
                self.completed += usize::from(pdu[1] & C2H_SUCCESS != 0);
            }
            R2T => self.grant(pdu, dword(12) as usize, dword(16) as usize),
            other => panic!("a PDU of type {other:02x}h is no reply"),
        }
    }

    /// Sends the value from `offset` on, in PDUs as long as the target takes.
    fn grant(&mut self, r2t: &[u8; HEADER_BYTES], offset: usize, len: usize) {
        let Grants::Awaited { data_max } = self.grants else { panic!("an echo grants nothing") };
        for start in (0..len).step_by(data_max) {
            let here = data_max.min(len - start);
            let is_last = start + here == len;
            let mut pdu = [0; CAPSULE_BYTES];
            let flags = if is_last { 0b100 } else { 0 };
            pdu[..8].copy_from_slice(&header(H2C_DATA, flags, HEADER_BYTES, here));
            // The command id and the tag are those of the R2T.
            pdu[8..12].copy_from_slice(&r2t[8..12]);
            pdu[12..16].copy_from_slice(&bytes_of(offset + start));
            pdu[16..20].copy_from_slice(&bytes_of(here));
            self.due.push((pdu, HEADER_BYTES, here));
        }
    }
}

fn bytes_of(len: usize) -> [u8; 4] {
    u32::try_from(len).expect("values have at most 2 MiB").to_le_bytes()
}
