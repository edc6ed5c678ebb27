use crate::args::{ServeArgs, ServeClock};
use base::human_bytes;
use node::server::{Server, ServerReport};
use serde::Serialize;

/// What hosts need to know.
#[derive(Debug, Serialize)]
pub(super) struct Listening {
    device: String,
    description: String,
    uri: String,
    address: String,
    port: u16,
    nqn: String,
    #[serde(skip)]
    is_in_real_time: bool,
    #[serde(skip)]
    is_for_all: bool,
}

impl Listening {
    pub(super) fn new(args: &ServeArgs, server: &Server, description: String) -> Self {
        let address = server.address();
        Self {
            device: args.device.clone(),
            description,
            uri: server.uri(),
            address: address.ip().to_string(),
            port: address.port(),
            nqn: server.nqn().to_owned(),
            is_in_real_time: args.clock == ServeClock::Real && !args.device.starts_with("mem:"),
            is_for_all: !address.ip().is_loopback(),
        }
    }

    pub(super) fn text(&self) -> String {
        let Self { device, description, uri, address, port, nqn, .. } = self;
        let time = if self.is_in_real_time { "latencies in real time" } else { "no latencies" };
        let warning =
            if self.is_for_all { "whoever reaches this machine can use it\n" } else { "" };
        format!(
            "serving {device}: {description}, {time}\n{uri}\n{warning}\
             on Linux: nvme connect -t tcp -a {address} -s {port} -n {nqn}\n"
        )
    }
}

/// How it was.
#[derive(Debug, Serialize)]
pub(super) struct Stopped {
    connections: u64,
    bytes_received: u64,
    bytes_sent: u64,
    late_events: u64,
    latest_ns: u64,
    #[serde(skip)]
    is_in_real_time: bool,
}

impl Stopped {
    pub(super) fn new(args: &ServeArgs, report: &ServerReport) -> Self {
        let (bytes_received, bytes_sent) = report.bytes();
        let (late_events, latest) = report.late_events();
        Self {
            connections: report.connections(),
            bytes_received,
            bytes_sent,
            late_events,
            latest_ns: latest.0,
            is_in_real_time: args.clock == ServeClock::Real,
        }
    }

    pub(super) fn text(&self) -> String {
        let text = format!(
            "stopped after {} connections, {} received, {} sent\n",
            self.connections,
            human_bytes(self.bytes_received),
            human_bytes(self.bytes_sent)
        );
        if !self.is_in_real_time || self.late_events == 0 {
            return text;
        }
        let Self { late_events, latest_ns, .. } = self;
        let latest = base::Nanos(*latest_ns);
        let late = format!("{late_events} events of the device were late by 20 us or more");
        format!("{text}{late}, the latest by {latest}\n")
    }
}
