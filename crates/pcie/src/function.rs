use crate::admin_registers::AdminRegisters;
use crate::bar0::{BAR0_BYTES, Doorbell, IO_QUEUES_MAX};
use crate::budget::Budget;
use crate::bus::{DoorbellPage, HostMemory, Interrupts, PciFunction, Region};
use crate::bus_master::BusMaster;
use crate::completion_queue::CompletionQueue;
use crate::config_space::{CONFIG_BYTES, ConfigSpace};
use crate::polled_doorbells::PolledDoorbells;
use crate::queue_fault::QueueFault;
use crate::queues::Queues;
use crate::submission_queue::{Parts, QueueHandle, SubmissionQueue};
use crate::turn::Turn;
use crate::work::Work;
use base::BufPool;
use controller::Entrance;
use spec::{ControllerStatus, Property};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::mem;
use std::rc::Rc;
use std::sync::atomic::{Ordering, fence};

/// Memory of pooled buffers of each size, in bytes.
const POOL_BYTES: usize = 4 << 20;

/// The NVMe controller of a subsystem as a PCIe function of one host. Clones are handles.
#[derive(Clone)]
pub struct NvmeFunction(Rc<Function>);

/// A function, and the queues of its controller while it is enabled.
pub(crate) struct Function {
    pub(crate) parts: Rc<Parts>,
    pub(crate) vectors: u16,
    pub(crate) queues: RefCell<Queues>,
    /// The doorbells, if the host maps their page.
    pub(crate) mapped: Option<Rc<PolledDoorbells>>,
    master: Rc<BusMaster>,
    config: ConfigSpace,
    admin: AdminRegisters,
    /// Whether the function's task leaves it to others to arm the doorbells.
    is_polled: Cell<bool>,
    is_closed: Cell<bool>,
}

impl NvmeFunction {
    /// Creates the function for a host with this memory and these interrupts, which maps the page
    /// `doorbells` if there is one. Returns `None` if there is no subsystem `nqn`, or if it has as
    /// many controllers as the rules allow.
    pub fn new(
        entrance: &Entrance,
        nqn: &str,
        memory: Rc<dyn HostMemory>,
        interrupts: Rc<dyn Interrupts>,
        doorbells: Option<Rc<dyn DoorbellPage>>,
    ) -> Option<Self> {
        let controller = entrance.pcie_controller(nqn, IO_QUEUES_MAX, doorbells.is_none())?;
        let (io_queues, _) = controller.queues_max();
        let vectors = io_queues + 1;
        let master = Rc::new(BusMaster::new(memory, interrupts));
        let parts = Parts {
            memory: master.clone(),
            controller,
            pool: BufPool::new(POOL_BYTES),
            budget: Budget::default(),
            work: Work::default(),
        };
        let function = Rc::new(Function {
            parts: Rc::new(parts),
            vectors,
            queues: RefCell::default(),
            mapped: doorbells.map(|page| Rc::new(PolledDoorbells::Mapped(page))),
            master,
            config: ConfigSpace::new(vectors),
            admin: AdminRegisters::default(),
            is_polled: Cell::new(false),
            is_closed: Cell::new(false),
        });
        clock::spawn(function.clone().serve());
        Some(Self(function))
    }

    /// Leaves doorbells that are not written to the function itself to a caller that polls
    /// [`Self::look`] while it is awake, calls [`Self::arm`] before it sleeps, and does not sleep
    /// unless [`Self::can_arm`]. Without this call, the function asks the host for real doorbells
    /// whenever it has nothing to do, which it cannot if the host maps them.
    pub fn set_polled(&self) {
        self.0.is_polled.set(true);
    }

    /// Reads the doorbells that are polled. Returns true if there is something to do, for which it
    /// wakes the function's task.
    #[inline]
    pub fn look(&self) -> bool {
        let has_work = self.0.look(true) && self.0.can_work();
        if has_work {
            self.0.parts.work.notify();
        }
        has_work
    }

    /// Returns whether the host can be asked to write real doorbells: not while it has a controller
    /// whose doorbells it maps.
    pub fn can_arm(&self) -> bool {
        self.0.mapped.is_none() || !self.0.parts.controller.takes_commands()
    }

    /// Asks the host to write real doorbells from now on. [`Self::look`] once more before sleeping.
    pub fn arm(&self) {
        self.0.arm();
    }
}

impl Function {
    /// Serves the queues until the function is closed.
    async fn serve(self: Rc<Self>) {
        clock::name_task("pcie");
        assert!(self.mapped.is_none() || self.is_polled.get(), "mapped doorbells are polled");
        while !self.is_closed.get() {
            self.parts.work.wait().await;
            clock::catch_up().await;
            while self.serve_once() {
                clock::give_way().await;
            }
        }
    }

    /// Fetches commands from the admin queue and from the others in turn, and raises interrupts.
    /// Returns whether there is more to do.
    fn serve_once(&self) -> bool {
        // A caller that polls looks again.
        self.look(!self.is_polled.get());
        let mut turn = Turn::default();
        self.parts.budget.begin_turn();
        let admin = self.queues.borrow().submission(0).cloned();
        if let Some(admin) = admin {
            self.fetch(&admin, &mut turn);
        }
        let mut ids = self.queues.borrow().with_commands();
        loop {
            let queue = self.queues.borrow().in_turn(&mut ids).cloned();
            let Some(queue) = queue else { break };
            self.fetch(&queue, &mut turn);
            // A command that does not fit the budget is the next, so that smaller ones do not
            // take what it waits for.
            if self.parts.budget.is_short() {
                self.queues.borrow_mut().set_next(queue.id());
                break;
            }
            self.queues.borrow_mut().set_next(queue.id() + 1);
            if turn.is_over() {
                break;
            }
        }
        let written = self.queues.borrow().write_posted();
        self.checked(written);
        self.raise();
        if !turn.is_empty() {
            return true;
        }
        !self.is_polled.get() && self.arm() && self.look(true) && self.can_work()
    }

    /// Returns whether the task can do some of what [`Self::look`] has found: not if there are only
    /// commands of I/O queues that wait for the budget.
    fn can_work(&self) -> bool {
        let queues = self.queues.borrow();
        let has_other = || {
            let admin = queues.submission(0);
            queues.has_posted() || admin.is_some_and(|admin| admin.has_next())
        };
        !self.parts.budget.is_short() || has_other()
    }

    fn fetch(&self, queue: &Rc<SubmissionQueue>, turn: &mut Turn) {
        if self.parts.controller.takes_commands() {
            let fetched = queue.fetch(turn, |command| self.manage(queue, &command));
            self.checked(fetched);
        }
    }

    fn raise(&self) {
        self.queues.borrow().take_interrupt(|vector| self.master.raise(vector));
    }

    /// Reads the doorbells that are polled, as [`Queues::look`] says. Returns whether a command can
    /// be fetched, or something is left to do for completions.
    #[inline]
    fn look(&self, thorough: bool) -> bool {
        // The memory of a controller that is disabled, has failed or was shut down is the host's.
        if !self.parts.controller.takes_commands() {
            return false;
        }
        let queues = self.queues.borrow();
        self.checked(queues.look(thorough)).is_some() && (queues.has_next() || queues.has_posted())
    }

    /// Asks the host to write real doorbells. Returns whether doorbells are polled: those of before
    /// are to be read once more.
    fn arm(&self) -> bool {
        let has_polled = self.parts.controller.takes_commands() && self.queues.borrow().arm();
        // The host writes a doorbell and then reads the event index.
        fence(Ordering::SeqCst);
        has_polled
    }

    /// Sets the fatal status after a fault.
    fn checked<T>(&self, result: Result<T, QueueFault>) -> Option<T> {
        if result.is_err() {
            self.parts.controller.fail();
        }
        result.ok()
    }

    fn read_dword(&self, offset: u64) -> u32 {
        let controller = &self.parts.controller;
        let Ok(offset) = u32::try_from(offset) else { return 0 };
        let half = |value: u64| if offset.is_multiple_of(8) { value } else { value >> 32 };
        let value = match Property(offset & !7) {
            Property::CAP => half(controller.get(Property::CAP)),
            Property::ASQ => half(self.admin.submission()),
            Property::ACQ => half(self.admin.completion()),
            _ if offset == Property::AQA.0 => self.admin.sizes().into(),
            _ => controller.get(Property(offset)),
        };
        #[expect(clippy::cast_possible_truncation, reason = "it is one half")]
        let value = value as u32;
        value
    }

    fn write_dword(&self, offset: u64, value: u32) {
        if let Some(doorbell) = Doorbell::at(offset) {
            let queues = self.queues.borrow();
            let mut rung = queues.ring(doorbell, value);
            // It may come while the controller takes no commands.
            if rung.is_ok() && self.parts.controller.takes_commands() {
                rung = queues.look_at(doorbell);
            }
            drop(queues);
            self.checked(rung);
            return self.parts.work.notify();
        }
        let Ok(offset) = u32::try_from(offset) else { return };
        match Property(offset) {
            Property::CC => self.configure(value),
            // The host changes these only while the controller is disabled.
            _ if self.is_enabled() => self.set(Property(offset), value),
            _ if self.admin.write(offset, value) => {}
            property => self.set(property, value),
        }
    }

    /// Writes a property of the controller. A reset of the subsystem disables it.
    fn set(&self, property: Property, value: u32) {
        self.parts.controller.set(property, value);
        if !self.is_enabled() {
            self.close_queues();
        }
    }

    fn is_enabled(&self) -> bool {
        self.parts.controller.is_enabled()
    }

    fn property(&self, property: Property) -> u32 {
        #[expect(clippy::cast_possible_truncation, reason = "the property has 4 bytes")]
        let value = self.parts.controller.get(property) as u32;
        value
    }

    /// Writes the configuration, which opens or ends the queues.
    fn configure(&self, value: u32) {
        let was_enabled = self.is_enabled();
        if !was_enabled {
            // A reset of the subsystem by another host has left them.
            self.close_queues();
        }
        self.set(Property::CC, value);
        let is_ready = ControllerStatus(self.property(Property::CSTS)).is_ready();
        if !was_enabled && self.is_enabled() && is_ready && !self.open_admin_queues() {
            self.parts.controller.fail();
        }
    }

    /// Opens the admin queues where the registers say. Returns false if they cannot be there.
    fn open_admin_queues(&self) -> bool {
        let Some([submission, completion]) = self.admin.queues() else { return false };
        let memory = self.parts.memory.clone();
        let queues = &mut *self.queues.borrow_mut();
        *queues = Queues::new(self.mapped.clone());
        let pending = queues.pending().clone();
        queues.add_completion(CompletionQueue::new(0, memory, completion, Some(0), pending));
        let completions = queues.completion(0).expect("it was added").clone();
        let queue = SubmissionQueue::new(0, self.parts.clone(), submission, completions);
        let handle = Rc::new(QueueHandle(queue.clone()));
        queue.open(self.parts.controller.admin_queue(submission.1, handle));
        queues.add_submission(queue);
        true
    }

    fn close_queues(&self) {
        let queues = mem::take(&mut *self.queues.borrow_mut());
        queues.close();
    }

    fn write_config(&self, offset: usize, bytes: &[u8]) {
        if self.config.write(offset, bytes) {
            return self.reset();
        }
        self.master.set_enabled(self.config.is_bus_master());
    }

    fn reset(&self) {
        self.parts.controller.reset();
        self.close_queues();
        self.config.reset();
        self.master.set_enabled(false);
        self.admin.reset();
    }
}

impl PciFunction for NvmeFunction {
    fn bytes(&self, region: Region) -> u64 {
        match region {
            Region::Config => CONFIG_BYTES as u64,
            Region::Bar0 => BAR0_BYTES,
        }
    }

    fn vectors(&self) -> u16 {
        self.0.vectors
    }

    fn read(&self, region: Region, offset: u64, into: &mut [u8]) {
        match (region, usize::try_from(offset)) {
            (Region::Config, Ok(offset)) => self.0.config.read(offset, into),
            _ => {
                for (offset, byte) in (offset..).zip(into) {
                    let dword = self.0.read_dword(offset & !3).to_le_bytes();
                    *byte = dword[usize::try_from(offset % 4).expect("it is below 4")];
                }
            }
        }
    }

    fn write(&self, region: Region, offset: u64, bytes: &[u8]) {
        match (region, usize::try_from(offset)) {
            (Region::Config, Ok(offset)) => self.0.write_config(offset, bytes),
            (Region::Config, Err(_)) => {}
            // Registers are written in whole dwords (NVMe over PCIe 1.1, Register Access).
            _ if offset.is_multiple_of(4) => {
                let (dwords, _) = bytes.as_chunks();
                for (offset, dword) in (offset..).step_by(4).zip(dwords) {
                    self.0.write_dword(offset, u32::from_le_bytes(*dword));
                }
            }
            _ => {}
        }
    }

    fn reset(&self) {
        self.0.reset();
    }

    fn close(&self) {
        self.0.reset();
        self.0.parts.controller.end();
        self.0.is_closed.set(true);
        self.0.parts.work.notify();
    }
}

impl fmt::Debug for NvmeFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NvmeFunction").field(&self.0.parts.controller).finish()
    }
}
