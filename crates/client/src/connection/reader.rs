use super::shared::Shared;
use crate::error::Error;
use net::Stream;
use nvme_tcp::framing::{Arrival, Fault, Inbox, Read};
use nvme_tcp::pdu::{C2hData, FatalError, Header};
use spec::Status;
use std::rc::Rc;

/// Data of at least this many bytes is read directly into its buffer.
const DIRECT: u32 = 16 << 10;

/// Data in transfer.
#[derive(Clone, Copy, Debug)]
struct Coming {
    id: u16,
    len: u32,
    /// The SUCCESS flag: the command succeeds when the data has arrived.
    is_success: bool,
}

/// The destination of the data of a header.
enum Place {
    /// The header has no data.
    Nowhere,
    Kept(Coming),
    Filled(Coming, base::BufMut, u32),
}

/// Processes PDUs until the connection ends.
pub(super) async fn read<S: Stream>(shared: Rc<Shared<S>>, mut inbox: Inbox) {
    let mut coming = None;
    let mut has_all = false;
    let error = loop {
        if let Err(error) = shared.take_in(&mut inbox, &mut coming) {
            break error;
        }
        if has_all {
            shared.stream.readable().await;
        }
        has_all = match inbox.read(&shared.stream) {
            Ok(Read::Full) => false,
            Ok(Read::Some | Read::Nothing) => true,
            Ok(Read::End) => break Error::Ended,
            Err(_) => break Error::Broken,
        };
    };
    if let Error::Fault(fault) = error {
        shared.outbox.borrow_mut().push_termination(fault, inbox.last_header());
        shared.give_up(error);
    } else {
        shared.end(error);
    }
}

impl<S: Stream> Shared<S> {
    /// Processes all bytes that have been read.
    fn take_in(&self, inbox: &mut Inbox, coming: &mut Option<Coming>) -> Result<(), Error> {
        loop {
            let place = match inbox.next()? {
                None => return Ok(()),
                Some(Arrival::Capsule(..)) => panic!("an inbox of a host takes no commands"),
                Some(Arrival::Header(header, len)) => self.place_of(&header, len)?,
                Some(Arrival::Kept(data, is_intact)) => {
                    self.follow_digest(inbox);
                    let coming = coming.take().expect("data follows its header");
                    if let Some(outstanding) = self.table.borrow_mut().found(coming.id) {
                        outstanding.keep(data, is_intact);
                    }
                    self.finish(coming);
                    Place::Nowhere
                }
                Some(Arrival::Filled(parts, is_intact)) => {
                    self.follow_digest(inbox);
                    let coming = coming.take().expect("data follows its header");
                    if let Some(outstanding) = self.table.borrow_mut().found(coming.id) {
                        outstanding.put_parts(parts, coming.len, is_intact);
                    }
                    self.finish(coming);
                    Place::Nowhere
                }
            };
            match place {
                Place::Nowhere => {}
                Place::Kept(data) => {
                    inbox.read_ahead(true);
                    *coming = Some(data);
                    inbox.keep();
                }
                Place::Filled(data, parts, offset) => {
                    // More headers of this kind are likely to follow.
                    inbox.read_ahead(data.len < DIRECT);
                    *coming = Some(data);
                    inbox.fill(parts, offset);
                }
            }
        }
    }

    /// Computes data digests as the target does, once it has shown how, unless the settings decide
    /// that.
    fn follow_digest(&self, inbox: &Inbox) {
        if let (None, Some(data_digest)) = (self.data_digest, inbox.peer_digest()) {
            self.outbox.borrow_mut().set_data_digest(data_digest);
        }
    }

    /// Acts on `header` and returns the destination of its `len` bytes of data.
    fn place_of(&self, header: &Header<'_>, len: u32) -> Result<Place, Error> {
        match header {
            Header::C2hData(header) => return Ok(self.data_of(header)?),
            Header::CapsuleResp(response) if len == 0 => {
                let entry = response.entry();
                self.table.borrow().check_response(entry.command_id())?;
                self.complete_by(entry);
            }
            Header::R2t(request) if len == 0 => {
                let part = self.table.borrow_mut().asked_for(request)?;
                self.send_data(request, &part);
            }
            Header::TermReq(term) => {
                let (error, information) = (term.error(), term.information());
                return Err(Error::Terminated { error, information });
            }
            _ => return Err(Fault::of(FatalError::SEQUENCE).into()),
        }
        Ok(Place::Nowhere)
    }

    fn data_of(&self, header: &C2hData) -> Result<Place, Fault> {
        let mut table = self.table.borrow_mut();
        let outstanding = table.reading(header)?;
        let (len, offset) = (header.len(), header.offset());
        let coming = Coming { id: header.command_id(), len, is_success: header.is_success() };
        let is_whole = offset == 0 && header.is_last();
        if is_whole && len < DIRECT {
            return Ok(Place::Kept(coming));
        }
        let parts = outstanding.take_parts().unwrap_or_else(|| {
            let room = if is_whole { len } else { outstanding.room() };
            self.pool.take(room as usize)
        });
        Ok(Place::Filled(coming, parts, offset))
    }

    /// Handles the end of a data transfer.
    fn finish(&self, coming: Coming) {
        let is_there = self.table.borrow_mut().found(coming.id).is_some();
        if coming.is_success && is_there {
            self.complete(coming.id, Status::SUCCESS, 0);
        }
    }
}
