use crate::QualifiedName;
use crate::admin::{high_half, low_half};
use crate::reserved::Reserved;
use zerocopy::little_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// What a host wants of a queue that it connects: CATTR (Base 2.1, Connect command).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectAttributes(pub u8);

impl ConnectAttributes {
    /// Nothing in particular.
    pub const NONE: Self = Self(0);
    /// No submission queue flow control: SQHD of responses means nothing.
    pub const NO_FLOW_CONTROL: Self = Self(1 << 2);

    /// True when the queue is to run without submission queue flow control: bit 2.
    #[inline]
    pub const fn disables_flow_control(self) -> bool {
        self.0 & Self::NO_FLOW_CONTROL.0 != 0
    }
}

/// The data of a Connect: host and subsystem names (Base 2.1, Connect command, Data).
#[derive(
    Clone, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct ConnectData {
    /// Host Identifier: the same for all queues of a host.
    pub host_id: [u8; 16],
    /// The controller that is wanted, or [`ConnectData::ANY_CONTROLLER`] by an admin queue.
    pub controller_id: U16,
    #[doc(hidden)]
    pub reserved_18: Reserved<238>,
    /// The subsystem that is wanted.
    pub subsystem: QualifiedName,
    /// The host that asks.
    pub host: QualifiedName,
    #[doc(hidden)]
    pub reserved_768: Reserved<256>,
}

const _: () = assert!(size_of::<ConnectData>() == 1024, "the data of a Connect has 1,024 bytes");

impl ConnectData {
    /// Bytes of the structure.
    pub const BYTES: u32 = 1024;
    /// Any controller of a subsystem of the dynamic model: `FFFFh`.
    pub const ANY_CONTROLLER: u16 = 0xffff;
    /// Any controller of a subsystem of the static model: `FFFEh`.
    pub const ANY_STATIC_CONTROLLER: u16 = 0xfffe;

    /// Of a host of this id and name to a controller of a subsystem.
    pub fn new(host_id: [u8; 16], host: &str, subsystem: &str, controller_id: u16) -> Self {
        Self {
            host_id,
            controller_id: controller_id.into(),
            subsystem: QualifiedName::new(subsystem),
            host: QualifiedName::new(host),
            ..Self::default()
        }
    }
}

/// The result of a Connect that succeeded: DW0 (Base 2.1, Connect response).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectReply(pub u32);

impl ConnectReply {
    /// Says which controller the queue is bound to, and that nothing else has to be done first.
    #[inline]
    pub const fn new(controller_id: u16) -> Self {
        Self(controller_id as u32)
    }

    /// The controller that the queue is bound to: bits 15:0.
    #[inline]
    pub const fn controller_id(self) -> u16 {
        low_half(self.0)
    }

    /// True when the host has to authenticate itself first: bits 17 and 18 (AUTHREQ).
    #[inline]
    pub const fn requires_authentication(self) -> bool {
        high_half(self.0) & 0b110 != 0
    }
}

/// The result of a Connect that ended with [`Status::CONNECT_INVALID_PARAMETERS`]: which field is
/// wrong (Base 2.1, Connect response).
///
/// [`Status::CONNECT_INVALID_PARAMETERS`]: crate::Status::CONNECT_INVALID_PARAMETERS
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectInvalid(pub u32);

impl ConnectInvalid {
    /// The queue id in the command.
    pub const QUEUE_ID: Self = Self::in_command(42);
    /// The queue size in the command.
    pub const QUEUE_SIZE: Self = Self::in_command(44);
    /// The keep alive time in the command.
    pub const KEEP_ALIVE: Self = Self::in_command(48);
    /// The host identifier in the data.
    pub const HOST_ID: Self = Self::in_data(0);
    /// The controller in the data.
    pub const CONTROLLER_ID: Self = Self::in_data(16);
    /// The subsystem's name in the data.
    pub const SUBSYSTEM: Self = Self::in_data(256);
    /// The host's name in the data.
    pub const HOST: Self = Self::in_data(512);

    const IN_DATA: u32 = 1 << 16;

    const fn in_command(offset: u16) -> Self {
        Self(offset as u32)
    }

    const fn in_data(offset: u16) -> Self {
        Self(Self::IN_DATA | offset as u32)
    }

    /// Bytes from the start of the command, or of the data, to the field: bits 15:0 (IPO).
    #[inline]
    pub const fn offset(self) -> u16 {
        low_half(self.0)
    }

    /// True when the field is in the data, and not in the command: bit 16 (IATTR bit 0).
    #[inline]
    pub const fn is_in_data(self) -> bool {
        self.0 & Self::IN_DATA != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_has_the_specifications_bytes() {
        // Base 2.1, Connect command, Data: HOSTID in bytes 15:0, CNTLID 17:16, SUBNQN 511:256,
        // HOSTNQN 767:512.
        let mut expected = [0; 1024];
        expected[..16].copy_from_slice(b"0123456789abcdef");
        expected[16..18].copy_from_slice(&[0xff, 0xff]);
        expected[256..261].copy_from_slice(b"nqn.s");
        expected[512..517].copy_from_slice(b"nqn.h");
        let data =
            ConnectData::new(*b"0123456789abcdef", "nqn.h", "nqn.s", ConnectData::ANY_CONTROLLER);
        assert_eq!(data.as_bytes(), expected);
        assert_eq!(ConnectData::read_from_bytes(&expected), Ok(data));
        assert_eq!(u32::try_from(size_of::<ConnectData>()), Ok(ConnectData::BYTES));
    }

    #[test]
    fn results_are_where_the_specification_has_them() {
        // Base 2.1, Connect response: CNTLID in bytes 1:0, AUTHREQ in bytes 3:2; of a failure, IPO
        // in bytes 1:0, IATTR in byte 2.
        assert_eq!(ConnectReply::new(0x0102), ConnectReply(0x0102));
        assert_eq!(ConnectReply(0x0005_0102).controller_id(), 0x0102);
        assert!(!ConnectReply(0x0001_0102).requires_authentication());
        assert!(ConnectReply(0x0002_0102).requires_authentication());
        assert!(ConnectReply(0x0004_0102).requires_authentication());
        for (invalid, offset, in_data) in [
            (ConnectInvalid::QUEUE_ID, 42, false),
            (ConnectInvalid::QUEUE_SIZE, 44, false),
            (ConnectInvalid::KEEP_ALIVE, 48, false),
            (ConnectInvalid::HOST_ID, 0, true),
            (ConnectInvalid::CONTROLLER_ID, 16, true),
            (ConnectInvalid::SUBSYSTEM, 256, true),
            (ConnectInvalid::HOST, 512, true),
        ] {
            assert_eq!((invalid.offset(), invalid.is_in_data()), (offset, in_data));
            assert_eq!(invalid.0, u32::from(in_data) << 16 | u32::from(offset));
        }
    }

    #[test]
    fn only_bit_2_disables_flow_control() {
        for bits in 0..=u8::MAX {
            assert_eq!(ConnectAttributes(bits).disables_flow_control(), bits >> 2 & 1 == 1);
        }
    }
}
