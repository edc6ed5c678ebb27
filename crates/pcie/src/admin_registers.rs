use crate::segments::PAGE;
use spec::Property;
use std::cell::Cell;

/// Where the admin queues are and how long: AQA, ASQ and ACQ (NVMe over PCIe 1.1).
#[derive(Debug, Default)]
pub(crate) struct AdminRegisters {
    sizes: Cell<u32>,
    submission: Cell<u64>,
    completion: Cell<u64>,
}

/// Bits of AQA that can be written: two 0's based numbers of entries of 12 bits.
const SIZES: u32 = 0x0fff_0fff;

impl AdminRegisters {
    pub(crate) fn sizes(&self) -> u32 {
        self.sizes.get()
    }

    pub(crate) fn submission(&self) -> u64 {
        self.submission.get()
    }

    pub(crate) fn completion(&self) -> u64 {
        self.completion.get()
    }

    /// Writes 4 bytes. Returns false if there is no such register.
    pub(crate) fn write(&self, offset: u32, value: u32) -> bool {
        let (low, high) = (u64::from(value), u64::from(value) << 32);
        match offset {
            _ if offset == Property::AQA.0 => self.sizes.set(value & SIZES),
            _ if offset == Property::ASQ.0 => replace(&self.submission, !0 << 32, low),
            _ if offset == Property::ASQ.0 + 4 => replace(&self.submission, !0 >> 32, high),
            _ if offset == Property::ACQ.0 => replace(&self.completion, !0 << 32, low),
            _ if offset == Property::ACQ.0 + 4 => replace(&self.completion, !0 >> 32, high),
            _ => return false,
        }
        true
    }

    /// Returns the address and the entries of the submission queue and of the completion queue.
    /// `None` if they are too short, or do not begin at a page.
    pub(crate) fn queues(&self) -> Option<[(u64, u16); 2]> {
        let sizes = [self.sizes.get(), self.sizes.get() >> 16];
        let [submission, completion] =
            sizes.map(|size| u16::try_from(size & 0xfff).expect("it has 12 bits") + 1);
        let queues = [(self.submission.get(), submission), (self.completion.get(), completion)];
        let is_valid = |(address, entries): &(u64, u16)| {
            *entries >= 2
                && address.is_multiple_of(PAGE)
                && address.checked_add(PAGE * 64).is_some()
        };
        queues.iter().all(is_valid).then_some(queues)
    }

    pub(crate) fn reset(&self) {
        self.sizes.set(0);
        self.submission.set(0);
        self.completion.set(0);
    }
}

/// Keeps the bits of `kept` and sets the others to those of `value`.
fn replace(cell: &Cell<u64>, kept: u64, value: u64) {
    cell.set(cell.get() & kept | value);
}
