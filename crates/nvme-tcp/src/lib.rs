//! NVMe over TCP: PDUs, their framing for both ends of a connection, and the controller's end.
//!
//! # How it works
//! 1. [`pdu`] has the headers of PDUs as bytes. Every bit pattern is a value.
//! 2. [`framing`] parses PDUs from a `net::Stream` and encodes them to it, for hosts and
//!    controllers. An [`Inbox`](framing::Inbox) checks layouts and digests and puts data into the
//!    receiver's buffers. An [`Outbox`](framing::Outbox) gathers PDUs to send. The
//!    [`Terms`](framing::Terms) are what `ICReq` and `ICResp` have agreed on.
//! 3. [`target::serve`] serves a connection of a controller. Its reader makes capsules of PDUs,
//!    requests their data and submits them to a `controller::HostQueue`. Its writer sends the
//!    responses and data. Both read only the SGL and the direction of data from a command.
//! 4. [`target::serve_until_moved`] also lets the connection leave its reactor: between two PDUs,
//!    when all submitted commands are answered. Until then it asks the host for no more data, for
//!    [`target::LEAVE_MAX`] at most: it stays after that. What is left, a
//!    [`target::ParkedConnection`], continues in another reactor.
//!
//! | to follow | read, in this order |
//! |---|---|
//! | a received PDU | `framing/inbox`, `framing/check`, `pdu` |
//! | a command | `target/reader`, `target/admission`, `target/transfers`, `target/connection` |
//! | its limit of bytes in flight | `target/admission`, `target/budget` |
//! | a response | `target/connection`, `framing/outbox`, `target/writer` |
//! | an end | `target/reader`, `target/deadline` |
//! | a move | `target/reader`, `target/leaving`, `target/parked` |
//!
//! # Guarantees
//! - No input of a host panics. A protocol violation ends its own connection only, with a
//!   termination that gives the reason. Data with a wrong digest, or a capsule without the data
//!   that its SGL names, fails its command only.
//! - Data of 16 KiB and more is not copied between stream and buffer. Smaller data is copied at
//!   most once on its way in, and on its way out up to 512 bytes only. [`framing::Counters`]
//!   counts.
//! - The memory of a connection is bounded, also when the host does not read: commands, their bytes
//!   and unsent responses. Commands that wait for the budget start in FIFO order.
//! - A host that does not connect, or stops in the middle of a PDU, is disconnected after
//!   [`target::TIMEOUT`]. A host that exceeds the queue while it owes data is disconnected at
//!   once.
//!
//! # Trusts
//! A queue responds to each command once, with at most the data that the command has room for, and
//! never after it is closed.
//!
//! # Not here
//! Sockets and listeners (`reactor`, `node`), what commands do (`controller`), the host's end
//! (`client`).

pub mod framing;
pub mod pdu;
pub mod target;
