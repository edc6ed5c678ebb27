//! The format of NVMe Qualified Names (Base 2.1, NVMe Qualified Names).

use crate::QUALIFIED_NAME_BYTES_MAX;

/// The prefix of names with a UUID.
const UUID_FORM: &str = "nqn.2014-08.org.nvmexpress:uuid:";

/// Where a UUID has its hyphens, of 36 characters.
const HYPHENS: [usize; 4] = [8, 13, 18, 23];

/// The longest part of a domain name between two dots (RFC 1034).
const LABEL_BYTES_MAX: usize = 63;

/// Whether `name` is an NVMe Qualified Name: `nqn.yyyy-mm.reverse.domain:text`, or
/// `nqn.2014-08.org.nvmexpress:uuid:` and a UUID.
///
/// `:text` may be missing, as in the name of discovery. White space and control characters are
/// refused.
pub fn is_qualified_name(name: &str) -> bool {
    let is_clean = |character: char| !character.is_whitespace() && !character.is_control();
    if name.len() > QUALIFIED_NAME_BYTES_MAX || !name.chars().all(is_clean) {
        return false;
    }
    if let Some(uuid) = name.strip_prefix(UUID_FORM) {
        return is_uuid(uuid);
    }
    let parts = name.strip_prefix("nqn.").and_then(|rest| rest.split_once('.'));
    let Some((date, rest)) = parts else { return false };
    let (domain, is_named) = match rest.split_once(':') {
        Some((domain, text)) => (domain, !text.is_empty()),
        None => (rest, true),
    };
    is_date(date) && is_named && domain.split('.').all(is_label)
}

/// A year and a month, as in 2014-08.
fn is_date(text: &str) -> bool {
    let Some((year, month)) = text.split_once('-') else { return false };
    let is_number =
        |text: &str, digits| text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number(year, 4) && is_number(month, 2) && ("01"..="12").contains(&month)
}

/// A part of a domain name (RFC 1123): letters, digits, and hyphens within.
fn is_label(text: &str) -> bool {
    (1..=LABEL_BYTES_MAX).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// A UUID in the form of RFC 9562.
fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match byte {
            b'-' => HYPHENS.contains(&at),
            _ => byte.is_ascii_hexdigit() && !HYPHENS.contains(&at),
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::QualifiedName;
    use std::format;
    use std::string::String;

    /// The examples of the specification, and names of known hosts and targets.
    #[test]
    fn names_of_the_specification_and_of_known_hosts_have_the_format() {
        for name in [
            QualifiedName::DISCOVERY,
            "nqn.2014-08.com.example:nvme:nvm-subsystem-sn-d78432",
            "nqn.2014-08.com.example:nvme.host.sys.xyz",
            "nqn.2014-08.org.nvmexpress:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
            "nqn.2014-08.org.nvmexpress:uuid:F81D4FAE-7DEC-11D0-A765-00A0C91E6BF6",
            "nqn.2014-08.org.nvmexpress:NVMf:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
            "nqn.2016-06.io.spdk:cnode1",
            "nqn.2014-08.com.vmware:nvme:esx-1",
            "nqn.1988-11.com.dell:powerstore:00:2a64abf1c5b81F6C4549",
            "nqn.2026-01.a-b.x1:\u{e4}",
            "nqn.2026-12.x",
        ] {
            assert!(is_qualified_name(name), "{name}");
        }
        let long = format!("nqn.2026-11.com.example:{}", "x".repeat(199));
        assert!(is_qualified_name(&long), "{} bytes", long.len());
        assert!(is_qualified_name(&format!("nqn.2026-11.{}:x", "d".repeat(63))));
    }

    #[test]
    fn each_broken_rule_of_the_format_is_found() {
        for name in [
            "",
            "foo",
            "nqn.",
            "nqn.x",
            "NQN.2014-08.com.example:x",
            "iqn.2014-08.com.example:x",
            "nqn.2014-08",
            "nqn.2014-08.",
            "nqn.2014-08.:x",
            "nqn.2014-08:x",
            "nqn.2014.08.com.example:x",
            "nqn.2014-8.com.example:x",
            "nqn.2014-00.com.example:x",
            "nqn.2014-13.com.example:x",
            "nqn.14-08.com.example:x",
            "nqn.+014-08.com.example:x",
            "nqn.2014-08-01.com.example:x",
            "nqn.2014-08..com:x",
            "nqn.2014-08.com.:x",
            "nqn.2014-08.-com:x",
            "nqn.2014-08.com-:x",
            "nqn.2014-08.com_example:x",
            "nqn.2014-08.com.example:",
            "nqn.2014-08.com.example:a b",
            "nqn.2014-08.com.example:a\n",
            "nqn.2014-08.com.example:a\u{7f}",
            "nqn.2014-08.org.nvmexpress:uuid:",
            "nqn.2014-08.org.nvmexpress:uuid:host",
            "nqn.2014-08.org.nvmexpress:uuid:f81d4fae7dec11d0a76500a0c91e6bf6",
            "nqn.2014-08.org.nvmexpress:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf",
            "nqn.2014-08.org.nvmexpress:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bfg",
            "nqn.2014-08.org.nvmexpress:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6x",
            "nqn.2014-08.org.nvmexpress:uuid:-f81d4fa-7dec-11d0-a765-00a0c91e6bf6",
        ] {
            assert!(!is_qualified_name(name), "{name:?}");
        }
        let long: String = format!("nqn.2026-11.com.example:{}", "x".repeat(200));
        assert!(!is_qualified_name(&long), "{} bytes", long.len());
        assert!(!is_qualified_name(&format!("nqn.2026-11.{}:x", "d".repeat(64))));
    }
}
