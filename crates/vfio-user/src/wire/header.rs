use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// What each message begins with ("Header").
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Header {
    /// Chosen by the client; the reply repeats it.
    pub(crate) id: u16,
    pub(crate) command: Command,
    /// Bytes of the message with this header.
    pub(crate) size: u32,
    /// Of [`flags`].
    pub(crate) flags: u32,
    /// Why a command failed, in a reply with [`flags::ERROR`].
    pub(crate) errno: u32,
}

pub(crate) const HEADER_BYTES: usize = size_of::<Header>();

/// Bits of [`Header::flags`].
pub(crate) mod flags {
    /// The bits that say whether the message is a command or a reply.
    pub(crate) const TYPE: u32 = 0xf;
    /// The type of commands.
    pub(crate) const COMMAND: u32 = 0;
    /// The type of replies.
    pub(crate) const REPLY: u32 = 1;
    /// The client expects no reply.
    pub(crate) const NO_REPLY: u32 = 1 << 4;
    /// The command failed.
    pub(crate) const ERROR: u32 = 1 << 5;
}

/// A command ("Commands"). Any number is a value.
///
/// The others of the protocol have no name here because the server does not execute them: region
/// I/O descriptors (6), DMA reads and writes (11 and 12, which servers send), dirty pages (14, of
/// earlier revisions), device features (16) and migration data (17 and 18).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub(crate) struct Command(pub(crate) u16);

impl Command {
    pub(crate) const VERSION: Self = Self(1);
    pub(crate) const DMA_MAP: Self = Self(2);
    pub(crate) const DMA_UNMAP: Self = Self(3);
    pub(crate) const DEVICE_GET_INFO: Self = Self(4);
    pub(crate) const DEVICE_GET_REGION_INFO: Self = Self(5);
    pub(crate) const DEVICE_GET_IRQ_INFO: Self = Self(7);
    pub(crate) const DEVICE_SET_IRQS: Self = Self(8);
    pub(crate) const REGION_READ: Self = Self(9);
    pub(crate) const REGION_WRITE: Self = Self(10);
    pub(crate) const DEVICE_RESET: Self = Self(13);
    pub(crate) const REGION_WRITE_MULTI: Self = Self(15);
}
