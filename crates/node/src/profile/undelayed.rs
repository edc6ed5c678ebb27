use super::{Cores, Firmware, Handlers, Levels, Link, Nand, Profile, Suspend};
use base::Nanos;

impl Profile {
    /// Returns the same device without delays: flash, link, firmware and code take no time, and any
    /// number of requests runs at once. Its content and layout stay the same.
    #[must_use]
    pub fn without_delays(self) -> Self {
        let none = |times: &[Nanos]| vec![Nanos::ZERO; times.len()];
        let levels = Levels {
            read: none(&self.nand.levels.read),
            program: none(&self.nand.levels.program),
            page_map: self.nand.levels.page_map,
        };
        let nand = Nand {
            levels,
            erase: Nanos::ZERO,
            channel_bytes_per_second: 0,
            cache_busy: Nanos::ZERO,
            suspend: Suspend { program: None, erase: None, resume: Nanos::ZERO },
            ..self.nand
        };
        let firmware = Firmware {
            handlers: Handlers::Unlimited,
            t_read: Nanos::ZERO,
            t_write: Nanos::ZERO,
            t_delete: Nanos::ZERO,
            t_exist: Nanos::ZERO,
            t_update: Nanos::ZERO,
            t_write_kib: Nanos::ZERO,
            t_read_kib: Nanos::ZERO,
        };
        let core = Cores {
            count: self.core.count,
            parse: Nanos::ZERO,
            probe: Nanos::ZERO,
            complete: Nanos::ZERO,
        };
        let link = Link { bytes_per_second: 0, transfer: Nanos::ZERO };
        Self { nand, link, firmware, core, ..self }
    }
}
