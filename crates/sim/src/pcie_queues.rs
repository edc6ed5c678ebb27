use crate::pcie_data::PcieData;
use crate::pcie_target::{DoorbellMode, PcieTarget};
use crate::trace;
use base::{Buf, Nanos, Rng};
use clock::Stage;
use controller::{Completion, Queue, Submission};
use pcie::PciFunction;
use pcie::host::Driver;
use pcie::{HostRam, Interrupts};
use spec::{
    Command, Configuration, ControllerStatus, Opcode, Property, Shutdown, Status, Transfer,
};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::{Rc, Weak};

/// How a host stops using its controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reset {
    /// It disables the controller (CC.EN).
    Disable,
    /// It shuts the controller down, and then disables it.
    ShutDown,
    /// It resets the function.
    Function,
    /// It resets the subsystem, and so the functions of all hosts (NVM Subsystem Reset).
    Subsystem,
    /// Its machine is gone, and so is the function.
    Close,
}

/// What the data of commands is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Of the Key Value command set.
    Pairs,
    /// Of the NVM and ZNS command sets: logical blocks of so many bytes.
    Blocks(u32),
}

/// The I/O queues of a host in its own memory, to a controller that it has enabled. They end with a
/// reset, also with one of the subsystem by another host: what is outstanding then ends with a
/// status of the host (Host Pathing Error).
#[derive(Clone)]
pub(crate) struct PcieQueues(Rc<Shared>);

/// The same for the target, which does not keep them.
pub(crate) struct WeakQueues(Weak<Shared>);

struct Shared {
    target: Rc<PcieTarget>,
    driver: Rc<Driver>,
    content: Content,
    rng: RefCell<Rng>,
    queues: Vec<IoQueue>,
    next_number: Cell<u64>,
    is_over: Cell<bool>,
    is_closed: Cell<bool>,
    /// Writes to memory and interrupts up to the reset.
    touched: Cell<(u64, u64)>,
    /// Commands that were ended by a reset.
    ended: RefCell<VecDeque<Completion>>,
}

/// One of the queues.
struct IoQueue {
    id: u16,
    entries: u16,
    /// Commands that wait for a free entry.
    waiting: RefCell<VecDeque<(u64, Submission, Nanos)>>,
    outstanding: RefCell<BTreeMap<u16, Outstanding>>,
    /// Commands that were written and not announced, and completions whose entries were not given
    /// back.
    unannounced: Cell<u16>,
    kept: Cell<u16>,
}

/// A command that the device has.
struct Outstanding {
    number: u64,
    command: Command,
    data: PcieData,
    submitted: Nanos,
}

impl PcieQueues {
    /// Enables a controller that is disabled, and creates queues of so many entries. Returns queues
    /// that have ended if another host resets the subsystem before they are created.
    pub(crate) async fn open(
        target: &Rc<PcieTarget>,
        driver: Rc<Driver>,
        mode: DoorbellMode,
        content: Content,
        entries: &[u16],
        rng: Rng,
    ) -> Self {
        let queues = (1..).zip(entries).map(|(id, &entries)| {
            let (waiting, outstanding, unannounced, kept) = Default::default();
            IoQueue { id, entries, waiting, outstanding, unannounced, kept }
        });
        let (target, queues, rng) = (target.clone(), queues.collect(), RefCell::new(rng));
        let (next_number, is_over, is_closed, touched, ended) = Default::default();
        let opened = Self(Rc::new(Shared {
            target,
            driver,
            content,
            rng,
            queues,
            next_number,
            is_over,
            is_closed,
            touched,
            ended,
        }));
        opened.0.target.add(WeakQueues(Rc::downgrade(&opened.0)));
        opened.0.enable();
        opened.0.create_all(mode).await;
        opened
    }

    pub(crate) fn is_over(&self) -> bool {
        self.0.is_over.get()
    }

    /// Whether the function is gone.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.is_closed.get()
    }

    /// Ends the queues, unless they have ended.
    pub(crate) fn reset(&self, reset: Reset) {
        let shared = &*self.0;
        if shared.is_over.replace(true) {
            return;
        }
        trace::event(format_args!("{reset:?}"));
        shared.is_closed.set(reset == Reset::Close);
        let driver = &shared.driver;
        match reset {
            Reset::Disable => driver.configure(Configuration(0)),
            Reset::ShutDown => {
                let enabled = Configuration::ENABLE_ALL_COMMAND_SETS;
                driver.configure(enabled.with_shutdown(Shutdown::Normal));
                driver.configure(Configuration(0));
            }
            Reset::Function => driver.function.reset(),
            Reset::Subsystem => {
                driver.write(Property::NSSR.0.into(), Property::RESET_SUBSYSTEM);
                shared.check_subsystem_reset();
                shared.target.open_queues().iter().for_each(Self::end_with_subsystem);
            }
            Reset::Close => driver.function.close(),
        }
        shared.end_all();
    }

    /// Ends the queues, unless they have ended, because another host has reset the subsystem.
    fn end_with_subsystem(&self) {
        if !self.0.is_over.replace(true) {
            self.0.check_subsystem_reset();
            self.0.end_all();
        }
    }

    /// Checks that the function has touched neither memory nor interrupts since the reset.
    ///
    /// # Panics
    /// If it has.
    pub(crate) fn check_untouched(&self) {
        let Shared { driver, touched, .. } = &*self.0;
        let now = (driver.ram.writes(), driver.raised.total());
        assert_eq!(touched.get(), now, "a function that was reset touches nothing of its host");
    }
}

impl WeakQueues {
    /// Returns the queues if a host has them.
    pub(crate) fn upgrade(&self) -> Option<PcieQueues> {
        self.0.upgrade().map(PcieQueues)
    }
}

impl Queue for PcieQueues {
    fn submit(&self, submission: Submission) -> u64 {
        let shared = &*self.0;
        let number = shared.next_number.replace(shared.next_number.get() + 1);
        assert!(submission.long_key.is_none(), "a long key has no place in a command");
        let now = clock::now();
        if shared.is_over.get() {
            let completion = ended(number, submission.command.opcode(), now);
            shared.ended.borrow_mut().push_back(completion);
            return number;
        }
        let queue = &shared.queues[shared.pick(shared.queues.len())];
        queue.waiting.borrow_mut().push_back((number, submission, now));
        shared.push_waiting(queue);
        if shared.pick(2) == 0 {
            shared.announce(queue);
        }
        number
    }

    async fn next(&self) -> Completion {
        let shared = &*self.0;
        loop {
            let seen = shared.driver.raised.total();
            if let Some(completion) = shared.ended.borrow_mut().pop_front() {
                return completion;
            }
            if !shared.is_over.get() {
                if let Some(completion) = shared.take() {
                    return completion;
                }
                shared.queues.iter().for_each(|queue| shared.announce(queue));
            }
            shared.driver.raised.after(seen).await;
        }
    }
}

impl Shared {
    /// Enables the controller, and clears the bit that says that the subsystem was reset.
    fn enable(&self) {
        self.driver.enable();
        self.driver.write(Property::CSTS.0.into(), ControllerStatus::SUBSYSTEM_RESET.0);
        assert_eq!(self.driver.status(), ControllerStatus::READY);
    }

    /// Creates the queues, unless another host ends them first.
    async fn create_all(&self, mode: DoorbellMode) {
        if mode == DoorbellMode::Shadow {
            self.admin(self.driver.command_of_shadow()).await;
        }
        for queue in &self.queues {
            if self.is_over.get() {
                return;
            }
            for command in self.driver.commands_of_queue(queue.id, queue.entries) {
                self.admin(command).await;
            }
        }
    }

    /// Executes an admin command, unless the queues end first.
    async fn admin(&self, command: Command) {
        if self.is_over.get() {
            return;
        }
        self.driver.submit(0, command);
        while !self.is_over.get() {
            let seen = self.driver.raised.total();
            if let Some(completion) = self.driver.try_next(0) {
                assert_eq!(completion.status(), Status::SUCCESS, "{command:?}");
                self.driver.ring_head(0);
                return;
            }
            self.driver.raised.after(seen).await;
        }
    }

    /// Checks what each host sees of its own function after a reset of the subsystem.
    fn check_subsystem_reset(&self) {
        assert_eq!(self.driver.status(), ControllerStatus::SUBSYSTEM_RESET);
        assert_eq!(self.driver.property(Property::CC), 0, "it is disabled");
    }

    fn pick(&self, bound: usize) -> usize {
        usize::try_from(self.rng.borrow_mut().below(bound as u64)).expect("below a usize")
    }

    fn ram(&self) -> &HostRam {
        &self.driver.ram
    }

    /// Writes commands that wait to free entries.
    fn push_waiting(&self, queue: &IoQueue) {
        while queue.outstanding.borrow().len() + 1 < usize::from(queue.entries) {
            let Some((number, submission, submitted)) = queue.waiting.borrow_mut().pop_front()
            else {
                return;
            };
            let Submission { command, data, .. } = submission;
            let (command, data) = match command.transfer() {
                Transfer::None => (command, PcieData::none()),
                // Zone Management Send has data for some actions only.
                Transfer::ToController if data.len() == 0 => (command, PcieData::none()),
                Transfer::ToController => {
                    let bytes = data.bytes().expect("a host has bytes");
                    PcieData::place(self.ram(), command, bytes, &mut self.rng.borrow_mut())
                }
                Transfer::ToHost => {
                    let room = vec![0xee; self.room(&command)];
                    PcieData::place(self.ram(), command, &room, &mut self.rng.borrow_mut())
                }
            };
            // Ids repeat after 65,534 commands: the first command with this id has completed.
            let id = u16::try_from(number % 0xfffe).expect("it has 16 bits");
            self.driver.push(queue.id, command.with_command_id(id));
            queue.unannounced.set(queue.unannounced.get() + 1);
            let asked = Outstanding { number, command, data, submitted };
            let before = queue.outstanding.borrow_mut().insert(id, asked);
            assert!(before.is_none(), "an id is used once at a time");
        }
    }

    /// Returns how many bytes a command reads at most.
    fn room(&self, command: &Command) -> usize {
        let bytes = match (self.content, command.opcode()) {
            (Content::Pairs, _) => command.size().into(),
            (Content::Blocks(bytes), Opcode::READ) => {
                u64::from(command.blocks()) * u64::from(bytes)
            }
            (Content::Blocks(_), _) => command.report_bytes(),
        };
        usize::try_from(bytes).expect("it is in memory")
    }

    /// Writes the doorbells of a queue.
    fn announce(&self, queue: &IoQueue) {
        if queue.kept.take() > 0 {
            self.driver.ring_head(queue.id);
        }
        if queue.unannounced.take() > 0 {
            self.driver.ring_tail(queue.id);
        }
    }

    /// Takes a completion, if one was posted.
    fn take(&self) -> Option<Completion> {
        let first = self.pick(self.queues.len());
        let turn = (0..self.queues.len()).map(|at| (first + at) % self.queues.len());
        let (queue, entry) = turn
            .map(|place| &self.queues[place])
            .find_map(|queue| Some((queue, self.driver.try_next(queue.id)?)))?;
        queue.kept.set(queue.kept.get() + 1);
        if self.pick(3) == 0 {
            self.announce(queue);
        }
        let asked = queue.outstanding.borrow_mut().remove(&entry.command_id());
        let Outstanding { number, command, data, submitted } =
            asked.expect("a command is completed once, and only if it was submitted");
        let is_retrieve = self.content == Content::Pairs && command.opcode() == Opcode::RETRIEVE;
        let mut read = Buf::phantom(0, 0);
        if command.transfer() == Transfer::ToHost && entry.status().is_success() {
            let room = self.room(&command);
            let value = usize::try_from(entry.result()).unwrap_or(usize::MAX);
            read = data.read(self.ram(), if is_retrieve { room.min(value) } else { room });
        }
        data.free(self.ram());
        self.push_waiting(queue);
        let outcome = (entry.status(), entry.result(), read);
        Some(Completion::over_link(number, command.opcode(), submitted, outcome))
    }

    /// Ends all commands, and frees their memory and that of the queues. Whether the device has
    /// executed them is not known.
    fn end_all(&self) {
        let mut all = Vec::new();
        for queue in &self.queues {
            let outstanding = std::mem::take(&mut *queue.outstanding.borrow_mut());
            for asked in outstanding.into_values() {
                asked.data.free(self.ram());
                all.push(ended(asked.number, asked.command.opcode(), asked.submitted));
            }
            let waiting = queue.waiting.borrow_mut().drain(..).collect::<Vec<_>>();
            all.extend(waiting.into_iter().map(|(number, submission, submitted)| {
                ended(number, submission.command.opcode(), submitted)
            }));
        }
        self.driver.free_memory();
        all.sort_by_key(|completion| completion.id);
        self.ended.borrow_mut().extend(all);
        // Wakes the host if it waits for an interrupt.
        self.driver.raised.raise(0);
        self.touched.set((self.driver.ram.writes(), self.driver.raised.total()));
    }
}

/// The completion of a command without an answer.
fn ended(number: u64, opcode: Opcode, submitted: Nanos) -> Completion {
    let outcome = (Status::HOST_PATHING_ERROR, 0, Buf::phantom(0, 0));
    Completion::over_link(number, opcode, submitted, outcome)
}

/// Waits for `after` and then resets the controller of `queues`. Does nothing if the controller was
/// reset earlier.
pub(crate) async fn reset_later(queues: PcieQueues, after: Nanos, reset: Reset) {
    clock::sleep(after, Stage::Queue).await;
    queues.reset(reset);
}
