use crate::hosts::world::NSID;
use std::fmt;

/// A submission queue entry, as hosts of a fabric write them: flags 40h (PSDT: an SGL), and an SGL
/// that says how many bytes move (Base 2.1, Common Command Format).
#[derive(Clone, Copy)]
pub(crate) struct Entry([u8; 64]);

/// SGL Data Block descriptor of an offset: the data is in the capsule.
const IN_CAPSULE: u8 = 0x01;
/// Transport SGL Data Block descriptor.
const BY_TRANSPORT: u8 = 0x5a;

/// Properties (Base 2.1, Controller Properties).
pub(crate) const CAP: u32 = 0x00;
pub(crate) const VS: u32 = 0x08;
pub(crate) const CC: u32 = 0x14;
pub(crate) const CSTS: u32 = 0x1c;
pub(crate) const CRTO: u32 = 0x68;

/// Every namespace.
pub(crate) const ALL: u32 = 0xffff_ffff;

impl Entry {
    fn new(opcode: u8, nsid: u32) -> Self {
        let mut bytes = [0; 64];
        (bytes[0], bytes[1], bytes[39]) = (opcode, 0x40, BY_TRANSPORT);
        Self(bytes).dword(1, nsid)
    }

    /// With another value in command dword `number`.
    pub(crate) fn dword(mut self, number: usize, value: u32) -> Self {
        self.0[4 * number..4 * number + 4].copy_from_slice(&value.to_le_bytes());
        self
    }

    pub(crate) fn id(mut self, id: u16) -> Self {
        self.0[2..4].copy_from_slice(&id.to_le_bytes());
        self
    }

    /// `len` bytes move, by the transport.
    pub(crate) fn moves(self, len: u32) -> Self {
        self.dword(8, len)
    }

    /// The data is in the command's own capsule.
    pub(crate) fn in_capsule(mut self) -> Self {
        self.0[39] = IN_CAPSULE;
        self
    }

    pub(crate) fn bytes(&self) -> &[u8; 64] {
        &self.0
    }

    /// How many bytes move.
    pub(crate) fn len(&self) -> u32 {
        u32::from_le_bytes(self.0[32..36].try_into().expect("there are 4"))
    }

    /// Whether they come to the host: by the opcode, or by what kind of fabrics command it is.
    pub(crate) fn reads(&self) -> bool {
        let code = if self.0[0] == 0x7f { self.0[4] } else { self.0[0] };
        code & 0b11 == 0b10
    }

    // Fabrics commands (Base 2.1).

    fn fabrics(kind: u8) -> Self {
        Self::new(0x7f, kind.into())
    }

    /// Connect, of a queue with `size` entries, 0's based.
    pub(crate) fn connect(queue: u16, size: u16, keep_alive_ms: u32) -> Self {
        let it = Self::fabrics(0x01).dword(10, u32::from(queue) << 16);
        it.dword(11, size.into()).dword(12, keep_alive_ms)
    }

    /// Connect without flow control of the submission queue: bit 2 of CATTR.
    pub(crate) fn without_flow_control(mut self) -> Self {
        self.0[46] |= 1 << 2;
        self
    }

    pub(crate) fn property_get(offset: u32) -> Self {
        let has_8_bytes = offset == CAP;
        Self::fabrics(0x04).dword(10, has_8_bytes.into()).dword(11, offset)
    }

    pub(crate) fn property_set(offset: u32, value: u32) -> Self {
        Self::fabrics(0x00).dword(11, offset).dword(12, value)
    }

    // Admin commands (Base 2.1).

    pub(crate) fn identify(cns: u8, nsid: u32) -> Self {
        Self::new(0x06, nsid).dword(10, cns.into()).moves(4_096)
    }

    /// Identify of a command set.
    pub(crate) fn identify_of(cns: u8, nsid: u32, set: u8) -> Self {
        Self::identify(cns, nsid).dword(11, u32::from(set) << 24)
    }

    pub(crate) fn log_page(page: u8, nsid: u32, bytes: u32) -> Self {
        let it = Self::new(0x02, nsid).moves(bytes);
        it.dword(10, (bytes / 4 - 1) << 16 | u32::from(page))
    }

    /// Log page 05h, the effects of commands, of a command set.
    pub(crate) fn effects(set: u8) -> Self {
        Self::log_page(0x05, 0, 4_096).dword(14, u32::from(set) << 24)
    }

    /// Get Log Page that leaves the event standing: RAE.
    pub(crate) fn retains_event(mut self) -> Self {
        self.0[41] |= 0x80;
        self
    }

    pub(crate) fn set_features(feature: u8, value: u32) -> Self {
        Self::new(0x09, 0).dword(10, feature.into()).dword(11, value)
    }

    pub(crate) fn get_features(feature: u8) -> Self {
        Self::new(0x0a, 0).dword(10, feature.into())
    }

    pub(crate) fn async_event_request() -> Self {
        Self::new(0x0c, 0)
    }

    pub(crate) fn keep_alive() -> Self {
        Self::new(0x18, 0)
    }

    // The Key Value command set (KV 1.0d).

    /// A command on `key`: its first byte is the lowest of CDW2, then come CDW3, CDW14 and CDW15.
    fn on(opcode: u8, key: &[u8]) -> Self {
        let mut bytes = [0; 16];
        bytes[..key.len()].copy_from_slice(key);
        let mut it = Self::new(opcode, NSID);
        it.0[8..16].copy_from_slice(&bytes[..8]);
        it.0[56..64].copy_from_slice(&bytes[8..]);
        it.0[44] = u8::try_from(key.len()).expect("a key of 16 bytes at most");
        it
    }

    /// Store of a value of `len` bytes.
    pub(crate) fn store(key: &[u8], len: u32) -> Self {
        Self::on(0x01, key).dword(10, len).moves(len)
    }

    /// Options of a Store, in bits 15:8 of CDW11.
    pub(crate) fn options(mut self, options: u8) -> Self {
        self.0[45] = options;
        self
    }

    /// Retrieve into a buffer of `room` bytes.
    pub(crate) fn retrieve(key: &[u8], room: u32) -> Self {
        Self::on(0x02, key).dword(10, room).moves(room)
    }

    /// List of the keys from `key` on, or of all, into a buffer of `room` bytes.
    pub(crate) fn list(key: &[u8], room: u32) -> Self {
        Self::on(0x06, key).dword(10, room).moves(room)
    }

    pub(crate) fn delete(key: &[u8]) -> Self {
        Self::on(0x10, key)
    }

    pub(crate) fn exist(key: &[u8]) -> Self {
        Self::on(0x14, key)
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for dword in self.0.chunks_exact(4) {
            write!(f, "{:08x} ", u32::from_le_bytes(dword.try_into().expect("there are 4")))?;
        }
        Ok(())
    }
}
