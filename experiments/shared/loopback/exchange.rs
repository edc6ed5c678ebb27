//! The exchanged messages: commands on pairs or on blocks as PDUs of NVMe/TCP, by their sizes. The
//! echo and the targets get the same requests and send replies of the same size.

/// A command of the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Reads the value of a key.
    Retrieve,
    /// Writes the value of a key.
    Store,
    /// Reads a block.
    Read,
    /// Writes a block.
    Write,
}

impl Kind {
    /// True for blocks at random places of the namespace, false for pairs.
    pub const fn is_of_blocks(self) -> bool {
        matches!(self, Self::Read | Self::Write)
    }

    /// True when data goes to the target.
    pub const fn brings_data(self) -> bool {
        matches!(self, Self::Store | Self::Write)
    }

    /// Returns the command that fills a namespace before reads.
    #[must_use]
    pub const fn filler(self) -> Self {
        if self.is_of_blocks() { Self::Write } else { Self::Store }
    }

    /// Returns its name in the output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Retrieve => "retrieve",
            Self::Store => "store",
            Self::Read => "read",
            Self::Write => "write",
        }
    }

    /// Returns the opcode by KV 1.0d and NVM 1.1.
    pub const fn opcode(self) -> u8 {
        match self {
            Self::Retrieve | Self::Read => 0x02,
            Self::Store | Self::Write => 0x01,
        }
    }
}

/// The repeated request.
#[derive(Clone, Copy, Debug)]
pub struct Exchange {
    /// Its command.
    pub kind: Kind,
    /// Bytes of each value or block.
    pub value_bytes: usize,
    /// Commands outstanding.
    pub depth: usize,
}

/// Bytes of a command capsule's header, digests off (TCP 1.1).
pub const CAPSULE_BYTES: usize = 72;

/// Bytes of the other headers, digests off (TCP 1.1).
pub const HEADER_BYTES: usize = 24;

/// Type of a PDU: a command (TCP 1.1).
pub const CAPSULE: u8 = 0x04;

/// Type of a PDU: a response.
pub const RESPONSE: u8 = 0x05;

/// Type of a PDU: data to the target.
pub const H2C_DATA: u8 = 0x06;

/// Type of a PDU: data to the host.
pub const C2H_DATA: u8 = 0x07;

/// Type of a PDU: the target is ready to take data.
pub const R2T: u8 = 0x09;

/// Flag of data to the host: the command has succeeded, and no response follows.
pub const C2H_SUCCESS: u8 = 1 << 3;

/// The most data in the capsule: what targets announce as IOCCSZ.
pub const IN_CAPSULE_MAX: usize = 8_192;

/// Returns a common header.
pub fn header(kind: u8, flags: u8, header_bytes: usize, data_bytes: usize) -> [u8; 8] {
    let header_len = u8::try_from(header_bytes).expect("headers have at most 128 bytes");
    let data_offset = if data_bytes == 0 { 0 } else { header_len };
    let length = u32::try_from(header_bytes + data_bytes).expect("values have at most 2 MiB");
    let [a, b, c, d] = length.to_le_bytes();
    [kind, flags, header_len, data_offset, a, b, c, d]
}
