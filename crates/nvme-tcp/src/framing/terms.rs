use crate::pdu::{Digests, IcReq, IcResp, Side};

/// The parameters that both ends of a connection have agreed on, valid after the `ICResp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Digests of all PDUs that may have them.
    pub digests: Digests,
    /// HPDA: data in PDUs to the host begins at a multiple of this many bytes.
    pub host_alignment: u8,
    /// CPDA: the same to the controller.
    pub controller_alignment: u8,
    /// MAXH2CDATA: maximum bytes of data in an `H2CData`.
    pub h2c_data_max: u32,
}

impl Terms {
    /// The parameters before the agreement: every agreement has a larger `h2c_data_max`.
    pub const BEFORE: Self = Self {
        digests: Digests::NONE,
        host_alignment: 4,
        controller_alignment: 4,
        h2c_data_max: 0,
    };

    /// Returns the terms of `request` and `response`, or `None` if an alignment is out of range.
    pub fn of(request: &IcReq, response: &IcResp) -> Option<Self> {
        Some(Self {
            digests: response.digests(),
            host_alignment: request.alignment()?,
            controller_alignment: response.alignment()?,
            h2c_data_max: response.h2c_data_max(),
        })
    }

    /// Returns the alignment of data in PDUs to `receiver`.
    pub(super) fn alignment(self, receiver: Side) -> u8 {
        match receiver {
            Side::Host => self.host_alignment,
            Side::Controller => self.controller_alignment,
        }
    }
}
