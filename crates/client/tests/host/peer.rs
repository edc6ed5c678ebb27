//! A target that does what a script says, by bytes.

use base::Nanos;
use base::checksum::crc32c;
use client::{Association, Error, Host, IoQueue, Reads, Settings};
use clock::{Notify, Stage};
use net::{Broken, Conditions, End, Network, Stream};
use nvme_tcp::pdu::Digests;
use reactor::Reactor;
use std::cell::{Cell, RefCell};
use std::io::{IoSlice, IoSliceMut};
use std::rc::Rc;

pub(crate) const NQN: &str = "nqn.2026-01.org.example:kv";
pub(crate) const CONTROLLER: u16 = 0x0102;

/// PDU types (TCP 1.1, PDU Types).
pub(crate) const H2C_TERM_REQ: u8 = 0x02;
pub(crate) const CAPSULE_CMD: u8 = 0x04;
pub(crate) const CAPSULE_RESP: u8 = 0x05;
pub(crate) const H2C_DATA: u8 = 0x06;
pub(crate) const C2H_DATA: u8 = 0x07;
pub(crate) const R2T: u8 = 0x09;

/// Flags of PDUs.
pub(crate) const LAST: u8 = 1 << 2;
pub(crate) const SUCCESS: u8 = 1 << 3;

pub(crate) fn host() -> Host {
    Host::of_uuid(*b"0123456789abcdef")
}

pub(crate) fn settings() -> Settings {
    Settings { keep_alive: Nanos::ZERO, ..Settings::new(host(), NQN) }
}

/// Runs `test` in virtual time.
pub(crate) fn run<T>(test: impl AsyncFnOnce(Network) -> T) -> T {
    Reactor::new(None).run(async { test(Network::new(1, Conditions::CALM)).await })
}

/// The target's end of a connection.
#[derive(Debug)]
pub(crate) struct Peer {
    end: End,
    /// The negotiated digests: of headers, of data.
    pub(crate) digests: Cell<(bool, bool)>,
    /// True when its data digests cover padding up to the next multiple of 4 bytes.
    pub(crate) pads: Cell<bool>,
    /// True when the host's must.
    pub(crate) host_pads: Cell<bool>,
}

/// A script that runs concurrently with the test.
pub(crate) struct Script {
    is_done: Rc<Cell<bool>>,
    notify: Rc<Notify>,
}

impl Script {
    /// Waits for its end.
    pub(crate) async fn end(self) {
        while !self.is_done.get() {
            self.notify.wait().await;
        }
    }
}

/// Runs `script` as the target at one end of a new connection. Returns the other end.
pub(crate) fn play<F: Future<Output = ()>>(
    network: &Network,
    script: impl FnOnce(Peer) -> F + 'static,
) -> (End, Script) {
    let (near, far) = network.pair();
    let (is_done, notify) = (Rc::new(Cell::new(false)), Rc::new(Notify::new()));
    let done = (is_done.clone(), notify.clone());
    clock::spawn(async move {
        let digests = Cell::new((false, false));
        script(Peer { end: far, digests, pads: Cell::default(), host_pads: Cell::default() }).await;
        done.0.set(true);
        done.1.notify();
    });
    (near, Script { is_done, notify })
}

/// A received PDU.
#[derive(Clone, Debug)]
pub(crate) struct Pdu {
    pub(crate) header: Vec<u8>,
    pub(crate) data: Vec<u8>,
}

impl Pdu {
    pub(crate) fn kind(&self) -> u8 {
        self.header[0]
    }

    pub(crate) fn flags(&self) -> u8 {
        self.header[1]
    }

    pub(crate) fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes(*self.header[at..].first_chunk().unwrap())
    }

    pub(crate) fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(*self.header[at..].first_chunk().unwrap())
    }

    /// Returns the submission queue entry of a capsule.
    pub(crate) fn entry(&self) -> &[u8] {
        assert_eq!(self.kind(), CAPSULE_CMD);
        &self.header[8..72]
    }

    /// Returns its command id.
    pub(crate) fn id(&self) -> u16 {
        self.u16(8 + 2)
    }
}

impl Peer {
    pub(crate) async fn read(&self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        let mut filled = 0;
        while filled < len {
            match self.end.try_read(&mut [IoSliceMut::new(&mut bytes[filled..])]).unwrap() {
                Some(0) => panic!("the host has left after {filled} of {len} bytes"),
                Some(read) => filled += read,
                None => self.end.readable().await,
            }
        }
        bytes
    }

    pub(crate) async fn write(&self, bytes: &[u8]) {
        self.try_write(bytes).await.unwrap();
    }

    pub(crate) async fn try_write(&self, bytes: &[u8]) -> Result<(), Broken> {
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.end.try_write(&[IoSlice::new(rest)])? {
                Some(written) => rest = &rest[written..],
                None => self.end.writable().await,
            }
        }
        Ok(())
    }

    /// Returns whether no byte arrives for `time`.
    pub(crate) async fn is_quiet_for(&self, time: Nanos) -> bool {
        clock::sleep(time, Stage::Queue).await;
        self.end.try_read(&mut [IoSliceMut::new(&mut [0])]).unwrap().is_none()
    }

    /// Waits until the host has disconnected without further bytes.
    pub(crate) async fn left(&self) {
        loop {
            match self.end.try_read(&mut [IoSliceMut::new(&mut [0; 64])]) {
                Ok(Some(0)) | Err(_) => return,
                Ok(Some(len)) => panic!("{len} bytes more have come"),
                Ok(None) => self.end.readable().await,
            }
        }
    }

    pub(crate) fn shut_down(&self) {
        self.end.shut_down();
    }

    /// Returns the next PDU and checks its digests.
    pub(crate) async fn pdu(&self) -> Pdu {
        self.pdu_or_end().await.expect("the host has left")
    }

    async fn pdu_or_end(&self) -> Option<Pdu> {
        let mut common = vec![0];
        loop {
            match self.end.try_read(&mut [IoSliceMut::new(&mut common)]) {
                Ok(Some(0)) | Err(_) => return None,
                Ok(Some(_)) => break,
                Ok(None) => self.end.readable().await,
            }
        }
        common.extend(self.read(7).await);
        Some(self.rest_of(common).await)
    }

    async fn rest_of(&self, common: Vec<u8>) -> Pdu {
        let (header_len, data_at) = (usize::from(common[2]), usize::from(common[3]));
        let len = u32::from_le_bytes(*common[4..].first_chunk().unwrap()) as usize;
        let mut bytes = common;
        bytes.extend(self.read(len - 8).await);
        let (has_header, has_data) = self.digests.get();
        let is_digested = bytes[0] >= CAPSULE_CMD;
        if has_header && is_digested {
            assert_eq!(bytes[1] & 1, 1, "HDGSTF");
            let digest = crc32c(&bytes[..header_len]).to_le_bytes();
            assert_eq!(bytes[header_len..header_len + 4], digest);
        }
        let header = bytes[..header_len].to_vec();
        if data_at == 0 {
            let data = if is_digested { Vec::new() } else { bytes[header_len..].to_vec() };
            return Pdu { header, data };
        }
        let mut data = bytes[data_at..].to_vec();
        if has_data {
            assert_eq!(bytes[1] & 2, 2, "DDGSTF");
            let digest = data.split_off(data.len() - 4);
            assert_eq!(digest, data_digest(&data, self.host_pads.get()));
        }
        Pdu { header, data }
    }

    /// Performs the handshake: `ICReq`, and `ICResp` with these digests and MAXH2CDATA.
    pub(crate) async fn take(&self, digests: u8, h2c_data_max: u32) -> Vec<u8> {
        let request = self.read(128).await;
        let mut response = vec![0; 128];
        response[..8].copy_from_slice(&[1, 0, 128, 0, 128, 0, 0, 0]);
        response[11] = digests;
        response[12..16].copy_from_slice(&h2c_data_max.to_le_bytes());
        self.write(&response).await;
        self.digests.set((digests & 1 != 0, digests & 2 != 0));
        request
    }

    /// Sends a PDU with a header of 24 bytes, the last 16 of which are `fields`.
    pub(crate) async fn send(&self, kind: u8, flags: u8, fields: [u8; 16], data: &[u8]) {
        let bytes = self.bytes(kind, flags, fields, data);
        self.write(&bytes).await;
    }

    /// Returns the bytes of that PDU.
    pub(crate) fn bytes(&self, kind: u8, flags: u8, fields: [u8; 16], data: &[u8]) -> Vec<u8> {
        let (has_header, has_data) = self.digests.get();
        let has_data = has_data && !data.is_empty();
        let data_at = if has_header { 28 } else { 24 };
        let len = data_at + data.len() + if has_data { 4 } else { 0 };
        let flags = flags | u8::from(has_header) | u8::from(has_data) << 1;
        let offset = if data.is_empty() { 0 } else { u8::try_from(data_at).unwrap() };
        let mut bytes = vec![kind, flags, 24, offset];
        bytes.extend(u32::try_from(len).unwrap().to_le_bytes());
        bytes.extend(fields);
        if has_header {
            bytes.extend(crc32c(&bytes).to_le_bytes());
        }
        bytes.extend(data);
        if has_data {
            bytes.extend(data_digest(data, self.pads.get()));
        }
        bytes
    }

    /// Answers the command `id`: `CapsuleResp` with DW0, and status code and type.
    pub(crate) async fn respond(&self, id: u16, result: u32, status: u16) {
        let mut entry = [0; 16];
        entry[..4].copy_from_slice(&result.to_le_bytes());
        entry[12..14].copy_from_slice(&id.to_le_bytes());
        entry[14..].copy_from_slice(&(status << 1).to_le_bytes());
        self.send(CAPSULE_RESP, 0, entry, &[]).await;
    }

    /// Sends data of the command `id`.
    pub(crate) async fn data(&self, id: u16, offset: u32, data: &[u8], flags: u8) {
        let len = u32::try_from(data.len()).unwrap();
        self.send(C2H_DATA, flags, data_fields(id, 0, offset, len), data).await;
    }

    /// Requests data of the command `id`.
    pub(crate) async fn ask(&self, id: u16, tag: u16, offset: u32, len: u32) {
        self.send(R2T, 0, data_fields(id, tag, offset, len), &[]).await;
    }

    /// Acts as a controller's admin queue with these digests, from the `ICReq` until it ends.
    pub(crate) async fn administer(self, digests: u8, identity: Vec<u8>) {
        self.take(digests, 4096).await;
        while let Some(pdu) = self.pdu_or_end().await {
            self.answer(&pdu, &identity).await;
        }
    }

    async fn answer(&self, pdu: &Pdu, identity: &[u8]) {
        let (entry, id) = (pdu.entry().to_vec(), pdu.id());
        match (entry[0], entry[4], entry[44]) {
            (0x7f, 1, _) => self.respond(id, CONTROLLER.into(), 0).await,
            // CAP: MQES 1023, CSS bit 6.
            (0x7f, 4, 0x00) => {
                let mut fields = [0; 16];
                fields[..8].copy_from_slice(&(1023_u64 | 1 << 43).to_le_bytes());
                fields[12..14].copy_from_slice(&id.to_le_bytes());
                self.send(CAPSULE_RESP, 0, fields, &[]).await;
            }
            // CSTS: ready, and shut down if it comes to that.
            (0x7f, 4, 0x1c) => self.respond(id, 0b1001, 0).await,
            (0x06, ..) => {
                self.data(id, 0, identity, LAST).await;
                self.respond(id, 0, 0).await;
            }
            // Number of Queues: 4 of each.
            (0x09, ..) => self.respond(id, 0x0003_0003, 0).await,
            _ => self.respond(id, 0, 0).await,
        }
    }
}

fn data_digest(data: &[u8], is_padded: bool) -> [u8; 4] {
    let mut data = data.to_vec();
    if is_padded {
        data.resize(data.len().next_multiple_of(4), 0);
    }
    crc32c(&data).to_le_bytes()
}

/// CCCID, TTAG, offset, length.
pub(crate) fn data_fields(id: u16, tag: u16, offset: u32, len: u32) -> [u8; 16] {
    let mut fields = [0; 16];
    fields[..2].copy_from_slice(&id.to_le_bytes());
    fields[2..4].copy_from_slice(&tag.to_le_bytes());
    fields[4..8].copy_from_slice(&offset.to_le_bytes());
    fields[8..12].copy_from_slice(&len.to_le_bytes());
    fields
}

/// Returns a controller's Identify data: CNTLID, KAS 1, IOCCSZ of 64 + 8,192 bytes, IORCSZ.
pub(crate) fn identity() -> Vec<u8> {
    let mut identity = vec![0; 4096];
    identity[78..80].copy_from_slice(&CONTROLLER.to_le_bytes());
    identity[320] = 1;
    identity[1792..1796].copy_from_slice(&516_u32.to_le_bytes());
    identity[1796] = 1;
    identity
}

/// DGST.
fn bits(digests: Digests) -> u8 {
    u8::from(digests.header) | u8::from(digests.data) << 1
}

/// Returns an association with a controller that answers correctly.
pub(crate) async fn associate(network: &Network, settings: Settings) -> Association<End> {
    let digests = bits(settings.digests);
    let (near, _) = play(network, move |peer| peer.administer(digests, identity()));
    Association::connect(settings, near).await.unwrap()
}

/// Returns an I/O queue whose target plays `script` after its Connect.
pub(crate) async fn io<F: Future<Output = ()>>(
    network: &Network,
    settings: Settings,
    script: impl FnOnce(Peer) -> F + 'static,
) -> (Association<End>, IoQueue<End>, Script) {
    let association = associate(network, settings.clone()).await;
    let digests = bits(settings.digests);
    let (near, playing) = play(network, async move |peer| {
        peer.take(digests, 4096).await;
        let connect = peer.pdu().await;
        peer.respond(connect.id(), CONTROLLER.into(), 0).await;
        script(peer).await;
    });
    let queue = association.io_queue(vec![near], Reads::Pairs).await.unwrap();
    (association, queue, playing)
}

/// Connects to a target that plays `script` from the `ICReq` on, and returns the failure.
pub(crate) async fn fail<F: Future<Output = ()>>(
    network: &Network,
    settings: Settings,
    script: impl FnOnce(Peer) -> F + 'static,
) -> Error {
    let (near, playing) = play(network, script);
    let error = Association::connect(settings, near).await.unwrap_err();
    playing.end().await;
    error
}

/// A value that a script records.
pub(crate) type Seen<T> = Rc<RefCell<T>>;
