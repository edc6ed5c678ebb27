use crate::doorbells::MappedDoorbells;
use crate::interrupts::{Eventfds, IRQ_INDEXES};
use crate::memory::{GuestMemory, UnsharedMemory};
use crate::regions;
use crate::wire::{
    Access, Command, DATA_MAX, DeviceInfo, DmaMap, DmaUnmap, HEADER_BYTES, Header, IrqInfo,
    MESSAGE_MAX, PostedWrite, Proposal, RegionInfo, SetIrqs, Version, WriteCount, answer, flags,
};
use pcie::{HostMemory, Interrupts, PciFunction, Region};
use reactor::PassedFds;
use rustix::io::Errno;
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A client's session: executes one message after the other.
pub struct Session {
    function: Rc<dyn PciFunction>,
    memory: Rc<GuestMemory>,
    interrupts: Rc<Eventfds>,
    /// The version is agreed on.
    is_open: bool,
    /// What the client maps, if anything.
    doorbells: Option<Rc<MappedDoorbells>>,
    /// The last reply.
    reply: Vec<u8>,
    /// Whether it comes with the file of the doorbells.
    has_file: bool,
}

/// What the client is answered.
#[derive(Debug)]
pub struct Reply<'a> {
    /// The message; empty if the client wants none.
    pub bytes: &'a [u8],
    /// What is sent with its first byte.
    pub file: Option<BorrowedFd<'a>>,
}

impl Session {
    /// Bytes of a message's header.
    pub const HEADER_BYTES: usize = HEADER_BYTES;

    /// Begins a session with the function that `make` returns. It reaches the client's memory, and
    /// interrupts the client, until the session is dropped. The client may map `doorbells`, if they
    /// are given; the function then reads them. Calls `tell` once, if the function does not reach
    /// memory that the client has to share.
    pub fn new(
        doorbells: Option<Rc<MappedDoorbells>>,
        tell: impl Fn(UnsharedMemory) + 'static,
        make: impl FnOnce(Rc<dyn HostMemory>, Rc<dyn Interrupts>) -> Rc<dyn PciFunction>,
    ) -> Self {
        let memory = Rc::new(GuestMemory::new(tell));
        let interrupts = Rc::new(Eventfds::default());
        let function = make(memory.clone(), interrupts.clone());
        interrupts.set_vectors(function.vectors());
        let (is_open, reply, has_file) = Default::default();
        Self { function, memory, interrupts, is_open, doorbells, reply, has_file }
    }

    /// Returns the number of bytes of the message that begins with `header`, which are with the
    /// header. The error is a size that no message has, after which the next message cannot be
    /// found.
    pub fn message_bytes(header: [u8; HEADER_BYTES]) -> Result<usize, u32> {
        let header: Header = zerocopy::transmute!(header);
        let bytes = usize::try_from(header.size).map_err(|_| header.size)?;
        let is_possible = (HEADER_BYTES..=MESSAGE_MAX).contains(&bytes);
        if is_possible { Ok(bytes) } else { Err(header.size) }
    }

    /// Executes a message, which is whole, and returns the reply. Takes the file descriptors that
    /// came with it.
    pub fn handle(&mut self, message: &[u8], fds: &mut PassedFds) -> Reply<'_> {
        let (header, payload) = Header::read_from_prefix(message)
            .expect("a message has a header: see `Session::message_bytes`");
        self.reply.clear();
        self.reply.resize(HEADER_BYTES, 0);
        self.has_file = false;
        let outcome = self.execute(&header, payload, fds);
        fds.clear();
        if header.flags & flags::NO_REPLY != 0 {
            return Reply { bytes: &[], file: None };
        }
        let (error, errno) = match outcome {
            Ok(()) => (0, 0),
            Err(errno) => {
                self.reply.truncate(HEADER_BYTES);
                (flags::ERROR, errno.raw_os_error().cast_unsigned())
            }
        };
        let size = self.reply.len().try_into().expect("a reply has at most 1 MiB and 32 bytes");
        let header = Header { size, flags: flags::REPLY | error, errno, ..header };
        self.reply[..HEADER_BYTES].copy_from_slice(header.as_bytes());
        let file = self.doorbells.as_ref().filter(|_| self.has_file).map(|it| it.file());
        Reply { bytes: &self.reply, file }
    }

    fn execute(
        &mut self,
        header: &Header,
        payload: &[u8],
        fds: &mut PassedFds,
    ) -> Result<(), Errno> {
        let command = header.command;
        let takes_fds = matches!(command, Command::DMA_MAP | Command::DEVICE_SET_IRQS);
        let is_in_order = self.is_open != (command == Command::VERSION);
        check(header.flags & flags::TYPE == flags::COMMAND && is_in_order)?;
        check(!fds.are_too_many() && (takes_fds || fds.is_empty()))?;
        match command {
            Command::VERSION => self.agree(payload),
            Command::DMA_MAP => self.map(payload, fds),
            Command::DMA_UNMAP => self.unmap(payload),
            Command::DEVICE_GET_INFO => self.device_info(payload),
            Command::DEVICE_GET_REGION_INFO => self.region_info(payload),
            Command::DEVICE_GET_IRQ_INFO => self.irq_info(payload),
            Command::DEVICE_SET_IRQS => self.set_irqs(payload, fds),
            Command::REGION_READ => self.read(payload),
            Command::REGION_WRITE => self.write(payload),
            Command::REGION_WRITE_MULTI => self.write_all(payload),
            Command::DEVICE_RESET => {
                check(payload.is_empty())?;
                self.function.reset();
                Ok(())
            }
            _ => Err(Errno::OPNOTSUPP),
        }
    }

    fn agree(&mut self, payload: &[u8]) -> Result<(), Errno> {
        let (version, data) = begin::<Version>(payload)?;
        check(version.major == 0)?;
        let proposal = Proposal::parse(data).ok_or(Errno::INVAL)?;
        self.reply.extend_from_slice(Version { major: 0, minor: 0 }.as_bytes());
        self.reply.extend_from_slice(&answer(&proposal));
        self.is_open = true;
        Ok(())
    }

    fn map(&self, payload: &[u8], fds: &mut PassedFds) -> Result<(), Errno> {
        let map: DmaMap = whole(payload)?;
        check(has_room::<DmaMap>(map.argsz) && fds.len() <= 1)?;
        self.memory.map(&map, fds.take().next())
    }

    fn unmap(&mut self, payload: &[u8]) -> Result<(), Errno> {
        let unmap: DmaUnmap = whole(payload)?;
        check(has_room::<DmaUnmap>(unmap.argsz))?;
        self.memory.unmap(&unmap)?;
        self.reply.extend_from_slice(DmaUnmap { argsz: bytes::<DmaUnmap>(), ..unmap }.as_bytes());
        Ok(())
    }

    fn device_info(&mut self, payload: &[u8]) -> Result<(), Errno> {
        let (asked, _) = begin::<DeviceInfo>(payload)?;
        check(has_room::<DeviceInfo>(asked.argsz))?;
        let info = DeviceInfo {
            argsz: bytes::<DeviceInfo>(),
            flags: DeviceInfo::RESET | DeviceInfo::PCI,
            num_regions: regions::REGIONS,
            num_irqs: IRQ_INDEXES,
        };
        self.reply.extend_from_slice(info.as_bytes());
        Ok(())
    }

    fn region_info(&mut self, payload: &[u8]) -> Result<(), Errno> {
        let (asked, _) = begin::<RegionInfo>(payload)?;
        check(has_room::<RegionInfo>(asked.argsz) && asked.index < regions::REGIONS)?;
        let (asked, is_mapped) = ((asked.index, asked.argsz), self.doorbells.is_some());
        self.has_file = regions::describe(&*self.function, asked, is_mapped, &mut self.reply);
        Ok(())
    }

    fn irq_info(&mut self, payload: &[u8]) -> Result<(), Errno> {
        let (asked, _) = begin::<IrqInfo>(payload)?;
        check(has_room::<IrqInfo>(asked.argsz))?;
        let count = self.interrupts.count(asked.index).ok_or(Errno::INVAL)?;
        let flags = if count > 0 { IrqInfo::EVENTFD } else { 0 };
        let info = IrqInfo { argsz: bytes::<IrqInfo>(), flags, index: asked.index, count };
        self.reply.extend_from_slice(info.as_bytes());
        Ok(())
    }

    fn set_irqs(&self, payload: &[u8], fds: &mut PassedFds) -> Result<(), Errno> {
        let (message, bools) = begin::<SetIrqs>(payload)?;
        check(usize::try_from(message.argsz).is_ok_and(|argsz| argsz >= payload.len()))?;
        self.interrupts.set(&message, bools, fds)
    }

    fn read(&mut self, payload: &[u8]) -> Result<(), Errno> {
        let access: Access = whole(payload)?;
        let region = self.region(&access)?;
        let count = access.count as usize;
        self.reply.reserve_exact(size_of::<Access>() + count);
        self.reply.extend_from_slice(access.as_bytes());
        let data = self.reply.len();
        self.reply.resize(data + count, 0);
        self.function.read(region, access.offset, &mut self.reply[data..]);
        Ok(())
    }

    fn write(&mut self, payload: &[u8]) -> Result<(), Errno> {
        let (access, data) = begin::<Access>(payload)?;
        check(data.len() == access.count as usize)?;
        let region = self.region(&access)?;
        self.function.write(region, access.offset, data);
        self.reply.extend_from_slice(access.as_bytes());
        Ok(())
    }

    /// Does all writes of a message in order, or none if one of them is wrong.
    fn write_all(&mut self, payload: &[u8]) -> Result<(), Errno> {
        let (count, rest) = begin::<WriteCount>(payload)?;
        let (writes, odd) = rest.as_chunks::<{ size_of::<PostedWrite>() }>();
        check(odd.is_empty() && count.0 == writes.len() as u64)?;
        let writes = || writes.iter().map(|bytes| -> PostedWrite { zerocopy::transmute!(*bytes) });
        for write in writes() {
            check(write.access.count as usize <= write.data.len())?;
            self.region(&write.access)?;
        }
        for PostedWrite { access, data } in writes() {
            let region = self.region(&access)?;
            self.function.write(region, access.offset, &data[..access.count as usize]);
        }
        self.reply.extend_from_slice(count.as_bytes());
        Ok(())
    }

    /// Returns the region of an access, which is inside of it.
    fn region(&self, access: &Access) -> Result<Region, Errno> {
        let region = regions::region(access.region).ok_or(Errno::INVAL)?;
        let end = access.offset.checked_add(access.count.into()).ok_or(Errno::INVAL)?;
        let is_possible = (1..=DATA_MAX).contains(&access.count);
        check(is_possible && end <= self.function.bytes(region))?;
        Ok(region)
    }
}

impl Drop for Session {
    /// The function may keep its handles. They reach nothing after this.
    fn drop(&mut self) {
        self.function.close();
        self.memory.clear();
        self.interrupts.clear();
    }
}

fn check(is_valid: bool) -> Result<(), Errno> {
    if is_valid { Ok(()) } else { Err(Errno::INVAL) }
}

/// Parses a payload that is a `T`.
fn whole<T: FromBytes>(payload: &[u8]) -> Result<T, Errno> {
    T::read_from_bytes(payload).map_err(|_| Errno::INVAL)
}

/// Parses the `T` that a payload begins with, and returns what follows it.
fn begin<T: FromBytes + KnownLayout + Immutable>(payload: &[u8]) -> Result<(T, &[u8]), Errno> {
    T::read_from_prefix(payload).map_err(|_| Errno::INVAL)
}

/// Returns the size of `T` as the field `argsz` has it.
fn bytes<T>() -> u32 {
    size_of::<T>().try_into().expect("structures of the protocol have at most 32 bytes")
}

/// True if an `argsz` of the client covers a `T`.
fn has_room<T>(argsz: u32) -> bool {
    argsz >= bytes::<T>()
}
