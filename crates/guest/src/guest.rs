use crate::memory::GuestMemory;
use crate::queue::{Doorbells, Place, Queue, TIMEOUT};
use spec::{Command, Configuration, ControllerStatus, Property, Shutdown, ShutdownStatus, Status};
use std::cell::{Cell, RefCell};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};
use vfio_user_client::Client;
use vm_memory::{Bytes, FileOffset, MmapRegion, VolatileMemory};

const ADMIN_ENTRIES: u16 = 32;

/// The regions of BAR 0 and of configuration space.
const BAR0: u32 = 0;
const CONFIG: u32 = 7;

/// Memory Space Enable and Bus Master Enable.
const BUS_MASTER: u8 = 0b110;

/// A host of a device over vfio-user, with a client of another implementation. It shares its memory
/// with the device and writes doorbells as Linux does.
pub struct Guest {
    memory: Arc<GuestMemory>,
    bus: Rc<Bus>,
    admin: RefCell<Queue<GuestDoorbells>>,
    mode: DoorbellMode,
}

/// How doorbells of I/O queues are written.
#[derive(Clone)]
enum DoorbellMode {
    /// To the pages of Doorbell Buffer Config, as Linux does: a message only if the value passes
    /// the event index.
    Shadow([usize; 2]),
    /// To the page of BAR 0, if the device lets it be mapped.
    Mapped(Rc<MmapRegion>),
}

/// The connection to the device.
struct Bus {
    client: RefCell<Client>,
    /// Writes of BAR 0 by a message.
    messages: Cell<u64>,
    /// Doorbells written, in any way.
    doorbells: Cell<u64>,
}

/// The doorbells of a queue.
pub struct GuestDoorbells {
    bus: Rc<Bus>,
    memory: Arc<GuestMemory>,
    queue: u16,
    /// None: by messages.
    mode: Option<DoorbellMode>,
}

impl Bus {
    fn write(&self, offset: u64, bytes: &[u8]) {
        self.messages.set(self.messages.get() + 1);
        self.client.borrow_mut().region_write(BAR0, offset, bytes).expect("the device answers");
    }

    fn set(&self, property: Property, bytes: &[u8]) {
        self.write(property.0.into(), bytes);
    }

    fn status(&self) -> ControllerStatus {
        let mut bytes = [0; 4];
        let mut client = self.client.borrow_mut();
        client.region_read(BAR0, Property::CSTS.0.into(), &mut bytes).expect("the device answers");
        ControllerStatus(u32::from_le_bytes(bytes))
    }

    fn ring(&self, place: u64, value: u16) {
        self.write(0x1000 + place, &u32::from(value).to_le_bytes());
    }
}

impl GuestDoorbells {
    fn word(&self, address: usize) -> u16 {
        u16::try_from(self.memory.load(address)).expect("it is a place in the queue")
    }

    fn ring(&self, place: u16, value: u16) {
        self.bus.doorbells.set(self.bus.doorbells.get() + 1);
        match &self.mode {
            None => self.bus.ring(place.into(), value),
            Some(DoorbellMode::Shadow(pages)) => self.ring_shadow(*pages, place, value),
            Some(DoorbellMode::Mapped(page)) => {
                let (page, value) = (page.as_volatile_slice(), u32::from(value));
                page.store(value, place.into(), Ordering::Release).expect("a page has them");
            }
        }
    }

    fn ring_shadow(&self, [values, indexes]: [usize; 2], place: u16, value: u16) {
        let (value_at, index_at) = (values + usize::from(place), indexes + usize::from(place));
        let old = self.word(value_at);
        self.memory.store(value_at, value.into());
        fence(Ordering::SeqCst);
        let event = self.word(index_at);
        if value.wrapping_sub(event).wrapping_sub(1) < value.wrapping_sub(old) {
            self.bus.ring(place.into(), value);
        }
    }
}

impl Doorbells for GuestDoorbells {
    fn ring_tail(&mut self, tail: u16) {
        self.ring(self.queue * 8, tail);
    }

    fn ring_head(&mut self, head: u16) {
        self.ring(self.queue * 8 + 4, head);
    }
}

impl Guest {
    /// Attaches the device at a socket, and enables its controller. Maps its doorbells if it can.
    /// The error is a sentence, also if an admin command is not completed in time.
    ///
    /// # Panics
    /// If the device refuses to map memory, a register access or an admin command, or if its BAR 0
    /// cannot be mapped although the device offers that.
    pub fn attach(socket: &Path) -> Result<Self, String> {
        let attached = Self::attach_within(TIMEOUT, socket);
        attached.map_err(|error| format!("{}: no device is attached: {error}", socket.display()))
    }

    /// As [`Self::attach`], where a completion may take up to `timeout`.
    fn attach_within(timeout: Duration, socket: &Path) -> Result<Self, String> {
        let memory = Arc::new(GuestMemory::new(64 << 20));
        let mut client = Client::new(socket).map_err(|error| error.to_string())?;
        let (file, bytes) = (memory.file().as_raw_fd(), memory.bytes() as u64);
        client.dma_map(0, 0, bytes, file).expect("the server maps memory");
        let mapped = mapped_page(&client);
        let (messages, doorbells) = Default::default();
        let bus = Rc::new(Bus { client: RefCell::new(client), messages, doorbells });
        let place = Place::allocate(&memory, ADMIN_ENTRIES);
        let size = u32::from(ADMIN_ENTRIES - 1);
        bus.client.borrow_mut().region_write(CONFIG, 0x04, &[BUS_MASTER]).expect("it has one");
        bus.set(Property::AQA, &(size << 16 | size).to_le_bytes());
        bus.set(Property::ASQ, &(place.submission as u64).to_le_bytes());
        bus.set(Property::ACQ, &(place.completion as u64).to_le_bytes());
        bus.set(Property::CC, &Configuration::ENABLE_ALL_COMMAND_SETS.0.to_le_bytes());
        let doorbells =
            |mode| GuestDoorbells { bus: bus.clone(), memory: memory.clone(), queue: 0, mode };
        let admin = |mode| {
            let mut queue = Queue::new(&memory, place, doorbells(mode));
            queue.set_timeout(timeout);
            RefCell::new(queue)
        };
        if let Some(page) = mapped {
            let mode = DoorbellMode::Mapped(Rc::new(page));
            let admin = admin(Some(mode.clone()));
            return Ok(Self { memory, bus, admin, mode });
        }
        let shadow = [memory.allocate(4_096), memory.allocate(4_096)];
        let (admin, mode) = (admin(None), DoorbellMode::Shadow(shadow));
        let guest = Self { memory, bus, admin, mode };
        let [values, indexes] = shadow.map(|address| address as u64);
        guest.execute(Command::doorbell_buffer_config(values, indexes))?;
        Ok(guest)
    }

    /// Creates an I/O queue without interrupts. Returns a sentence if an admin command is not
    /// completed in time.
    ///
    /// # Panics
    /// If the device refuses one of the two admin commands or the message that writes a doorbell.
    pub fn queue(&self, entries: u16) -> Result<Queue<GuestDoorbells>, String> {
        let place = Place::allocate(&self.memory, entries);
        self.execute(Command::create_io_cq(1, entries, place.completion as u64, None))?;
        self.execute(Command::create_io_sq(1, entries, place.submission as u64, 1))?;
        let doorbells = GuestDoorbells {
            bus: self.bus.clone(),
            memory: self.memory.clone(),
            queue: 1,
            mode: Some(self.mode.clone()),
        };
        Ok(Queue::new(&self.memory, place, doorbells))
    }

    /// Returns the memory that it shares with the device.
    pub fn memory(&self) -> &GuestMemory {
        &self.memory
    }

    /// Shuts the controller down and disables it, and takes its memory from the device, as a
    /// machine does before it unplugs a function. Returns a sentence if the shutdown does not
    /// complete in time.
    ///
    /// # Panics
    /// If the device refuses a register access or to unmap memory.
    pub fn shut_down(&self) -> Result<(), String> {
        let enabled = Configuration::ENABLE_ALL_COMMAND_SETS;
        self.bus.set(Property::CC, &enabled.with_shutdown(Shutdown::Normal).0.to_le_bytes());
        let started = Instant::now();
        while self.bus.status().shutdown() != ShutdownStatus::Complete {
            if started.elapsed() >= TIMEOUT {
                return Err(format!("within {TIMEOUT:?} the device completed no shutdown"));
            }
        }
        self.bus.set(Property::CC, &Configuration(0).0.to_le_bytes());
        let mut client = self.bus.client.borrow_mut();
        client.dma_unmap(0, self.memory.bytes() as u64).expect("the server unmaps memory");
        Ok(())
    }

    fn execute(&self, command: Command) -> Result<(), String> {
        let completion = self.admin.borrow_mut().execute(command)?;
        assert_eq!(completion.status(), Status::SUCCESS, "{command:?}");
        Ok(())
    }

    /// Returns how many messages wrote to BAR 0, and how many doorbells were written.
    pub fn counts(&self) -> (u64, u64) {
        (self.bus.messages.get(), self.bus.doorbells.get())
    }
}

/// Maps the doorbells, if the device lets them be mapped.
fn mapped_page(client: &Client) -> Option<MmapRegion> {
    let region = client.region(BAR0).expect("a function has it");
    let area = region.sparse_areas.first()?;
    let file = region.file_offset.as_ref().expect("an area has a file");
    let file = file.file().try_clone().expect("there is a descriptor left");
    let bytes = usize::try_from(area.size).expect("it is a page");
    let file = FileOffset::new(file, area.offset);
    Some(MmapRegion::from_file(file, bytes).expect("there are addresses"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io;
    use std::thread;
    use vfio_user_client::{DmaMapFlags, DmaUnmapFlags, Server, ServerBackend, ServerRegion};

    /// Registers and memory of a device that executes no command.
    struct Deaf;

    impl ServerBackend for Deaf {
        fn region_read(&mut self, _: u32, _: u64, _: &mut [u8]) -> io::Result<()> {
            Ok(())
        }

        fn region_write(&mut self, _: u32, _: u64, _: &[u8]) -> io::Result<()> {
            Ok(())
        }

        fn dma_map(
            &mut self,
            _: DmaMapFlags,
            _: u64,
            _: u64,
            _: u64,
            _: Option<File>,
        ) -> io::Result<()> {
            Ok(())
        }

        fn dma_unmap(&mut self, _: DmaUnmapFlags, _: u64, _: u64) -> io::Result<()> {
            Ok(())
        }

        fn reset(&mut self) -> io::Result<()> {
            Ok(())
        }

        fn set_irqs(&mut self, _: u32, _: u32, _: u32, _: u32, _: Vec<File>) -> io::Result<()> {
            Ok(())
        }
    }

    /// The regions of a PCI function: reads and writes of all are messages.
    fn regions() -> Vec<ServerRegion> {
        let region = |index| {
            let (region_info, sparse_areas, mmap_fd) = Default::default();
            let mut region = ServerRegion { region_info, sparse_areas, mmap_fd };
            (region.region_info.index, region.region_info.size) = (index, 0x4000);
            region
        };
        (0..=CONFIG).map(region).collect()
    }

    #[test]
    fn device_that_completes_no_admin_command_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("vm.sock");
        let server = Server::new(&socket, true, Vec::new(), regions()).unwrap();
        let device = thread::spawn(move || server.run(&mut Deaf).unwrap());
        let attached = Guest::attach_within(Duration::from_millis(1), &socket).map(|_| ());
        let sentence = "within 1ms the device posted no completion of opcode 7Ch";
        assert_eq!(attached, Err(sentence.to_owned()));
        device.join().unwrap();
    }
}
