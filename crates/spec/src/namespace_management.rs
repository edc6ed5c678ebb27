//! The commands by which namespaces come and go: Namespace Management, Namespace Attachment and
//! Format NVM.

use crate::{AdminOpcode, Command};

/// What a Namespace Management asks for: CDW10 bits 3:0 (Base 2.1, Namespace Management command).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamespaceManagement {
    /// A new namespace, which is described by [`IdentifyNamespace`](crate::IdentifyNamespace) as
    /// data. Its id is the result.
    Create,
    /// The end of the namespace that is named, or of all.
    Delete,
}

/// What a Namespace Attachment asks for: CDW10 bits 3:0 (Base 2.1, Namespace Attachment command).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamespaceAttachment {
    /// The controllers of the [`ControllerList`](crate::ControllerList) that comes as data get the
    /// namespace.
    Attach,
    /// They lose it.
    Detach,
}

/// How a Format NVM is to be done: CDW10 (Base 2.1, Format NVM command).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FormatOptions {
    /// The format: LBAFU and LBAFL.
    pub format: u8,
    /// The protection information: PI.
    pub protection: u8,
    /// What becomes of the data: SES, as [`FormatOptions::ERASE_USER_DATA`].
    pub secure_erase: u8,
}

impl FormatOptions {
    /// Of `secure_erase`: nothing is asked.
    pub const NO_SECURE_ERASE: u8 = 0b000;
    /// Of `secure_erase`: all data is to be gone.
    pub const ERASE_USER_DATA: u8 = 0b001;
}

const SELECT: u32 = 0xf;

impl Command {
    /// Asks for a new namespace of `set`, which comes described as data.
    #[inline]
    pub fn create_namespace(set: crate::CommandSet) -> Self {
        Self::admin(AdminOpcode::NAMESPACE_MANAGEMENT, 0, [0; 6]).with_csi(set)
    }

    /// Asks for the end of the namespace `nsid`, or of all if it is `FFFFFFFFh`.
    #[inline]
    pub fn delete_namespace(nsid: u32) -> Self {
        Self::admin(AdminOpcode::NAMESPACE_MANAGEMENT, nsid, [1, 0, 0, 0, 0, 0])
    }

    /// Attaches a namespace to the controllers of a list, which comes as data, or detaches it.
    #[inline]
    pub fn attach_namespace(nsid: u32, what: NamespaceAttachment) -> Self {
        let select = u32::from(what == NamespaceAttachment::Detach);
        Self::admin(AdminOpcode::NAMESPACE_ATTACHMENT, nsid, [select, 0, 0, 0, 0, 0])
    }

    /// Asks that the namespace `nsid`, or every one if it is `FFFFFFFFh`, be made new.
    #[inline]
    pub fn format_namespace(nsid: u32, options: FormatOptions) -> Self {
        let FormatOptions { format, protection, secure_erase } = options;
        let dword = u32::from(format & 0xf)
            | u32::from(protection & 0b111) << 5
            | u32::from(secure_erase & 0b111) << 9
            | u32::from(format >> 4 & 0b11) << 12;
        Self::admin(AdminOpcode::FORMAT_NVM, nsid, [dword, 0, 0, 0, 0, 0])
    }

    /// What a Namespace Management asks for; `None` if it is none of these.
    #[inline]
    pub fn namespace_management(&self) -> Option<NamespaceManagement> {
        match self.dword::<10>() & SELECT {
            0 => Some(NamespaceManagement::Create),
            1 => Some(NamespaceManagement::Delete),
            _ => None,
        }
    }

    /// What a Namespace Attachment asks for; `None` if it is none of these.
    #[inline]
    pub fn namespace_attachment(&self) -> Option<NamespaceAttachment> {
        match self.dword::<10>() & SELECT {
            0 => Some(NamespaceAttachment::Attach),
            1 => Some(NamespaceAttachment::Detach),
            _ => None,
        }
    }

    /// How a Format NVM is to be done.
    #[inline]
    pub fn format_options(&self) -> FormatOptions {
        let [low, high, ..] = self.dword::<10>().to_le_bytes();
        FormatOptions {
            format: low & 0xf | (high >> 4 & 0b11) << 4,
            protection: low >> 5,
            secure_erase: high >> 1 & 0b111,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CommandSet;
    use crate::command::tests::entry;
    use zerocopy::IntoBytes;

    #[test]
    fn the_commands_have_the_specifications_bytes() {
        // Base 2.1: Namespace Management 0Dh, SEL in CDW10 bits 3:0, CSI in CDW11 bits 31:24.
        let create = Command::create_namespace(CommandSet::KEY_VALUE);
        assert_eq!(create.as_bytes(), entry(&[(0, &[0x0d]), (47, &[1])]));
        let delete = Command::delete_namespace(7);
        assert_eq!(delete.as_bytes(), entry(&[(0, &[0x0d]), (4, &[7]), (40, &[1])]));
        assert_eq!(create.namespace_management(), Some(NamespaceManagement::Create));
        assert_eq!(delete.namespace_management(), Some(NamespaceManagement::Delete));
        // Namespace Attachment 15h: SEL 0 attaches, 1 detaches.
        for (what, select) in [(NamespaceAttachment::Attach, 0), (NamespaceAttachment::Detach, 1)] {
            let command = Command::attach_namespace(7, what);
            assert_eq!(command.as_bytes(), entry(&[(0, &[0x15]), (4, &[7]), (40, &[select])]));
            assert_eq!(command.namespace_attachment(), Some(what));
        }
        assert_eq!(delete.with_dword::<10>(2).namespace_management(), None);
        assert_eq!(delete.with_dword::<10>(0xf).namespace_attachment(), None);
    }

    #[test]
    fn a_format_has_the_specifications_bytes() {
        // Base 2.1, Format NVM 80h: LBAFL 3:0, MSET 4, PI 7:5, PIL 8, SES 11:9, LBAFU 13:12.
        let options = FormatOptions { format: 0x25, protection: 0b011, secure_erase: 0b010 };
        let command = Command::format_namespace(7, options);
        let expected = entry(&[(0, &[0x80]), (4, &[7]), (40, &[0x65, 0x24])]);
        assert_eq!(command.as_bytes(), expected);
        assert_eq!(command.format_options(), options);
        // MSET and PIL are no part of any of these.
        let marked = command.with_dword::<10>(0x2465 | 0x110);
        assert_eq!(marked.format_options(), options);
    }
}
