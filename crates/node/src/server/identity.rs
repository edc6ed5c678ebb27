//! Default identities of a device, derived from names alone, so that they stay the same.

use super::error::ServerError;
use base::checksum::hash64;
use spec::{QualifiedName, is_qualified_name};

/// Maximum characters of a serial number.
const SERIAL_CHARS_MAX: usize = 20;

/// The serial number of a subsystem: at most 20 printable ASCII characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SerialNumber {
    /// The user's: it never changes.
    Given(String),
    /// The default of a device: it changes when the device loses its content, because only the name
    /// is left of the device that hosts knew. Its flash and its logs are new.
    Default(String),
}

impl SerialNumber {
    /// Returns the serial number of a device of this incarnation.
    pub fn of(&self, incarnation: u64) -> String {
        match self {
            Self::Default(first) if incarnation > 0 => {
                format!("{:016X}", hash64(format!("{first}#{incarnation}").as_bytes()))
            }
            Self::Given(serial) | Self::Default(serial) => serial.clone(),
        }
    }
}

/// Returns the default name of a subsystem (Base 2.1, NVMe Qualified Names, the form with a UUID;
/// RFC 9562, version 8).
pub fn default_nqn(device: &str, seed: u64) -> String {
    let name = identity(device, seed);
    let (high, low) = (hash64(name.as_bytes()), hash64(format!("{name}#").as_bytes()));
    let version = high & !0xf000 | 0x8000;
    let variant = low & !(0b11 << 62) | 0b10 << 62;
    format!(
        "nqn.2014-08.org.nvmexpress:uuid:{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        version >> 32,
        version >> 16 & 0xffff,
        version & 0xffff,
        variant >> 48,
        variant & 0xffff_ffff_ffff
    )
}

/// Returns the default serial number of a subsystem.
pub fn default_serial(device: &str, seed: u64) -> String {
    format!("{:016X}", hash64(identity(device, seed).as_bytes()))
}

fn identity(device: &str, seed: u64) -> String {
    format!("{device}#{seed}")
}

/// Checks that `nqn` is a valid name of a subsystem.
pub fn check_nqn(nqn: &str) -> Result<(), ServerError> {
    if is_qualified_name(nqn) && nqn != QualifiedName::DISCOVERY {
        return Ok(());
    }
    Err(ServerError::Name(nqn.to_owned()))
}

/// Returns whether `serial` is a valid serial number.
pub(super) fn is_serial(serial: &str) -> bool {
    (1..=SERIAL_CHARS_MAX).contains(&serial.len())
        && serial.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_default_name_has_a_uuid_and_is_that_of_the_device_and_its_seed() {
        let name = default_nqn("moke", 1);
        let uuid = name.strip_prefix("nqn.2014-08.org.nvmexpress:uuid:").unwrap();
        let parts: Vec<&str> = uuid.split('-').collect();
        assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
        assert!(parts[2].starts_with('8') && "89ab".contains(&parts[3][..1]), "{uuid}");
        assert_eq!(name, default_nqn("moke", 1));
        assert_ne!(name, default_nqn("moke", 2));
        assert_ne!(name, default_nqn("ideal", 1));
    }

    /// Hosts store these names, so another version of the program must not change them.
    #[test]
    fn default_names_never_change() {
        let uuid = "9537d16b-612f-8f87-811f-9009712ef41b";
        assert_eq!(default_nqn("moke", 1), format!("nqn.2014-08.org.nvmexpress:uuid:{uuid}"));
        assert_eq!(default_serial("moke", 1), "9537D16B612FCF87");
        assert_eq!(SerialNumber::Default("9537D16B612FCF87".into()).of(0), "9537D16B612FCF87");
    }

    #[test]
    fn default_serial_number_differs_in_each_incarnation_and_a_given_one_never() {
        let of_default = SerialNumber::Default(default_serial("moke", 1));
        let all: BTreeSet<String> = (0..1_000).map(|number| of_default.of(number)).collect();
        assert!(all.len() == 1_000 && all.iter().all(|serial| is_serial(serial)));
        let given = SerialNumber::Given("KV-1".into());
        assert!((0..3).all(|number| given.of(number) == "KV-1"));
    }
}
