use crate::number::grouped;
use crate::table;
use base::{human_bytes, limits};
use client::Association;
use nvme_tcp::pdu::Digests;
use reactor::TcpStream;
use serde::Serialize;
use spec::{IdentifyController, KvNamespace, QualifiedName, Text, Version};

/// Bytes of the smallest memory page, unless a controller reports another.
const PAGE_BYTES: u64 = 4096;

/// Limits of a namespace.
#[derive(Clone, Copy, Debug, Serialize)]
#[expect(clippy::struct_field_names, reason = "the keys of the JSON that is printed")]
pub(crate) struct Limits {
    pub(crate) key_bytes_max: u16,
    pub(crate) value_bytes_max: u32,
    /// `None`: no limit on the number of keys.
    pub(crate) keys_max: Option<u32>,
}

/// A namespace's description.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Info {
    target: String,
    subsystem: String,
    model: String,
    serial: String,
    firmware: String,
    version: String,
    controller: u16,
    namespace: u32,
    size_bytes: u64,
    used_bytes: u64,
    #[serde(flatten)]
    limits: Limits,
    /// `None`: no limit.
    transfer_bytes_max: Option<u64>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    tcp: Option<Tcp>,
}

/// Facts that only NVMe/TCP reports.
#[derive(Clone, Debug, Serialize)]
struct Tcp {
    digests: &'static str,
    queue_entries_max: u32,
    in_capsule_bytes_max: u32,
}

impl Limits {
    /// Limits of the first format. A namespace has it unless it was formatted with another.
    pub(crate) fn of(namespace: &KvNamespace) -> Self {
        let format = &namespace.formats[0];
        let or_all = |max: u32, all: u32| if max == 0 { all } else { max };
        let keys_max = format.keys_max.get();
        Self {
            key_bytes_max: match format.key_bytes_max.get() {
                0 => 16,
                max => max,
            },
            value_bytes_max: or_all(format.value_bytes_max.get(), limits::VALUE_BYTES_MAX),
            keys_max: (keys_max > 0).then_some(keys_max),
        }
    }
}

impl Info {
    pub(super) fn new(
        target: String,
        nsid: u32,
        controller: &IdentifyController,
        namespace: &KvNamespace,
    ) -> Self {
        Self {
            target,
            subsystem: name(&controller.subsystem),
            model: text(&controller.model_number),
            serial: text(&controller.serial_number),
            firmware: text(&controller.firmware_revision),
            version: Version(controller.version.get()).to_string(),
            controller: controller.controller_id.get(),
            namespace: nsid,
            size_bytes: namespace.size.get(),
            used_bytes: namespace.utilization.get(),
            limits: Limits::of(namespace),
            transfer_bytes_max: transfer_bytes(controller, PAGE_BYTES),
            tcp: None,
        }
    }

    /// The same over NVMe/TCP.
    pub(super) fn over_tcp(self, digests: Digests, association: &Association<TcpStream>) -> Self {
        let capabilities = association.capabilities();
        let tcp = Tcp {
            digests: match digests {
                Digests { header: true, data: true } => "header,data",
                Digests { header: true, data: false } => "header",
                Digests { header: false, data: true } => "data",
                Digests::NONE => "none",
            },
            queue_entries_max: u32::from(capabilities.queue_entries()) + 1,
            in_capsule_bytes_max: association.in_capsule_max(),
        };
        let page = capabilities.page_bytes_min();
        let transfer_bytes_max = transfer_bytes(association.controller(), page);
        Self { tcp: Some(tcp), transfer_bytes_max, ..self }
    }

    pub(super) fn table(&self) -> String {
        let limits = &self.limits;
        let keys =
            limits.keys_max.map_or_else(|| "as many as fit".to_owned(), |max| grouped(max.into()));
        let transfer = self.transfer_bytes_max.map_or_else(|| "any".to_owned(), human_bytes);
        let mut facts = vec![
            ("target", self.target.clone()),
            ("subsystem", self.subsystem.clone()),
            ("model", self.model.clone()),
            ("serial number", self.serial.clone()),
            ("firmware", self.firmware.clone()),
            ("NVMe version", self.version.clone()),
            ("controller", self.controller.to_string()),
            ("namespace", self.namespace.to_string()),
            ("size", human_bytes(self.size_bytes)),
            ("used", human_bytes(self.used_bytes)),
            ("longest key", human_bytes(limits.key_bytes_max.into())),
            ("longest value", human_bytes(limits.value_bytes_max.into())),
            ("keys", keys),
            ("longest transfer", transfer),
        ];
        if let Some(tcp) = &self.tcp {
            facts.extend([
                ("digests", tcp.digests.to_owned()),
                ("queue entries", grouped(tcp.queue_entries_max.into())),
                ("data in capsules", human_bytes(tcp.in_capsule_bytes_max.into())),
            ]);
        }
        table::facts(&facts)
    }
}

/// MDTS.
fn transfer_bytes(controller: &IdentifyController, page_bytes: u64) -> Option<u64> {
    let log2 = u32::from(controller.transfer_max_log2);
    if log2 == 0 { None } else { page_bytes.checked_mul(1_u64.checked_shl(log2)?) }
}

fn text<const N: usize>(text: &Text<N>) -> String {
    shown(text.as_str())
}

fn name(name: &QualifiedName) -> String {
    shown(name.as_str())
}

/// Returns text from another machine, in one line.
fn shown(text: Option<&str>) -> String {
    let Some(text) = text else { return "?".to_owned() };
    text.chars().map(|character| if character.is_control() { '?' } else { character }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use spec::KvFormat;

    #[test]
    fn info_is_what_identify_says() {
        let controller = IdentifyController {
            serial_number: Text::new("0123"),
            model_number: Text::new("Kvasir"),
            firmware_revision: Text::new("1"),
            version: Version::V2_1.0.into(),
            controller_id: 3.into(),
            transfer_max_log2: 9,
            subsystem: QualifiedName::new("nqn.x"),
            ..IdentifyController::default()
        };
        let mut namespace = KvNamespace {
            size: 64_000_000_000.into(),
            utilization: 4096.into(),
            ..KvNamespace::default()
        };
        namespace.formats[0] = KvFormat {
            key_bytes_max: 16.into(),
            value_bytes_max: 2_097_152.into(),
            ..KvFormat::default()
        };
        let info = Info::new("/dev/ng0n1".to_owned(), 1, &controller, &namespace);
        let expected = json!({
            "target": "/dev/ng0n1",
            "subsystem": "nqn.x",
            "model": "Kvasir",
            "serial": "0123",
            "firmware": "1",
            "version": "2.1.0",
            "controller": 3,
            "namespace": 1,
            "size_bytes": 64_000_000_000_u64,
            "used_bytes": 4096,
            "key_bytes_max": 16,
            "value_bytes_max": 2_097_152,
            "keys_max": null,
            "transfer_bytes_max": 2_097_152,
        });
        assert_eq!(serde_json::to_value(&info).unwrap(), expected);
        let table = info.table();
        assert!(table.contains("longest value        2.0 MiB"), "{table}");
        assert!(table.lines().all(|line| line.len() <= 80), "{table}");
    }

    #[test]
    fn text_of_another_machine_moves_no_cursor() {
        assert_eq!(shown(Some("a\x1b[2Jb")), "a?[2Jb");
        assert_eq!(shown(None), "?");
    }
}
