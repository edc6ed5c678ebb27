use crate::ack::Ack;
use crate::clean::room_queue::Place;
use crate::log::{Log, Own, Part, Writing};
use crate::store::Store;
use std::sync::Arc;

/// A store or delete that has been accepted and is not in the log yet. A shared host page stays
/// open for it until its record joins a page or this drops.
#[must_use = "pages stay open for it until it drops"]
pub struct Announced {
    /// `None` where hosts are answered before their pages land: no page is padded early then.
    log: Option<Arc<Own<Log>>>,
    /// The number of the writer that counts it.
    counted: Option<usize>,
    /// Its place among the writes that wait for space, if it was one of them.
    pub(crate) place: Option<Place>,
}

impl Announced {
    /// Stops counting this write while it waits for space: pages do not stay open for it.
    pub(crate) fn pause(&mut self) {
        if let Some((log, writer)) = self.log.as_ref().zip(self.counted.take()) {
            log.retract(&mut log.writing_of(writer).part());
        }
    }

    /// As [`Self::pause`], for a write whose record may have joined a page of this writer, which is
    /// locked. If another one counts it, it still does.
    pub(crate) fn pause_in(&mut self, part: &mut Part<'_, '_>) {
        let Some(log) = &self.log else { return };
        if self.counted.take_if(|writer| *writer == part.writer.number).is_some() {
            log.retract(part);
        } else {
            log.pad_unannounced(part);
        }
    }

    /// Counts this write again.
    #[inline]
    pub(crate) fn resume_in(&mut self, writing: &mut Writing<'_>) {
        if self.log.is_some() && self.counted.is_none() {
            let writer = writing.writer();
            self.counted = Some(writer.number);
            writer.buffer.announce();
        }
    }
}

impl Drop for Announced {
    fn drop(&mut self) {
        if self.counted.is_some() && clock::is_installed() {
            self.pause();
        }
    }
}

impl std::fmt::Debug for Announced {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Announced({})", self.counted.is_some())
    }
}

impl Store {
    /// Announces a store or delete: call it when the command is accepted, before any other wait.
    pub fn announce(self: &Arc<Self>) -> Announced {
        if self.config.ack != Ack::Program {
            return Announced { log: None, counted: None, place: None };
        }
        let mut writing = self.log.writing();
        let writer = writing.writer();
        writer.buffer.announce();
        let (log, counted) = (Some(writer.log.reference(&self.log)), Some(writer.number));
        Announced { log, counted, place: None }
    }
}
