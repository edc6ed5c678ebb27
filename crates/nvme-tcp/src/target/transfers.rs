use super::limits::LARGE;
use crate::framing::Fault;
use crate::pdu::{CommonHeader, FatalError, H2cData};
use base::{Buf, BufMut};
use spec::Command;

/// The requested data of a command.
#[derive(Debug)]
struct Transfer {
    command: Command,
    /// Where it goes. `None` while the inbox fills it.
    buf: Option<BufMut>,
    len: u32,
    /// Bytes received or being received.
    announced: u32,
    is_intact: bool,
}

/// A command whose data has come.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) command: Command,
    /// `None` if a digest is wrong.
    pub(super) data: Option<Buf>,
}

/// The data requested by R2Ts: one R2T for each command and all of its data. The tag of an R2T is
/// an index into this table.
#[derive(Debug, Default)]
pub(super) struct Transfers {
    slots: Vec<Option<Transfer>>,
    free: Vec<u16>,
    large: usize,
}

impl Transfers {
    /// Adds a transfer of `len` bytes for `command` into `buf` and returns its tag.
    pub(super) fn expect(&mut self, command: Command, buf: BufMut, len: u32) -> u16 {
        let transfer = Transfer { command, buf: Some(buf), len, announced: 0, is_intact: true };
        self.large += usize::from(len >= LARGE);
        match self.free.pop() {
            Some(tag) => {
                self.slots[usize::from(tag)] = Some(transfer);
                tag
            }
            None => {
                self.slots.push(Some(transfer));
                u16::try_from(self.slots.len() - 1).expect("commands are fewer than 2^16")
            }
        }
    }

    /// Returns whether no data is expected.
    pub(super) fn is_empty(&self) -> bool {
        self.free.len() == self.slots.len()
    }

    /// Returns whether data is expected that must not be copied.
    pub(super) fn expects_large(&self) -> bool {
        self.large > 0
    }

    /// Returns the buffer for `data`, if it is the next part of a transfer and not too long. The
    /// caller returns the buffer by [`Self::filled`].
    pub(super) fn take_buf(&mut self, data: &H2cData) -> Result<BufMut, Fault> {
        let transfer = self.slots.get_mut(usize::from(data.tag())).and_then(Option::as_mut);
        let Some(transfer) = transfer else { return Err(Fault::field(H2cData::TAG_AT)) };
        if transfer.command.command_id() != data.command_id() {
            return Err(Fault::field(H2cData::COMMAND_ID_AT));
        }
        let missing = transfer.len - transfer.announced;
        if data.offset() != transfer.announced || data.len() > missing {
            return Err(Fault::of(FatalError::DATA_OUT_OF_RANGE));
        }
        if data.is_last() != (data.len() == missing) {
            return Err(Fault::field(CommonHeader::FLAGS_AT));
        }
        transfer.announced += data.len();
        Ok(transfer.buf.take().expect("data of one PDU comes at a time"))
    }

    /// Takes the filled buffer back. Returns the command when all of its data has arrived.
    pub(super) fn filled(&mut self, tag: u16, buf: BufMut, is_intact: bool) -> Option<Done> {
        let slot = &mut self.slots[usize::from(tag)];
        let transfer = slot.as_mut().expect("a transfer stays until its data has come");
        transfer.is_intact &= is_intact;
        if transfer.announced < transfer.len {
            transfer.buf = Some(buf);
            return None;
        }
        let Transfer { command, len, is_intact, .. } = slot.take()?;
        self.large -= usize::from(len >= LARGE);
        self.free.push(tag);
        Some(Done { command, data: is_intact.then(|| buf.freeze()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expecting(len: u32) -> (Transfers, u16) {
        let mut transfers = Transfers::default();
        let command = Command::delete(1, b"k").with_command_id(77);
        let tag = transfers.expect(command, BufMut::unpooled(len as usize), len);
        (transfers, tag)
    }

    #[test]
    fn data_comes_in_order_and_the_last_says_so() {
        let (mut transfers, tag) = expecting(LARGE);
        assert!(transfers.expects_large());
        let first = H2cData::new(77, tag, 0, 4_096, false);
        let mut buf = transfers.take_buf(&first).unwrap();
        buf.as_mut()[..4_096].fill(1);
        assert!(transfers.filled(tag, buf, true).is_none());
        let rest = H2cData::new(77, tag, 4_096, LARGE - 4_096, true);
        let mut buf = transfers.take_buf(&rest).unwrap();
        buf.as_mut()[4_096..].fill(2);
        let done = transfers.filled(tag, buf, true).unwrap();
        assert_eq!(done.command.command_id(), 77);
        let data = done.data.unwrap();
        assert_eq!(data.bytes().unwrap()[4_095..4_097], [1, 2]);
        assert!(!transfers.expects_large());
        assert_eq!(transfers.take_buf(&rest).unwrap_err(), Fault::field(10), "the tag is free");
    }

    #[test]
    fn one_bad_digest_spoils_all_data_of_the_command() {
        let (mut transfers, tag) = expecting(10);
        for (offset, len, is_intact) in [(0, 5, false), (5, 5, true)] {
            let data = H2cData::new(77, tag, offset, len, offset > 0);
            let buf = transfers.take_buf(&data).unwrap();
            if let Some(done) = transfers.filled(tag, buf, is_intact) {
                assert!(offset > 0 && done.data.is_none());
                return;
            }
        }
        panic!("the transfer ends with its last byte");
    }

    #[test]
    fn what_was_not_asked_for_is_refused() {
        let out_of_range = Fault::of(FatalError::DATA_OUT_OF_RANGE);
        for (command_id, tag, offset, len, is_last, fault) in [
            (77, 1, 0, 100, true, Fault::field(10)),
            (77, 0xffff, 0, 100, true, Fault::field(10)),
            (78, 0, 0, 100, true, Fault::field(8)),
            (77, 0, 1, 99, true, out_of_range),
            (77, 0, 0, 101, true, out_of_range),
            (77, 0, u32::MAX, u32::MAX, true, out_of_range),
            (77, 0, 0, 99, true, Fault::field(1)),
            (77, 0, 0, 100, false, Fault::field(1)),
        ] {
            let (mut transfers, _) = expecting(100);
            let data = H2cData::new(command_id, tag, offset, len, is_last);
            assert_eq!(transfers.take_buf(&data).unwrap_err(), fault, "{data:?}");
        }
    }
}
