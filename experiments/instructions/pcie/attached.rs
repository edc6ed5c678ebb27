use super::doorbells::{Page, PolledDoorbells};
use crate::aside::aside;
use crate::fabric::{NQN, entrance};
use base::Nanos;
use clock::Stage;
use controller::Controller;
use guest::{GuestMemory, Place, Queue};
use pcie::{DoorbellPage, NvmeFunction, PciFunction};
use reactor::PassedFds;
use spec::{Command, Configuration, Property};
use std::cell::{Cell, RefCell};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use vfio_user::{MappedDoorbells, Session};

const ADMIN_ENTRIES: u16 = 32;

/// Commands of the protocol.
const VERSION: u16 = 1;
const DMA_MAP: u16 = 2;
const REGION_WRITE: u16 = 10;

/// BAR 0 and configuration space.
const BAR0: u32 = 0;
const CONFIG: u32 = 7;

/// Joins fields of a message.
macro_rules! payload {
    ($($field:expr),* $(,)?) => { [$(&$field.to_le_bytes()[..]),*].concat() };
}

/// A session with its guest.
#[derive(Clone)]
pub(crate) struct Wire(Rc<RefCell<Session>>);

/// A guest with a function that it has enabled.
pub(crate) struct Attached {
    pub(crate) function: NvmeFunction,
    memory: Arc<GuestMemory>,
    admin: RefCell<Queue<PolledDoorbells>>,
    page: Page,
    /// Its session ends with it.
    _wire: Wire,
}

impl Wire {
    fn call(&self, command: u16, payload: &[u8], file: Option<OwnedFd>) {
        let size = u32::try_from(16 + payload.len()).expect("a message is short");
        let header = payload!(0_u16, command, size, 0_u32, 0_u32);
        let mut files: PassedFds = file.into_iter().collect();
        let mut session = self.0.borrow_mut();
        let reply = session.handle(&[&header, payload].concat(), &mut files);
        assert_eq!(reply.bytes[12..16], [0; 4], "message {command} is executed");
    }

    fn write(&self, region: u32, offset: u64, bytes: &[u8]) {
        let count = u32::try_from(bytes.len()).expect("a register is short");
        let access = payload!(offset, region, count);
        self.call(REGION_WRITE, &[&access, bytes].concat(), None);
    }

    fn set(&self, property: Property, bytes: &[u8]) {
        self.write(BAR0, property.0.into(), bytes);
    }

    pub(crate) fn ring(&self, place: u16, value: u16) {
        self.write(BAR0, 0x1000 + u64::from(place), &u32::from(value).to_le_bytes());
    }
}

impl Attached {
    /// Attaches a function of `controller`, whose doorbells the guest maps or shadows.
    pub(crate) async fn new(controller: &Arc<Controller>, is_mapped: bool) -> Self {
        let memory = Arc::new(GuestMemory::new(64 << 20));
        let mapped = is_mapped.then(|| Rc::new(MappedDoorbells::new().expect("there is memory")));
        let page = mapped.clone().map(|page| page as Rc<dyn DoorbellPage>);
        let made = Cell::new(None);
        let session = Session::new(
            mapped.clone(),
            |_| {},
            |memory, interrupts| {
                let entrance = entrance(controller);
                let function = NvmeFunction::new(&entrance, NQN, memory, interrupts, page);
                let function = function.expect("there is a subsystem");
                function.set_polled();
                made.set(Some(function.clone()));
                Rc::new(function) as Rc<dyn PciFunction>
            },
        );
        let function = made.take().expect("a session has a function");
        let wire = Wire(Rc::new(RefCell::new(session)));
        wire.call(VERSION, &payload!(0_u16, 0_u16), None);
        let file = memory.file().try_clone().expect("there is a descriptor left");
        let bytes = memory.bytes() as u64;
        wire.call(DMA_MAP, &payload!(32_u32, 3_u32, 0_u64, 0_u64, bytes), Some(file.into()));
        let place = Place::allocate(&memory, ADMIN_ENTRIES);
        let size = u32::from(ADMIN_ENTRIES - 1);
        wire.write(CONFIG, 0x04, &[0b110]);
        wire.set(Property::AQA, &(size << 16 | size).to_le_bytes());
        wire.set(Property::ASQ, &(place.submission as u64).to_le_bytes());
        wire.set(Property::ACQ, &(place.completion as u64).to_le_bytes());
        wire.set(Property::CC, &Configuration::ENABLE_ALL_COMMAND_SETS.0.to_le_bytes());
        let (is_shadow, kept) = (mapped.is_none(), wire.clone());
        let [values, event_indexes] = [(); 2].map(|()| memory.allocate(4_096));
        let (of_admin, page) = match mapped {
            Some(page) => (Page::Mapped(page.clone()), Page::Mapped(page)),
            None => (
                Page::Messages(wire.clone()),
                Page::Shadow { memory: memory.clone(), values, event_indexes, wire },
            ),
        };
        let admin = Queue::new(&memory, place, PolledDoorbells { page: of_admin, queue: 0 });
        let attached = Self { function, memory, admin: RefCell::new(admin), page, _wire: kept };
        if is_shadow {
            let pages = [values, event_indexes].map(|address| address as u64);
            attached.execute(Command::doorbell_buffer_config(pages[0], pages[1])).await;
        }
        attached
    }

    /// Creates an I/O queue without interrupts.
    pub(crate) async fn queue(&self, id: u16, entries: u16) -> Queue<PolledDoorbells> {
        let place = aside(|| Place::allocate(&self.memory, entries));
        self.execute(Command::create_io_cq(id, entries, place.completion as u64, None)).await;
        self.execute(Command::create_io_sq(id, entries, place.submission as u64, id)).await;
        let doorbells = PolledDoorbells { page: self.page.clone(), queue: id };
        aside(|| Queue::new(&self.memory, place, doorbells))
    }

    async fn execute(&self, command: Command) {
        self.admin.borrow_mut().push_as_is(command);
        self.admin.borrow_mut().ring_tail();
        self.function.look();
        while self.admin.borrow_mut().take().is_none() {
            clock::sleep(Nanos(1), Stage::Queue).await;
        }
        self.admin.borrow_mut().ring_head();
    }
}
