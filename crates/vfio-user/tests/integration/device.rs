use pcie::{DoorbellPage, HostMemory, Interrupts, PciFunction, Region};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use vfio_user::UnsharedMemory;

/// What a [`Device`] was told, for the test's thread.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) resets: u32,
    pub(crate) is_closed: bool,
    /// Region, offset and length of each write.
    pub(crate) writes: Vec<(Region, u64, usize)>,
    /// What the server's operator was told.
    pub(crate) unshared: Vec<UnsharedMemory>,
    /// A DMA read of address 0 by a closed device failed.
    pub(crate) lost_memory: bool,
}

/// A function whose registers are bytes, some of which do something when they are written.
pub(crate) struct Device {
    bar: RefCell<[u8; BAR0]>,
    config: RefCell<[u8; CONFIG]>,
    memory: Rc<dyn HostMemory>,
    interrupts: Rc<dyn Interrupts>,
    doorbells: Option<Rc<dyn DoorbellPage>>,
    log: Arc<Mutex<Log>>,
}

pub(crate) const BAR0: usize = 8_192;
pub(crate) const CONFIG: usize = 256;
pub(crate) const VECTORS: u16 = 20;

/// 8 bytes: where DMA reads.
pub(crate) const SOURCE: u64 = 0x40;
/// 8 bytes: where DMA writes.
pub(crate) const TARGET: u64 = 0x48;
/// 4 bytes: how many bytes DMA copies.
pub(crate) const LENGTH: u64 = 0x50;
/// 4 bytes: which DMA to do when written; see [`run`](Device::run).
pub(crate) const GO: u64 = 0x54;
/// 4 bytes: [`DONE`], or which step failed.
pub(crate) const OUTCOME: u64 = 0x58;
/// 4 bytes: the vector to raise when written.
pub(crate) const RAISE: u64 = 0x5c;
/// 4 bytes: what a load loads and a store stores.
pub(crate) const WORD: u64 = 0x60;

pub(crate) const COPY: u32 = 1;
pub(crate) const LOAD: u32 = 2;
pub(crate) const STORE: u32 = 3;
/// Loads the doorbell at the offset in [`SOURCE`] to [`WORD`].
pub(crate) const LOAD_DOORBELL: u32 = 4;
/// Stores [`WORD`] to the doorbell at the offset in [`TARGET`].
pub(crate) const STORE_DOORBELL: u32 = 5;

pub(crate) const DONE: u32 = 100;
pub(crate) const READ_FAILED: u32 = 101;
pub(crate) const WRITE_FAILED: u32 = 102;

impl Device {
    pub(crate) fn new(
        memory: Rc<dyn HostMemory>,
        interrupts: Rc<dyn Interrupts>,
        doorbells: Option<Rc<dyn DoorbellPage>>,
        log: Arc<Mutex<Log>>,
    ) -> Self {
        let config = std::array::from_fn(|at| u8::try_from(at).unwrap());
        let (bar, config) = (RefCell::new([0; BAR0]), RefCell::new(config));
        Self { bar, config, memory, interrupts, doorbells, log }
    }

    fn register<const N: usize>(&self, at: u64) -> [u8; N] {
        let at = usize::try_from(at).unwrap();
        self.bar.borrow()[at..at + N].try_into().unwrap()
    }

    fn set(&self, at: u64, value: u32) {
        let at = usize::try_from(at).unwrap();
        self.bar.borrow_mut()[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    /// Does DMA, and returns the outcome.
    fn run(&self, kind: u32) -> u32 {
        let source = u64::from_le_bytes(self.register(SOURCE));
        let target = u64::from_le_bytes(self.register(TARGET));
        match kind {
            COPY => {
                let len = u32::from_le_bytes(self.register(LENGTH));
                let mut bytes = vec![0; usize::try_from(len).unwrap()];
                if self.memory.read(source, &mut bytes).is_err() {
                    return READ_FAILED;
                }
                self.memory.write(target, &bytes).map_or(WRITE_FAILED, |()| DONE)
            }
            LOAD => match self.memory.load(source) {
                Ok(word) => {
                    self.set(WORD, word);
                    DONE
                }
                Err(_) => READ_FAILED,
            },
            STORE => {
                let word = u32::from_le_bytes(self.register(WORD));
                self.memory.store(target, word).map_or(WRITE_FAILED, |()| DONE)
            }
            LOAD_DOORBELL => {
                self.set(WORD, self.doorbells.as_ref().unwrap().load(source));
                DONE
            }
            STORE_DOORBELL => {
                let word = u32::from_le_bytes(self.register(WORD));
                self.doorbells.as_ref().unwrap().store(target, word);
                DONE
            }
            other => other,
        }
    }
}

impl PciFunction for Device {
    fn bytes(&self, region: Region) -> u64 {
        match region {
            Region::Bar0 => BAR0 as u64,
            Region::Config => CONFIG as u64,
        }
    }

    fn vectors(&self) -> u16 {
        VECTORS
    }

    fn read(&self, region: Region, offset: u64, into: &mut [u8]) {
        let at = usize::try_from(offset).unwrap();
        match region {
            Region::Bar0 => into.copy_from_slice(&self.bar.borrow()[at..at + into.len()]),
            Region::Config => into.copy_from_slice(&self.config.borrow()[at..at + into.len()]),
        }
    }

    fn write(&self, region: Region, offset: u64, bytes: &[u8]) {
        let at = usize::try_from(offset).unwrap();
        match region {
            Region::Bar0 => self.bar.borrow_mut()[at..at + bytes.len()].copy_from_slice(bytes),
            Region::Config => self.config.borrow_mut()[at..at + bytes.len()].copy_from_slice(bytes),
        }
        self.log.lock().unwrap().writes.push((region, offset, bytes.len()));
        match (region, offset) {
            (Region::Bar0, GO) => {
                let outcome = self.run(u32::from_le_bytes(self.register(GO)));
                self.set(OUTCOME, outcome);
            }
            (Region::Bar0, RAISE) => {
                let vector = u32::from_le_bytes(self.register(RAISE));
                self.interrupts.raise(vector.try_into().unwrap());
            }
            _ => {}
        }
    }

    fn reset(&self) {
        self.log.lock().unwrap().resets += 1;
        self.bar.borrow_mut().fill(0);
    }

    fn close(&self) {
        self.log.lock().unwrap().is_closed = true;
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let is_lost = self.memory.read(0, &mut [0]).is_err();
        self.log.lock().unwrap().lost_memory = is_lost;
    }
}
