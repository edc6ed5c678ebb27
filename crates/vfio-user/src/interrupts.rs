//! The eventfds by which the device interrupts its client.

use crate::wire::SetIrqs;
use pcie::Interrupts;
use reactor::PassedFds;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl};
use rustix::io::Errno;
use std::cell::RefCell;
use std::os::fd::OwnedFd;

/// Pin interrupts, MSI, MSI-X, errors and requests to let go of the device, by the indexes of
/// `linux/vfio.h`.
pub(crate) const IRQ_INDEXES: u32 = 5;

/// `VFIO_PCI_MSIX_IRQ_INDEX`.
const MSIX: usize = 2;
/// `VFIO_PCI_ERR_IRQ_INDEX`.
const ERRORS: usize = 3;
/// `VFIO_PCI_REQ_IRQ_INDEX`.
const REQUESTS: usize = 4;

/// The eventfds of a client, by index and interrupt. Those of errors and requests are kept and
/// never raised by the device.
#[derive(Debug, Default)]
pub(crate) struct Eventfds {
    by_index: RefCell<[Vec<Option<Eventfd>>; IRQ_INDEXES as usize]>,
}

#[derive(Debug)]
struct Eventfd {
    fd: OwnedFd,
    /// The client has not set `O_NONBLOCK`, which is a flag of both ends.
    blocks: bool,
}

impl Eventfds {
    /// Makes room for the interrupts of a function with so many MSI-X vectors.
    pub(crate) fn set_vectors(&self, vectors: u16) {
        let mut by_index = self.by_index.borrow_mut();
        by_index[MSIX].resize_with(vectors.into(), || None);
        by_index[ERRORS].resize_with(1, || None);
        by_index[REQUESTS].resize_with(1, || None);
    }

    /// Returns the number of interrupts of an index, if there is such an index.
    pub(crate) fn count(&self, index: u32) -> Option<u32> {
        let by_index = self.by_index.borrow();
        let interrupts = by_index.get(usize::try_from(index).ok()?)?;
        Some(interrupts.len().try_into().expect("an index has at most 65,535 interrupts"))
    }

    /// Does what `message` says. `bools` is the data that follows it.
    pub(crate) fn set(
        &self,
        message: &SetIrqs,
        bools: &[u8],
        fds: &mut PassedFds,
    ) -> Result<(), Errno> {
        let index = usize::try_from(message.index).map_err(|_| Errno::INVAL)?;
        let mut by_index = self.by_index.borrow_mut();
        let interrupts = by_index.get_mut(index).ok_or(Errno::INVAL)?;
        let (data, action) = (message.flags & SetIrqs::DATA, message.flags & !SetIrqs::DATA);
        check_data(message, data, bools, fds)?;
        if (message.start, message.count, data) == (0, 0, SetIrqs::DATA_NONE) {
            return match action {
                SetIrqs::ACTION_TRIGGER => {
                    interrupts.fill_with(|| None);
                    Ok(())
                }
                SetIrqs::ACTION_MASK | SetIrqs::ACTION_UNMASK => Ok(()),
                _ => Err(Errno::INVAL),
            };
        }
        let end = message.start.checked_add(message.count).ok_or(Errno::INVAL)?;
        let range = message.start as usize..end as usize;
        let range = interrupts.get_mut(range).ok_or(Errno::INVAL)?;
        if range.is_empty() || action != SetIrqs::ACTION_TRIGGER {
            return Err(Errno::INVAL);
        }
        match data {
            SetIrqs::DATA_EVENTFD => assign(range, fds)?,
            SetIrqs::DATA_BOOL => {
                let wanted = range.iter().zip(bools).filter(|(_, wanted)| **wanted != 0);
                wanted.filter_map(|(eventfd, _)| eventfd.as_ref()).for_each(Eventfd::raise);
            }
            _ => range.iter().flatten().for_each(Eventfd::raise),
        }
        Ok(())
    }

    /// Closes all eventfds.
    pub(crate) fn clear(&self) {
        for interrupts in self.by_index.borrow_mut().iter_mut() {
            interrupts.fill_with(|| None);
        }
    }
}

impl Interrupts for Eventfds {
    fn raise(&self, vector: u16) {
        let by_index = self.by_index.borrow();
        if let Some(Some(eventfd)) = by_index[MSIX].get(usize::from(vector)) {
            eventfd.raise();
        }
    }
}

/// Fails unless the data of `message` is as much as its flags say.
fn check_data(message: &SetIrqs, data: u32, bools: &[u8], fds: &PassedFds) -> Result<(), Errno> {
    let count = message.count as usize;
    let is_right = match data {
        SetIrqs::DATA_NONE => bools.is_empty() && fds.is_empty(),
        SetIrqs::DATA_BOOL => bools.len() == count && fds.is_empty(),
        SetIrqs::DATA_EVENTFD => bools.is_empty() && (fds.is_empty() || fds.len() == count),
        _ => false,
    };
    if is_right { Ok(()) } else { Err(Errno::INVAL) }
}

/// Sets the eventfds of `interrupts`, or removes them if there are none in `fds`.
fn assign(interrupts: &mut [Option<Eventfd>], fds: &mut PassedFds) -> Result<(), Errno> {
    let eventfds: Result<Vec<_>, Errno> = fds.take().map(Eventfd::new).collect();
    let mut eventfds = eventfds?.into_iter();
    interrupts.fill_with(|| eventfds.next());
    Ok(())
}

impl Eventfd {
    fn new(fd: OwnedFd) -> Result<Self, Errno> {
        let blocks = !fcntl_getfl(&fd)?.contains(OFlags::NONBLOCK);
        Ok(Self { fd, blocks })
    }

    /// Adds 1 to the counter. A client that does not read loses nothing: the counter stays above
    /// 0.
    fn raise(&self) {
        if !self.blocks || self.is_writable() {
            // What the client passed may be anything, and its faults are its own.
            let _ = rustix::io::write(&self.fd, &1_u64.to_ne_bytes());
        }
    }

    fn is_writable(&self) -> bool {
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let fds = &mut [PollFd::new(&self.fd, PollFlags::OUT)];
        poll(fds, Some(&at_once)).is_ok_and(|ready| ready == 1)
    }
}
