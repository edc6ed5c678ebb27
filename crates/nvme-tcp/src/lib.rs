//! NVMe over TCP: the PDUs, what both ends of a connection do with them, and the controller's end.
//!
//! # How it works
//! 1. [`pdu`] has the headers of PDUs as bytes. Every bit pattern is a value.
//! 2. [`framing`] turns what a `net::Stream` brings into PDUs, and PDUs into what it takes, for
//!    hosts and controllers alike. An [`Inbox`](framing::Inbox) checks layouts and digests and puts
//!    data where its receiver wants it. An [`Outbox`](framing::Outbox) gathers all that is to be
//!    sent. The [`Terms`](framing::Terms) are what `ICReq` and `ICResp` have agreed on.
//! 3. [`target::serve`] is a connection to a controller: a reader that makes capsules of PDUs, asks
//!    for their data and gives them to a `controller::HostQueue`, and a writer that sends what
//!    comes of them. It knows no command: only the SGL, and which way the data goes.
//!
//! | to follow | read, in this order |
//! |---|---|
//! | a PDU that comes | `framing/inbox`, `framing/check`, `pdu` |
//! | a command | `target/reader`, `target/admission`, `target/transfers`, `target/connection` |
//! | a response | `target/connection`, `framing/outbox`, `target/writer` |
//! | an end | `target/reader`, `target/deadline` |
//!
//! # Guarantees
//! - Whatever a host sends, nothing panics, and each violation of the protocol ends its connection
//!   and no other, with a termination that says why. A command fails alone whose data does not
//!   agree with its digest, or whose capsule does not hold the data that its SGL names.
//! - Data of 16 KiB and more is not copied between stream and buffer, smaller data at most once on
//!   its way in, and on its way out only up to 512 bytes. [`framing::Counters`] counts.
//! - What a connection holds is bounded, also when the host does not read: commands, the bytes that
//!   they move, and responses that wait. Commands that wait for others' bytes go in order.
//! - A host that does not connect, or stops in the middle of a PDU, is given up after
//!   [`target::PATIENCE`]; one that sends more commands than a queue has, and owes data, at once.
//!
//! # Trusts
//! A queue answers each command once, with no more data than the command has room for, and nothing
//! after it was closed.
//!
//! # Not here
//! Sockets and listeners (`reactor`, `node`), what commands do (`controller`), the host's end
//! (`client`).

pub mod framing;
pub mod pdu;
pub mod target;
