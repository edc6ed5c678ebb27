use crate::input::Input;
use crate::targets::ACTIONS_MAX;
use pcie::{HostMemory, Interrupts, PciFunction, Region};
use reactor::PassedFds;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use std::cell::{Cell, RefCell};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use vfio_user::{MappedDoorbells, Reply, Session};

/// Sends any messages to a vfio-user session, with any file descriptors. Each message has the reply
/// that it wants, and the session serves a well-behaved client afterwards.
pub fn vfio_user(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let files = Files::new();
    let is_closed = Rc::new(Cell::new(false));
    let closed = is_closed.clone();
    let doorbells = MappedDoorbells::new().expect("the machine has memfds");
    let mut session = Session::new(
        Some(Rc::new(doorbells)),
        |_| (),
        |memory, interrupts| {
            Rc::new(Copier { memory, interrupts, bar: RefCell::default(), is_closed: closed })
        },
    );
    if !input.one_in(8) {
        exchange(&mut session, VERSION, 0, &[0; 4], PassedFds::default());
    }
    for _ in 0..ACTIONS_MAX {
        if input.is_over() {
            break;
        }
        let command = input.pick(&COMMANDS);
        let command = if command == 0 { input.half() } else { command };
        let flags = input.pick(&[0, 0, 0, NO_REPLY, 1, 0x20, 0xffff_ffff]);
        let payload = payload(&mut input, command);
        let fds = files.pick(&mut input, command);
        exchange(&mut session, command, flags, &payload, fds);
        if input.one_in(16) {
            files.resize_unsealed(input.number());
        }
    }
    serves_a_calm_client(&mut session, &files);
    drop(session);
    assert!(is_closed.get(), "the function is closed with its session");
}

const VERSION: u16 = 1;
const DMA_MAP: u16 = 2;
const DMA_UNMAP: u16 = 3;
const SET_IRQS: u16 = 8;
const REGION_READ: u16 = 9;
const REGION_WRITE: u16 = 10;
const WRITE_MULTI: u16 = 15;

/// What is sent; 0 stands for any number.
const COMMANDS: [u16; 16] = [
    DMA_MAP,
    DMA_MAP,
    DMA_MAP,
    DMA_UNMAP,
    REGION_WRITE,
    REGION_WRITE,
    REGION_WRITE,
    SET_IRQS,
    SET_IRQS,
    REGION_READ,
    WRITE_MULTI,
    VERSION,
    4,
    5,
    7,
    0,
];

const NO_REPLY: u32 = 0x10;
const ERROR: u32 = 0x20;

const PAGE: u64 = 4_096;
const BAR_BYTES: usize = 4_096;
const VECTORS: u16 = 9;

/// Sends a message and checks the form of its reply, of which it returns the payload.
fn exchange(
    session: &mut Session,
    command: u16,
    flags: u32,
    payload: &[u8],
    mut fds: PassedFds,
) -> Option<Vec<u8>> {
    let size = u32::try_from(Session::HEADER_BYTES + payload.len()).expect("payloads are short");
    let mut header = [0; Session::HEADER_BYTES];
    header[..2].copy_from_slice(&0x1234_u16.to_ne_bytes());
    header[2..4].copy_from_slice(&command.to_ne_bytes());
    header[4..8].copy_from_slice(&size.to_ne_bytes());
    header[8..12].copy_from_slice(&flags.to_ne_bytes());
    assert_eq!(Session::message_bytes(header), Ok(size as usize));
    let Reply { bytes: reply, file } = session.handle(&[&header[..], payload].concat(), &mut fds);
    assert!(file.is_none() || (command, reply.len()) == (5, 80), "only BAR 0 has a file");
    assert!(fds.is_empty(), "a message's descriptors are used or closed");
    if flags & NO_REPLY != 0 {
        assert_eq!(reply, b"", "no reply is wanted");
        return None;
    }
    let field = |at: usize| u32::from_ne_bytes(*reply[at..].first_chunk().expect("a header"));
    assert_eq!(reply[..4], header[..4], "a reply repeats its command");
    assert_eq!(field(4) as usize, reply.len());
    match (field(8), field(12)) {
        (1, 0) => Some(reply[Session::HEADER_BYTES..].to_vec()),
        (flags, errno) => {
            assert!(flags == 1 | ERROR && errno != 0, "an error has a number");
            assert_eq!(reply.len(), Session::HEADER_BYTES, "an error has no payload");
            None
        }
    }
}

/// Returns a payload that `command` may have, or any bytes.
fn payload(input: &mut Input<'_>, command: u16) -> Vec<u8> {
    if input.one_in(8) {
        return input.bytes(200);
    }
    let mut payload = Vec::new();
    let mut add = |bytes: &[u8]| payload.extend_from_slice(bytes);
    match command {
        VERSION => {
            add(&[0; 4]);
            add(input.pick(&[
                &b"{}\0"[..],
                b"",
                b"{\"capabilities\":{\"write_multiple\":true}}\0",
            ]));
        }
        DMA_MAP => {
            add(&32_u32.to_ne_bytes());
            add(&input.pick(&[3_u32, 1, 2, 0]).to_ne_bytes());
            add(&address(input).to_ne_bytes());
            add(&address(input).to_ne_bytes());
            add(&input.pick(&[PAGE, 4 * PAGE, 0, 1 << 50, u64::MAX]).to_ne_bytes());
        }
        DMA_UNMAP => {
            add(&24_u32.to_ne_bytes());
            add(&input.pick(&[0_u32, 2, 1]).to_ne_bytes());
            add(&address(input).to_ne_bytes());
            add(&input.pick(&[PAGE, 4 * PAGE, 0, u64::MAX]).to_ne_bytes());
        }
        SET_IRQS => {
            add(&400_u32.to_ne_bytes());
            add(&input.pick(&[0x24_u32, 0x21, 0x22, 0x0c, 0x11]).to_ne_bytes());
            add(&input.pick(&[2_u32, 3, 4, 0, 9]).to_ne_bytes());
            let any = input.number();
            add(&input.pick(&[0_u32, 1, any]).to_ne_bytes());
            add(&input.pick(&[1_u32, 2, 9, 0, any]).to_ne_bytes());
            if input.one_in(3) {
                add(&input.bytes(16));
            }
        }
        REGION_READ => add_access(input, &mut payload, None),
        REGION_WRITE => {
            let copy = [address(input), address(input), input.number().into()];
            let data = copy.map(u64::to_ne_bytes).concat();
            add_access(input, &mut payload, Some(&data));
        }
        WRITE_MULTI => {
            add(&u64::from(input.below(4)).to_ne_bytes());
            for _ in 0..input.below(4) {
                add_access(input, &mut payload, None);
                payload.extend(input.array::<8>());
            }
        }
        _ => {
            add(&input.pick(&[32_u32, 16, 0]).to_ne_bytes());
            add(&0_u32.to_ne_bytes());
            add(&input.number().to_ne_bytes());
            add(&[0; 20]);
        }
    }
    payload
}

/// Adds the offset, the region and the count of an access, and its data.
fn add_access(input: &mut Input<'_>, payload: &mut Vec<u8>, data: Option<&[u8]>) {
    let is_right = !input.one_in(4);
    let offset = if is_right { 0 } else { input.number().into() };
    let len = data.map_or(8, <[u8]>::len);
    let count = if is_right { u32::try_from(len).unwrap_or(0) } else { input.number() };
    payload.extend(u64::to_ne_bytes(offset));
    payload.extend(input.pick(&[0_u32, 0, 0, 7, 1]).to_ne_bytes());
    payload.extend(count.to_ne_bytes());
    payload.extend(data.unwrap_or_default());
}

/// Returns an address near the regions of others.
fn address(input: &mut Input<'_>) -> u64 {
    let page = input.pick(&[0, PAGE, 2 * PAGE, 4 * PAGE, 1 << 32, u64::MAX - PAGE + 1]);
    if input.one_in(3) { page.wrapping_add(input.number().into()) } else { page }
}

/// Checks that a client that follows the protocol is served after all that.
fn serves_a_calm_client(session: &mut Session, files: &Files) {
    let mut call = |command, payload: &[u8], fds| exchange(session, command, 0, payload, fds);
    // Refused if the version is agreed on.
    call(VERSION, &[0; 4], PassedFds::default());
    let all = [&24_u32.to_ne_bytes()[..], &2_u32.to_ne_bytes(), &[0; 16]].concat();
    assert_eq!(call(DMA_UNMAP, &all, PassedFds::default()), Some(all));
    let map = [32 | 3 << 32, 0, PAGE, PAGE].map(u64::to_ne_bytes).concat();
    let file = PassedFds::from_iter(files.sealed.try_clone());
    assert_eq!(call(DMA_MAP, &map, file).as_deref(), Some(&b""[..]));
    let copy = [PAGE, 2 * PAGE - 8, 8].map(u64::to_ne_bytes).concat();
    let access = [0, 24 << 32].map(u64::to_ne_bytes).concat();
    let write = [&access[..], &copy].concat();
    assert_eq!(call(REGION_WRITE, &write, PassedFds::default()), Some(access));
    let mut copied = [[0; 8]; 2];
    for (bytes, at) in copied.iter_mut().zip([0, PAGE - 8]) {
        assert_eq!(rustix::io::pread(&files.sealed, bytes, at), Ok(8));
    }
    assert_eq!(copied[0], copied[1], "the function copies memory");
}

/// What a client passes.
struct Files {
    sealed: OwnedFd,
    unsealed: OwnedFd,
    event: OwnedFd,
}

impl Files {
    fn new() -> Self {
        let memfd = || {
            let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
            let file = memfd_create("hostile", flags).expect("the machine has memfds");
            ftruncate(&file, 4 * PAGE).expect("a memfd has a size");
            file
        };
        let (sealed, unsealed) = (memfd(), memfd());
        fcntl_add_seals(&sealed, SealFlags::SHRINK).expect("the memfd allows seals");
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let event = eventfd(0, flags).expect("the machine has eventfds");
        Self { sealed, unsealed, event }
    }

    /// Returns descriptors that `command` may come with, or others.
    fn pick(&self, input: &mut Input<'_>, command: u16) -> PassedFds {
        let count = match command {
            DMA_MAP => input.pick(&[1, 1, 1, 1, 0, 2]),
            SET_IRQS => input.pick(&[1, 2, 9, 0, 16, 17]),
            _ => u8::from(input.one_in(16)),
        };
        let file = input.pick(&[&self.sealed, &self.unsealed, &self.event]);
        (0..count).map(|_| file.try_clone().expect("descriptors are left")).collect()
    }

    fn resize_unsealed(&self, len: u32) {
        ftruncate(&self.unsealed, u64::from(len) % (8 * PAGE)).expect("the size is small");
    }
}

/// A function that copies memory when BAR 0 is written, and raises a vector.
struct Copier {
    memory: Rc<dyn HostMemory>,
    interrupts: Rc<dyn Interrupts>,
    bar: RefCell<Vec<u8>>,
    is_closed: Rc<Cell<bool>>,
}

impl PciFunction for Copier {
    fn bytes(&self, region: Region) -> u64 {
        match region {
            Region::Config => 256,
            Region::Bar0 => BAR_BYTES as u64,
        }
    }

    fn vectors(&self) -> u16 {
        VECTORS
    }

    fn read(&self, region: Region, offset: u64, into: &mut [u8]) {
        assert!(offset + into.len() as u64 <= self.bytes(region), "an access is inside");
    }

    fn write(&self, region: Region, offset: u64, bytes: &[u8]) {
        assert!(offset + bytes.len() as u64 <= self.bytes(region), "an access is inside");
        let number = |at: usize| bytes.get(at..).and_then(<[u8]>::first_chunk);
        if let (Some(from), Some(to), Some(len)) = (number(0), number(8), number(16)) {
            let [from, to, len] = [from, to, len].map(|bytes| u64::from_ne_bytes(*bytes));
            let mut bar = self.bar.borrow_mut();
            bar.resize(usize::try_from(len % (5 * PAGE)).unwrap_or(0), 0);
            if self.memory.read(from, &mut bar).is_ok() && self.memory.write(to, &bar).is_ok() {
                self.interrupts.raise(u16::from(bytes[0]));
            }
            if let Ok(word) = self.memory.load(from) {
                // The host may have no memory there.
                let _ = self.memory.store(to, word);
            }
        }
    }

    fn reset(&self) {}

    fn close(&self) {
        self.is_closed.set(true);
    }
}
