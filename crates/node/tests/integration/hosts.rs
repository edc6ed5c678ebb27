//! Whole sessions of hosts, byte for byte as PDUs on a stream, against a target with a device: what
//! Linux, SPDK, xNVMe and Mooncake send, each in a file of its own, with a check of every answer
//! that says what this host would do without it. What they send, and what they depend on, was
//! measured and read in their sources; `docs/guide/hosts.md` has both.
//!
//! A host here encodes and decodes bytes by itself, and shares no code with the target. What went
//! over the wire is recorded, and tshark decodes it (`wire`).

mod answer;
mod answers;
mod attach;
mod codec;
mod crc;
mod discovery;
mod entry;
mod fields;
mod guide;
mod line;
mod linux;
mod mooncake;
mod namespace;
mod own;
mod passthrough;
mod pcap;
mod pdu;
mod spdk;
mod tape;
mod tshark;
mod wire;
mod world;
mod xnvme;
