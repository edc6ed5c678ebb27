use super::{ACTIONS_MAX, pause};
use crate::entry;
use crate::input::Input;
use crate::watch::kept_out;
use crate::world::{NQN, World, pass, run};
use base::Nanos;
use pcie::{DoorbellPage, HostRam, Interrupts, NvmeFunction, PciFunction, Region};
use spec::{Command, Configuration, DataPointerKind, Property, SglDescriptor};
use std::cell::Cell;
use std::rc::Rc;
use zerocopy::IntoBytes;

const PAGE: u64 = 4_096;

/// Pages of memory of the attacker's host, adjacent.
const PAGES: u64 = 40;

/// Entries of its queues.
const ENTRIES: u16 = 16;

/// Queues that it creates in memory that is there: the admin queue and two others.
const QUEUES: u16 = 3;

/// Offsets of registers: all that there are, and some between and behind them.
const OFFSETS: [u64; 20] = [
    0x00, 0x04, 0x08, 0x0c, 0x10, 0x14, 0x1c, 0x20, 0x24, 0x28, 0x2c, 0x30, 0x34, 0x3c, 0x68,
    0xffc, 0x1010, 0x1ffc, 0x2000, 0x3ffc,
];

/// Writes registers, queues and lists in memory, doorbells, and takes memory away, as a host on
/// PCIe that does what it wants: one that writes doorbells to the function, and one that has mapped
/// them.
pub fn pcie(bytes: &[u8]) {
    attack(bytes, None);
    attack(bytes, Some(Rc::default()));
}

fn attack(bytes: &[u8], doorbells: Option<Rc<Doorbells>>) {
    let mut input = Input::new(bytes);
    run(input.byte().into(), async |world| {
        let attacker = Attacker::new(world, doorbells);
        attacker.enable();
        for _ in 0..ACTIONS_MAX {
            if input.is_over() {
                break;
            }
            attacker.act(world, &mut input).await;
        }
        attacker
    });
}

/// A host on PCIe. Dropping it closes its function.
struct Attacker {
    function: NvmeFunction,
    ram: Rc<HostRam>,
    interrupts: Rc<Count>,
    /// The first of its pages: a submission queue and a completion queue each, then data.
    first: u64,
    tails: [Cell<u16>; QUEUES as usize],
    doorbells: Option<Rc<Doorbells>>,
}

/// A page of doorbells that the attacker has mapped.
struct Doorbells([Cell<u32>; 1024]);

impl Default for Doorbells {
    fn default() -> Self {
        Self([const { Cell::new(0) }; 1024])
    }
}

impl Doorbells {
    fn at(&self, offset: u64) -> &Cell<u32> {
        &self.0[usize::try_from(offset / 4).expect("a page has few")]
    }
}

impl DoorbellPage for Doorbells {
    fn load(&self, offset: u64) -> u32 {
        self.at(offset).get()
    }

    fn read(&self, into: &mut [u8]) {
        for (bytes, doorbell) in into.chunks_mut(4).zip(&self.0) {
            bytes.copy_from_slice(&doorbell.get().to_le_bytes());
        }
    }

    fn store(&self, offset: u64, value: u32) {
        self.at(offset).set(value);
    }
}

#[derive(Default)]
struct Count(Cell<u64>);

impl Interrupts for Count {
    fn raise(&self, vector: u16) {
        assert!(vector < 128, "vector {vector} does not exist");
        self.0.set(self.0.get() + 1);
    }
}

impl Attacker {
    fn new(world: &World, doorbells: Option<Rc<Doorbells>>) -> Self {
        let (ram, interrupts) = (Rc::<HostRam>::default(), Rc::<Count>::default());
        let first = ram.allocate(PAGES);
        let entrance = world.entrance.entrance();
        let page = doorbells.clone().map(|page| page as Rc<dyn DoorbellPage>);
        let function = NvmeFunction::new(entrance, NQN, ram.clone(), interrupts.clone(), page);
        let function = function.expect("there is room for a controller");
        if doorbells.is_some() {
            function.set_polled();
        }
        Self { function, ram, interrupts, first, tails: Default::default(), doorbells }
    }

    fn submission(&self, queue: u16) -> u64 {
        self.first + u64::from(queue) * 2 * PAGE
    }

    fn completion(&self, queue: u16) -> u64 {
        self.submission(queue) + PAGE
    }

    fn write(&self, offset: u64, value: u32) {
        self.function.write(Region::Bar0, offset, &value.to_le_bytes());
    }

    /// Writes the doorbell at an offset from the first one.
    fn write_doorbell(&self, offset: u64, value: u32) {
        let Some(page) = &self.doorbells else { return self.write(0x1000 + offset, value) };
        page.store(offset, value);
        // As a reactor does that is awake.
        self.function.look();
    }

    /// Enables the controller with admin queues that are there.
    fn enable(&self) {
        // Bus master.
        self.function.write(Region::Config, 0x04, &[0b110]);
        self.write(Property::CC.0.into(), 0);
        let size = u32::from(ENTRIES - 1);
        self.write(Property::AQA.0.into(), size << 16 | size);
        let queues = [(Property::ASQ, self.submission(0)), (Property::ACQ, self.completion(0))];
        for (property, address) in queues {
            self.function.write(Region::Bar0, property.0.into(), &address.to_le_bytes());
        }
        self.write(Property::CC.0.into(), Configuration::ENABLE_ALL_COMMAND_SETS.0);
        self.tails.iter().for_each(|tail| tail.set(0));
    }

    async fn act(&self, world: &World, input: &mut Input<'_>) {
        match input.below(20) {
            0..9 => self.submit(input),
            9 => self.consume(input),
            10 => self.scribble(input),
            11 => self.ring(input),
            12 => self.write_register(input),
            13 => self.map(input),
            14 => self.write_config(input),
            15 => {
                if input.one_in(3) {
                    self.function.reset();
                }
                self.enable();
            }
            16 => self.check_disabled(world, input).await,
            17 => world.hold_up(Nanos(u64::from(input.byte()))).await,
            _ => pass(pause(input)).await,
        }
        if !input.one_in(3) {
            pass(Nanos(1)).await;
        }
    }

    /// Writes commands to a queue and rings its doorbell.
    fn submit(&self, input: &mut Input<'_>) {
        let queue = input.pick(&[0, 1, 1, 2]);
        for _ in 0..=input.below(3) {
            let command = if queue == 0 { self.admin(input) } else { entry::io(input) };
            let command = self.with_pointer(kept_out(&command), input);
            let command = command.with_command_id(input.below(20).to_le_bytes()[0].into());
            let tail = &self.tails[usize::from(queue)];
            let at = self.submission(queue) + u64::from(tail.get()) * 64;
            self.put(at, command.as_bytes());
            tail.set((tail.get() + 1) % ENTRIES);
        }
        self.write_doorbell(u64::from(queue) * 8, self.tails[usize::from(queue)].get().into());
    }

    /// An admin command: often one about queues.
    fn admin(&self, input: &mut Input<'_>) -> Command {
        let queue = input.pick(&[1, 2]);
        let (id, other) = (if input.one_in(8) { input.half() } else { queue }, input.pick(&[1, 2]));
        let entries = if input.one_in(8) { input.half().max(1) } else { ENTRIES };
        match input.below(12) {
            0 | 1 => Command::create_io_cq(id, entries, self.completion(queue), Some(other)),
            2 | 3 => Command::create_io_sq(id, entries, self.submission(queue), other),
            4 => Command::delete_io_sq(id),
            5 => Command::delete_io_cq(id),
            6 => Command::doorbell_buffer_config(self.page(input), self.page(input)),
            7 => Command::abort(other, input.below(20).to_le_bytes()[0].into()),
            _ => entry::admin(input),
        }
    }

    /// The command with a data pointer into the attacker's memory, unless it has one of queues.
    fn with_pointer(&self, command: Command, input: &mut Input<'_>) -> Command {
        let has_one = command.prp()[0] != 0 && command.data_pointer_kind() == DataPointerKind::Prp;
        if has_one && !input.one_in(8) {
            return command;
        }
        let (first, second) = (self.address(input), self.address(input));
        if input.one_in(3) {
            let kinds = [SglDescriptor::DATA_BLOCK, SglDescriptor::SEGMENT, 0x30, 0x10, 0x5a];
            let len = input.pick(&[16, 64, 4_096, 16_384, 100, 0]);
            return command.with_sgl(SglDescriptor::new(input.pick(&kinds), first, len));
        }
        command.with_prp([first, second])
    }

    /// One of its pages, or one behind them.
    fn page(&self, input: &mut Input<'_>) -> u64 {
        self.first + u64::from(input.below(42)) * PAGE
    }

    fn address(&self, input: &mut Input<'_>) -> u64 {
        let offset = input.pick(&[0, 0, 0, 0, 8, 4_088, 4_092, 4_080, 2_048, 1]);
        match input.below(12) {
            0 => u64::from(input.number()) << 32 | u64::from(input.number()),
            1 => u64::MAX - u64::from(input.below(9_000)),
            _ => self.page(input) + offset,
        }
    }

    /// Writes to memory that may have gone.
    fn put(&self, address: u64, bytes: &[u8]) {
        let _ = pcie::HostMemory::write(&*self.ram, address, bytes);
    }

    /// Writes addresses, descriptors or any bytes to a page of data: lists, doorbells, completions.
    fn scribble(&self, input: &mut Input<'_>) {
        // Not to submission queues: commands are kept out of the namespaces of the other host.
        let page = self.first + (u64::from(input.below(34)) + 6) * PAGE;
        let mut bytes = Vec::new();
        for _ in 0..input.below(60) {
            match input.below(3) {
                0 => bytes.extend(self.address(input).to_le_bytes()),
                1 => {
                    let kind = input.pick(&[0x00, 0x20, 0x30, 0x10]);
                    let len = input.pick(&[16, 32, 4_096, 0]);
                    let descriptor = SglDescriptor::new(kind, self.address(input), len);
                    bytes.extend(descriptor.as_bytes());
                }
                _ => bytes.extend(input.array::<16>()),
            }
        }
        self.put(page, &bytes);
    }

    /// Gives completions back, as many as it wants.
    fn consume(&self, input: &mut Input<'_>) {
        let head = input.below(ENTRIES.into());
        self.write_doorbell(4 + u64::from(input.pick(&[0_u16, 1, 1, 2])) * 8, head);
    }

    fn ring(&self, input: &mut Input<'_>) {
        let place = if input.one_in(3) { input.below(0x400) } else { input.below(8) };
        let value = if input.one_in(3) { input.number() } else { input.below(ENTRIES.into()) };
        self.write_doorbell(u64::from(place) * 4, value);
    }

    fn write_register(&self, input: &mut Input<'_>) {
        let (offset, value) = (input.pick(&OFFSETS), input.number());
        if offset == u64::from(Property::NSSR.0) && value == Property::RESET_SUBSYSTEM {
            return;
        }
        let value = if offset == 0x14 { value & 0x00ff_c071 | 0x0046_0000 } else { value };
        self.write(offset, value);
        let mut bytes = vec![0; input.below(64) as usize];
        self.function.read(Region::Bar0, u64::from(input.below(0x3fc0)), &mut bytes);
    }

    fn write_config(&self, input: &mut Input<'_>) {
        let offset = if input.one_in(3) { input.below(4_032) } else { input.below(0xa0) };
        self.function.write(Region::Config, offset.into(), &input.bytes(16));
        let mut bytes = [0; 4_096];
        self.function.read(Region::Config, 0, &mut bytes);
    }

    fn map(&self, input: &mut Input<'_>) {
        let page = self.first + u64::from(input.below(40)) * PAGE;
        let pages = u64::from(input.below(3)) + 1;
        if input.one_in(2) { self.ram.unmap(page, pages) } else { self.ram.map(page, 1) }
    }

    /// Disables the controller while commands run, and checks that it leaves the host alone.
    async fn check_disabled(&self, world: &World, input: &mut Input<'_>) {
        let closed = world.close_gate();
        self.submit(input);
        pass(Nanos(1)).await;
        match input.below(3) {
            0 => self.write(Property::CC.0.into(), 0),
            1 => self.function.reset(),
            _ => self.function.write(Region::Config, 0x58, &[0, 0x80]),
        }
        let before = (self.ram.writes(), self.interrupts.0.get());
        drop(closed);
        pass(Nanos::from_millis(1)).await;
        assert_eq!((self.ram.writes(), self.interrupts.0.get()), before, "it is disabled");
        self.enable();
    }
}

impl Drop for Attacker {
    fn drop(&mut self) {
        self.function.close();
    }
}
