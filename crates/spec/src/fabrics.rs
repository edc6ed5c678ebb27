//! Fabrics commands: what binds a queue to a controller, and how a host reaches its properties.

mod capabilities;
mod configuration;
mod connect;
mod controller_status;
mod property;

pub use capabilities::Capabilities;
pub use configuration::{Configuration, Shutdown};
pub use connect::{ConnectAttributes, ConnectData, ConnectInvalid, ConnectReply};
pub use controller_status::{ControllerStatus, ShutdownStatus};
pub use property::{Property, ReadyTimeouts, Version};

use crate::admin::{high_half, low_half};
use crate::nvm::halves;
use crate::{AdminOpcode, Command, DataPointer};
use core::fmt;

const EIGHT_BYTES: u32 = 0b001;
const SIZE_MASK: u32 = 0b111;

/// Which fabrics command a command of opcode 7Fh is (Base 2.1, Opcodes for Fabrics Commands).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct FabricsType(pub u8);

impl FabricsType {
    /// Writes a property of the controller.
    pub const PROPERTY_SET: Self = Self(0x00);
    /// Binds the queue to a controller.
    pub const CONNECT: Self = Self(0x01);
    /// Reads a property of the controller.
    pub const PROPERTY_GET: Self = Self(0x04);
    /// Ends an I/O queue.
    pub const DISCONNECT: Self = Self(0x08);
}

impl fmt::Display for FabricsType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match *self {
            Self::PROPERTY_SET => "Property Set",
            Self::CONNECT => "Connect",
            Self::PROPERTY_GET => "Property Get",
            Self::DISCONNECT => "Disconnect",
            Self(other) => return write!(f, "fabrics type {other:02X}h"),
        })
    }
}

impl fmt::Debug for FabricsType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Fabrics commands (Base 2.1, Connect, Property Get, Property Set and Disconnect commands).
impl Command {
    /// Asks to bind the queue to a controller as queue `queue_id`, with `queue_size` entries (0's
    /// based: 31 are 32). The [`ConnectData`] comes in the capsule. `keep_alive_ms` is the admin
    /// queue's: how long the host may be silent, 0 for ever.
    #[inline]
    pub fn connect(
        queue_id: u16,
        queue_size: u16,
        attributes: ConnectAttributes,
        keep_alive_ms: u32,
    ) -> Self {
        let dword_10 = u32::from(queue_id) << 16;
        let dword_11 = u32::from(attributes.0) << 16 | u32::from(queue_size);
        let data = DataPointer::InCapsule { offset: 0, len: ConnectData::BYTES };
        Self::fabrics(FabricsType::CONNECT, [dword_10, dword_11, keep_alive_ms, 0, 0, 0])
            .with_data_pointer(data)
    }

    /// Asks for the value of `property`, which is the result.
    #[inline]
    pub fn property_get(property: Property) -> Self {
        let size = size_of_property(property);
        Self::fabrics(FabricsType::PROPERTY_GET, [size, property.0, 0, 0, 0, 0])
    }

    /// Asks that `property` be `value`.
    #[inline]
    pub fn property_set(property: Property, value: u64) -> Self {
        let size = size_of_property(property);
        let [low, high] = halves(value);
        Self::fabrics(FabricsType::PROPERTY_SET, [size, property.0, low, high, 0, 0])
    }

    /// Asks that the I/O queue that this comes on end.
    #[inline]
    pub fn disconnect() -> Self {
        Self::fabrics(FabricsType::DISCONNECT, [0; 6])
    }

    #[inline]
    fn fabrics(fabrics_type: FabricsType, dwords_10_15: [u32; 6]) -> Self {
        Self::admin(AdminOpcode::FABRICS, fabrics_type.0.into(), dwords_10_15)
            .with_data_pointer(DataPointer::Transport { len: 0 })
    }

    /// Which fabrics command it is: CDW1 bits 7:0.
    #[inline]
    pub fn fabrics_type(&self) -> FabricsType {
        FabricsType(self.nsid().to_le_bytes()[0])
    }

    /// The format of a Connect or a Disconnect, of which there is only 0: CDW10 bits 15:0.
    #[inline]
    pub fn record_format(&self) -> u16 {
        low_half(self.dword::<10>())
    }

    /// The queue that a Connect makes, 0 for the admin queue: CDW10 bits 31:16.
    #[inline]
    pub fn queue_id(&self) -> u16 {
        high_half(self.dword::<10>())
    }

    /// Entries of the queue that a Connect makes, 0's based: CDW11 bits 15:0.
    #[inline]
    pub fn queue_size(&self) -> u16 {
        low_half(self.dword::<11>())
    }

    /// What the host wants of the queue that a Connect makes: CDW11 bits 23:16.
    #[inline]
    pub fn connect_attributes(&self) -> ConnectAttributes {
        ConnectAttributes(self.dword::<11>().to_le_bytes()[2])
    }

    /// How long the host may be silent in milliseconds, by the Connect of an admin queue; 0 is for
    /// ever: CDW12.
    #[inline]
    pub fn keep_alive_ms(&self) -> u32 {
        self.dword::<12>()
    }

    /// The property that a Property Get or a Property Set is about: CDW11.
    #[inline]
    pub fn property_offset(&self) -> Property {
        Property(self.dword::<11>())
    }

    /// True when a Property Get or a Property Set is about 8 bytes, and not about 4: CDW10 bits 2:0
    /// are 001b.
    #[inline]
    pub fn property_is_8_bytes(&self) -> bool {
        self.dword::<10>() & SIZE_MASK == EIGHT_BYTES
    }

    /// The value of a Property Set: CDW12 and CDW13.
    #[inline]
    pub fn property_value(&self) -> u64 {
        u64::from(self.dword::<13>()) << 32 | u64::from(self.dword::<12>())
    }
}

#[inline]
fn size_of_property(property: Property) -> u32 {
    if property.is_8_bytes() { EIGHT_BYTES } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::tests::{counting, entry};
    use std::format;
    use zerocopy::IntoBytes;

    #[test]
    fn fabrics_types_have_the_specifications_numbers_and_names() {
        // Base 2.1, Opcodes for Fabrics Commands.
        for (number, name) in [
            (0x00, "Property Set"),
            (0x01, "Connect"),
            (0x04, "Property Get"),
            (0x08, "Disconnect"),
            (0x05, "fabrics type 05h"),
        ] {
            assert_eq!(format!("{}", FabricsType(number)), name);
        }
    }

    #[test]
    fn linuxs_connect_of_an_admin_queue_has_the_specifications_bytes() {
        // Base 2.1, Connect command: RECFMT in bytes 41:40, QID 43:42, SQSIZE 45:44, CATTR 46, KATO
        // 51:48. Linux asks for 32 entries and 5 s of keep alive, with its data in the capsule.
        let expected = entry(&[
            (0, &[0x7f, 0x40, 0xef, 0xbe, 0x01]),
            (32, &[0x00, 0x04, 0, 0, 0, 0, 0, 0x01]),
            (40, &[0, 0, 0, 0, 31, 0, 0, 0, 0x88, 0x13]),
        ]);
        let command = Command::connect(0, 31, ConnectAttributes::NONE, 5000);
        assert_eq!(command.with_command_id(0xbeef).as_bytes(), expected);
        assert_eq!((command.record_format(), command.queue_id(), command.queue_size()), (0, 0, 31));
        assert_eq!(command.keep_alive_ms(), 5000);
    }

    #[test]
    fn a_connect_of_an_io_queue_has_the_specifications_bytes() {
        let expected = entry(&[
            (0, &[0x7f, 0x40, 0, 0, 0x01]),
            (32, &[0x00, 0x04, 0, 0, 0, 0, 0, 0x01]),
            (40, &[0, 0, 0x02, 0x01, 127, 0, 0x04]),
        ]);
        let flow = ConnectAttributes::NO_FLOW_CONTROL;
        let command = Command::connect(0x0102, 127, flow, 0);
        assert_eq!(command.as_bytes(), expected);
        assert_eq!((command.queue_id(), command.connect_attributes()), (0x0102, flow));
    }

    #[test]
    fn property_commands_have_the_specifications_bytes() {
        // Base 2.1, Property Get and Property Set commands: ATTRIB in byte 40, OFST in bytes 47:44,
        // VALUE in bytes 55:48. Linux sets CC to 00460061h.
        let head = |number: u8| entry(&[(0, &[0x7f, 0x40, 0, 0, number]), (39, &[0x5a])]);
        let mut expected = head(0x04);
        expected[40] = 1;
        assert_eq!(Command::property_get(Property::CAP).as_bytes(), expected);
        expected[40] = 0;
        expected[44] = 0x1c;
        assert_eq!(Command::property_get(Property::CSTS).as_bytes(), expected);

        let mut expected = head(0x00);
        expected[44] = 0x14;
        expected[48..52].copy_from_slice(&[0x61, 0x00, 0x46, 0x00]);
        let command = Command::property_set(Property::CC, 0x0046_0061);
        assert_eq!(command.as_bytes(), expected);
        assert_eq!(command.property_offset(), Property::CC);
        assert_eq!(command.property_value(), 0x0046_0061);
        assert!(!command.property_is_8_bytes());
        assert!(Command::property_get(Property::CAP).property_is_8_bytes());
    }

    #[test]
    fn a_disconnect_has_the_specifications_bytes() {
        let expected = entry(&[(0, &[0x7f, 0x40, 0, 0, 0x08]), (39, &[0x5a])]);
        assert_eq!(Command::disconnect().as_bytes(), expected);
    }

    #[test]
    fn accessors_read_each_field_from_the_specifications_place() {
        let command = counting();
        assert_eq!(command.fabrics_type(), FabricsType(5));
        assert_eq!(command.record_format(), 0x2a29);
        assert_eq!(command.queue_id(), 0x2c2b);
        assert_eq!(command.queue_size(), 0x2e2d);
        assert_eq!(command.connect_attributes(), ConnectAttributes(0x2f));
        assert_eq!(command.keep_alive_ms(), 0x3433_3231);
        assert_eq!(command.property_offset(), Property(0x302f_2e2d));
        assert_eq!(command.property_value(), 0x3837_3635_3433_3231);
        assert!(command.property_is_8_bytes(), "29h has bits 2:0 001b");
    }
}
