//! What the codec of the target and of our own host reads in PDUs, by the names that tshark has for
//! the fields.

use crate::hosts::tape::{ConnectionInfo, Recorded};
use nvme_tcp::pdu::{CommonHeader, Header};
use spec::{
    AdminOpcode, Command, Completion, ConnectData, DataPointer, FabricsType, Feature, Opcode,
};
use std::collections::BTreeMap;
use zerocopy::FromBytes;

/// Fields of a PDU.
pub(crate) type Fields = BTreeMap<&'static str, u64>;

/// Reads PDUs in the order in which they went over the wire: what a response means depends on its
/// command.
#[derive(Debug, Default)]
pub(crate) struct Codec {
    /// Which queue a connection is.
    queues: BTreeMap<u64, u16>,
    commands: BTreeMap<(u64, u16), Command>,
}

impl Codec {
    pub(crate) fn read(&mut self, pdu: &Recorded) -> Fields {
        let Recorded { way: ConnectionInfo { connection, .. }, bytes, .. } = pdu;
        let common = CommonHeader::read_from_bytes(&bytes[..8]).expect("8 bytes are a header");
        let mut fields = Fields::from([
            ("nvme-tcp.type", common.kind().0.into()),
            ("nvme-tcp.flags", common.flags().into()),
            ("nvme-tcp.hlen", common.header_len().into()),
            ("nvme-tcp.pdo", common.data_offset().into()),
            ("nvme-tcp.plen", common.len().into()),
        ]);
        for (flag, field) in [
            (CommonHeader::HEADER_DIGEST, "nvme-tcp.hdgst.status"),
            (CommonHeader::DATA_DIGEST, "nvme-tcp.ddgst.status"),
        ] {
            if common.has(flag) {
                const GOOD: u64 = 1;
                fields.insert(field, GOOD);
            }
        }
        let header = &bytes[..common.header_len().into()];
        let data = &bytes[common.data_offset().into()..];
        match Header::read(common.kind(), header).expect("a PDU of the specification") {
            Header::CapsuleCmd(capsule) => {
                self.note(*connection, capsule.command());
                fields.extend(self.command(*connection, capsule.command(), data));
            }
            Header::CapsuleResp(capsule) => {
                fields.extend(self.response(*connection, capsule.entry()));
            }
            other => fields.extend(transport(&other)),
        }
        fields
    }

    fn note(&mut self, connection: u64, command: &Command) {
        let is_fabrics = command.admin_opcode() == AdminOpcode::FABRICS;
        if is_fabrics && command.fabrics_type() == FabricsType::CONNECT {
            self.queues.insert(connection, command.queue_id());
        }
        self.commands.insert((connection, command.command_id()), *command);
    }

    fn command(&self, connection: u64, command: &Command, data: &[u8]) -> Fields {
        if command.admin_opcode() == AdminOpcode::FABRICS {
            return fabrics(command, data);
        }
        let mut fields = Fields::from([
            ("nvme.cmd.opc", command.opcode().0.into()),
            ("nvme.cmd.psdt", command.uses_sgl().into()),
            ("nvme.cmd.cid", command.command_id().into()),
            ("nvme.cmd.nsid", command.nsid().into()),
        ]);
        fields.extend(data_pointer(command));
        if self.queues[&connection] > 0 {
            fields.extend(key_value(command));
        } else {
            fields.extend(admin(command));
        }
        fields
    }

    fn response(&self, connection: u64, entry: &Completion) -> Fields {
        let status = entry.status().0;
        let mut fields = Fields::from([
            ("nvme.cqe.cid", entry.command_id().into()),
            ("nvme.cqe.sqhd", entry.queue_head().into()),
            ("nvme.cqe.sqid", entry.queue_id().into()),
            ("nvme.cqe.status.sct", (status >> 8).into()),
            ("nvme.cqe.status.sc", (status & 0xff).into()),
            ("nvme.cqe.status.dnr", entry.do_not_retry().into()),
        ]);
        let command = &self.commands[&(connection, entry.command_id())];
        if let Some(field) = result(command) {
            let has_8_bytes = field == "nvme.fabrics.prop_get_set.data";
            let mask = if has_8_bytes { u64::MAX } else { u32::MAX.into() };
            fields.insert(field, entry.result() & mask);
        }
        fields
    }
}

/// The field that tshark shows the result of a command as, if it shows it.
fn result(command: &Command) -> Option<&'static str> {
    Some(match command.admin_opcode() {
        AdminOpcode::FABRICS => match command.fabrics_type() {
            FabricsType::CONNECT => "nvme.fabrics.cqe.connect.cntrlid",
            FabricsType::PROPERTY_GET => "nvme.fabrics.prop_get_set.data",
            _ => return None,
        },
        AdminOpcode::SET_FEATURES if command.feature_id() == Feature::NUMBER_OF_QUEUES => {
            "nvme.cqe.dword0.set_features.nq"
        }
        AdminOpcode::GET_FEATURES => match command.feature_id() {
            Feature::POWER_MANAGEMENT => "nvme.cqe.dword0.get_features.pm",
            Feature::TEMPERATURE_THRESHOLD => "nvme.cqe.dword0.get_features.tt",
            Feature::NUMBER_OF_QUEUES => "nvme.cqe.dword0.get_features.nq",
            Feature::KEEP_ALIVE_TIMER => "nvme.cqe.dword0.get_features.kat",
            _ => return None,
        },
        _ => "nvme.cqe.dword0",
    })
}

fn fabrics(command: &Command, data: &[u8]) -> Fields {
    let mut fields = Fields::from([
        ("nvme.fabrics.cmd.cid", command.command_id().into()),
        ("nvme.fabrics.cmd.fctype", command.fabrics_type().0.into()),
    ]);
    match command.fabrics_type() {
        FabricsType::CONNECT => {
            let (data, _) = ConnectData::read_from_prefix(data).expect("it has 1,024 bytes");
            fields.extend(data_pointer(command));
            fields.extend([
                ("nvme.fabrics.cmd.connect.recfmt", command.record_format().into()),
                ("nvme.fabrics.cmd.connect.qid", command.queue_id().into()),
                ("nvme.fabrics.cmd.connect.sqsize", command.queue_size().into()),
                ("nvme.fabrics.cmd.connect.cattr", command.connect_attributes().0.into()),
                ("nvme.fabrics.cmd.connect.kato", command.keep_alive_ms().into()),
                ("nvme.fabrics.cmd.connect.data.cntrlid", data.controller_id.get().into()),
            ]);
        }
        FabricsType::PROPERTY_GET => fields.extend(property(command)),
        FabricsType::PROPERTY_SET => {
            fields.extend(property(command));
            fields.insert("nvme.fabrics.prop_get_set.data", command.property_value());
        }
        _ => {}
    }
    fields
}

fn property(command: &Command) -> Fields {
    Fields::from([
        ("nvme.fabrics.cmd.prop_get_set.offset", command.property_offset().0.into()),
        ("nvme.fabrics.cmd.prop_get_set.attrib.size", command.property_is_8_bytes().into()),
    ])
}

/// Descriptor type and sub type. Of the transport's own descriptor tshark shows no more.
fn data_pointer(command: &Command) -> Fields {
    let (kind, sub_kind) = ("nvme.cmd.sgl.type", "nvme.cmd.sgl.subtype");
    match command.data_pointer() {
        DataPointer::InCapsule { offset, len } => Fields::from([
            (kind, 0),
            (sub_kind, 1),
            ("nvme.cmd.sgl1.addr", offset.into()),
            ("nvme.cmd.sgl1.len", len.into()),
        ]),
        DataPointer::Transport { .. } => Fields::from([(kind, 5), (sub_kind, 0xa)]),
        DataPointer::Other(other) => panic!("no host here sends a descriptor {other:#x}"),
    }
}

fn admin(command: &Command) -> Fields {
    match command.admin_opcode() {
        AdminOpcode::IDENTIFY => {
            Fields::from([("nvme.cmd.identify.dword10.cns", command.cns().0.into())])
        }
        AdminOpcode::GET_LOG_PAGE => Fields::from([
            ("nvme.cmd.get_logpage.dword10.id", command.log_page().0.into()),
            ("nvme.cmd.get_logpage.dword10.rae", command.retains_event().into()),
            ("nvme.cmd.get_logpage.numd", command.log_page_bytes() / 4 - 1),
            ("nvme.cmd.get_logpage.lpo", command.log_page_offset()),
        ]),
        AdminOpcode::SET_FEATURES => {
            let mut fields = Fields::from([(
                "nvme.cmd.set_features.dword10.fid",
                command.feature_id().0.into(),
            )]);
            let value = match command.feature_id() {
                Feature::NUMBER_OF_QUEUES => "nvme.cmd.set_features.dword11.nq",
                Feature::ASYNC_EVENTS => "nvme.cmd.set_features.dword11.aec",
                other => panic!("no host here sets {other:?}"),
            };
            fields.insert(value, command.feature_value().into());
            fields
        }
        AdminOpcode::GET_FEATURES => {
            Fields::from([("nvme.cmd.get_features.dword10.fid", command.feature_id().0.into())])
        }
        _ => Fields::new(),
    }
}

/// tshark knows no key-value command: it shows Store as Write and Retrieve as Read, whose first
/// block is in dwords 10 and 11, and of others the dwords.
fn key_value(command: &Command) -> Fields {
    let key = command.inline_key().map(u64::from);
    let number = |bytes: &[u64]| bytes.iter().rev().fold(0, |number, byte| number << 8 | byte);
    let length = u64::from(command.key_length()) | u64::from(command.options()) << 8;
    let mut fields = Fields::from([("nvme.cmd.rsvd1", number(&key[..8]))]);
    if [Opcode::STORE, Opcode::RETRIEVE].contains(&command.opcode()) {
        fields.extend([
            ("nvme.cmd.slba", u64::from(command.size()) | length << 32),
            ("nvme.cmd.eilbrt", number(&key[8..12])),
            ("nvme.cmd.elbat", number(&key[12..14])),
            ("nvme.cmd.elbatm", number(&key[14..])),
        ]);
    } else {
        fields.extend([
            ("nvme.cmd.dword10", command.size().into()),
            ("nvme.cmd.dword11", length),
            ("nvme.cmd.dword14", number(&key[8..12])),
            ("nvme.cmd.dword15", number(&key[12..])),
        ]);
    }
    fields
}

/// PDUs that carry no entry of a queue.
fn transport(header: &Header<'_>) -> Fields {
    let dwords = |bytes: Option<u8>| u64::from(bytes.expect("an alignment")) / 4 - 1;
    let bits =
        |digests: nvme_tcp::pdu::Digests| u64::from(digests.header) | u64::from(digests.data) << 1;
    let data = |id: u16, offset: u32, len: u32| {
        Fields::from([
            ("nvme-tcp.cmd.cid", id.into()),
            ("nvme-tcp.data.offset", offset.into()),
            ("nvme-tcp.data.length", len.into()),
        ])
    };
    match header {
        Header::IcReq(request) => Fields::from([
            ("nvme-tcp.icreq.pfv", request.format().into()),
            ("nvme-tcp.icreq.hpda", dwords(request.alignment())),
            ("nvme-tcp.icreq.digest", bits(request.digests())),
            ("nvme-tcp.icreq.maxr2t", u64::from(request.r2t_max()) - 1),
        ]),
        Header::IcResp(response) => Fields::from([
            ("nvme-tcp.icresp.pfv", response.format().into()),
            ("nvme-tcp.icresp.cpda", dwords(response.alignment())),
            ("nvme-tcp.icresp.digest", bits(response.digests())),
            ("nvme-tcp.icresp.maxdata", response.h2c_data_max().into()),
        ]),
        Header::H2cData(header) => {
            let mut fields = data(header.command_id(), header.offset(), header.len());
            fields.insert("nvme-tcp.ttag", header.tag().into());
            fields
        }
        Header::C2hData(header) => data(header.command_id(), header.offset(), header.len()),
        Header::R2t(header) => Fields::from([
            ("nvme-tcp.cmd.cid", header.command_id().into()),
            ("nvme-tcp.ttag", header.tag().into()),
            ("nvme-tcp.r2t.offset", header.offset().into()),
            ("nvme-tcp.r2t.length", header.len().into()),
        ]),
        Header::TermReq(request) => Fields::from([
            ("nvme-tcp.c2htermreq.fes", request.error().0.into()),
            ("nvme-tcp.c2htermreq.phfo", request.information().into()),
        ]),
        Header::CapsuleCmd(_) | Header::CapsuleResp(_) => panic!("they have entries"),
    }
}
