//! The Identify command, and the data structures that it asks for.

mod command_sets;
mod controller;
mod controller_list;
mod descriptors;
mod kv;
mod namespace;
mod namespace_list;
mod zoned;

pub use command_sets::IoCommandSets;
pub use controller::{ControllerType, IdentifyController, NvmController, PowerState};
pub use controller_list::ControllerList;
pub use descriptors::{NamespaceDescriptor, NamespaceDescriptors};
pub use kv::{KvFormat, KvNamespace};
pub use namespace::{IdentifyNamespace, IndependentNamespace, LbaFormat, NvmNamespace};
pub use namespace_list::NamespaceList;
pub use zoned::{ZoneFormat, ZonedController, ZonedNamespace};

use crate::admin::{high_half, low_half};
use crate::{AdminOpcode, Command};
use core::fmt;

/// Bytes of every structure that an Identify asks for.
pub const IDENTIFY_BYTES: u32 = 4096;

/// Which structure an Identify asks for (Base 2.1, Identify command, Controller or Namespace
/// Structure).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cns(pub u8);

impl Cns {
    /// [`IdentifyNamespace`], of a namespace of the NVM command set.
    pub const NAMESPACE: Self = Self(0x00);
    /// [`IdentifyController`].
    pub const CONTROLLER: Self = Self(0x01);
    /// [`NamespaceList`] of the namespaces after the one that is named.
    pub const ACTIVE_NAMESPACES: Self = Self(0x02);
    /// [`NamespaceDescriptors`].
    pub const NAMESPACE_DESCRIPTORS: Self = Self(0x03);
    /// What a namespace is in terms of one command set: [`KvNamespace`], [`NvmNamespace`] or
    /// [`ZonedNamespace`].
    pub const NAMESPACE_OF_SET: Self = Self(0x05);
    /// What a controller is in terms of one command set: [`NvmController`] or [`ZonedController`].
    pub const CONTROLLER_OF_SET: Self = Self(0x06);
    /// [`NamespaceList`] of the namespaces of one command set after the one that is named.
    pub const ACTIVE_NAMESPACES_OF_SET: Self = Self(0x07);
    /// [`IndependentNamespace`].
    pub const INDEPENDENT_NAMESPACE: Self = Self(0x08);
    /// As [`Cns::NAMESPACE_OF_SET`], for a format and without a namespace.
    pub const FORMAT_OF_SET: Self = Self(0x0a);
    /// [`NamespaceList`] of the namespaces after the one that is named, attached or not.
    pub const ALLOCATED_NAMESPACES: Self = Self(0x10);
    /// As [`Cns::NAMESPACE`], of a namespace that need not be attached.
    pub const ALLOCATED_NAMESPACE: Self = Self(0x11);
    /// [`ControllerList`] of the controllers, from the one that is named on, that have a namespace.
    pub const CONTROLLERS_OF_NAMESPACE: Self = Self(0x12);
    /// [`ControllerList`] of the controllers from the one that is named on.
    pub const CONTROLLERS: Self = Self(0x13);
    /// As [`Cns::ACTIVE_NAMESPACES_OF_SET`], attached or not.
    pub const ALLOCATED_NAMESPACES_OF_SET: Self = Self(0x1a);
    /// As [`Cns::NAMESPACE_OF_SET`], of a namespace that need not be attached.
    pub const ALLOCATED_NAMESPACE_OF_SET: Self = Self(0x1b);
    /// [`IoCommandSets`].
    pub const IO_COMMAND_SETS: Self = Self(0x1c);
}

impl fmt::Display for Cns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CNS {:02X}h", self.0)
    }
}

impl fmt::Debug for Cns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An I/O command set (Base 2.1, Command Set Identifiers).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CommandSet(pub u8);

impl CommandSet {
    /// Logical blocks.
    pub const NVM: Self = Self(0x00);
    /// Keys and values.
    pub const KEY_VALUE: Self = Self(0x01);
    /// Logical blocks in zones.
    pub const ZONED: Self = Self(0x02);
}

impl fmt::Display for CommandSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match *self {
            Self::NVM => "NVM",
            Self::KEY_VALUE => "Key Value",
            Self::ZONED => "Zoned Namespace",
            Self(other) => return write!(f, "command set {other:02X}h"),
        })
    }
}

impl fmt::Debug for CommandSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Base 2.1, Identify command.
impl Command {
    /// Asks for a structure of [`IDENTIFY_BYTES`], of the namespace `nsid` where it is of one.
    #[inline]
    pub fn identify(cns: Cns, nsid: u32) -> Self {
        Self::admin(AdminOpcode::IDENTIFY, nsid, [cns.0.into(), 0, 0, 0, 0, 0])
    }

    /// The same Identify, in terms of a command set.
    #[inline]
    #[must_use]
    pub fn with_csi(self, set: CommandSet) -> Self {
        self.with_dword::<11>(self.dword::<11>() & 0x00ff_ffff | u32::from(set.0) << 24)
    }

    /// The same Identify, of another controller of the subsystem.
    #[inline]
    #[must_use]
    pub fn with_controller_id(self, controller_id: u16) -> Self {
        self.with_dword::<10>(self.dword::<10>() & 0xffff | u32::from(controller_id) << 16)
    }

    /// Which structure an Identify asks for: CDW10 bits 7:0.
    #[inline]
    pub fn cns(&self) -> Cns {
        Cns(self.dword::<10>().to_le_bytes()[0])
    }

    /// The controller that an Identify is about, where it is not the one that is asked: CDW10 bits
    /// 31:16 (CNTID).
    #[inline]
    pub fn controller_id(&self) -> u16 {
        high_half(self.dword::<10>())
    }

    /// What an Identify names beside a namespace, a format for [`Cns::FORMAT_OF_SET`]: CDW11 bits
    /// 15:0 (CNSID).
    #[inline]
    pub fn cns_specific_id(&self) -> u16 {
        low_half(self.dword::<11>())
    }

    /// The command set of an Identify: CDW11 bits 31:24 (CSI).
    #[inline]
    pub fn csi(&self) -> CommandSet {
        CommandSet(self.dword::<11>().to_le_bytes()[3])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::tests::{counting, entry};
    use std::format;
    use zerocopy::IntoBytes;

    #[test]
    fn an_identify_has_the_specifications_bytes() {
        // Base 2.1, Identify command: CDW10 CNS 7:0, CNTID 31:16; CDW11 CSI 31:24. An SPDK host
        // asks so for what a namespace of keys is; here of another controller, too.
        let command = Command::identify(Cns::NAMESPACE_OF_SET, 0x0a0b_0c0d)
            .with_csi(CommandSet::KEY_VALUE)
            .with_controller_id(0x0102);
        let expected = entry(&[
            (0, &[0x06]),
            (4, &[0x0d, 0x0c, 0x0b, 0x0a]),
            (40, &[0x05, 0x00, 0x02, 0x01, 0, 0, 0, 0x01]),
        ]);
        assert_eq!(command.as_bytes(), expected);
        assert_eq!(command.cns(), Cns::NAMESPACE_OF_SET);
        assert_eq!(command.csi(), CommandSet::KEY_VALUE);
        assert_eq!(command.controller_id(), 0x0102);
    }

    #[test]
    fn accessors_read_each_field_from_the_specifications_place() {
        let command = counting();
        assert_eq!(command.cns(), Cns(0x29));
        assert_eq!(command.controller_id(), 0x2c2b);
        assert_eq!(command.cns_specific_id(), 0x2e2d);
        assert_eq!(command.csi(), CommandSet(0x30));
        let again = command.with_csi(CommandSet(0xff)).with_controller_id(0xfefd);
        assert_eq!((again.cns(), again.controller_id()), (Cns(0x29), 0xfefd));
        assert_eq!(again.csi(), CommandSet(0xff));
        assert_eq!(again.dword::<11>(), 0xff2f_2e2d);
    }

    #[test]
    fn numbers_are_the_specifications() {
        // Base 2.1, CNS Values; Command Set Identifiers.
        for (number, cns) in [
            (0x00, Cns::NAMESPACE),
            (0x01, Cns::CONTROLLER),
            (0x02, Cns::ACTIVE_NAMESPACES),
            (0x03, Cns::NAMESPACE_DESCRIPTORS),
            (0x05, Cns::NAMESPACE_OF_SET),
            (0x06, Cns::CONTROLLER_OF_SET),
            (0x07, Cns::ACTIVE_NAMESPACES_OF_SET),
            (0x08, Cns::INDEPENDENT_NAMESPACE),
            (0x0a, Cns::FORMAT_OF_SET),
            (0x10, Cns::ALLOCATED_NAMESPACES),
            (0x11, Cns::ALLOCATED_NAMESPACE),
            (0x12, Cns::CONTROLLERS_OF_NAMESPACE),
            (0x13, Cns::CONTROLLERS),
            (0x1c, Cns::IO_COMMAND_SETS),
        ] {
            assert_eq!(cns, Cns(number));
        }
        for (number, name) in
            [(0, "NVM"), (1, "Key Value"), (2, "Zoned Namespace"), (3, "command set 03h")]
        {
            assert_eq!(format!("{}", CommandSet(number)), name);
        }
        assert_eq!(format!("{:?}", Cns(0x1f)), "CNS 1Fh");
    }
}
