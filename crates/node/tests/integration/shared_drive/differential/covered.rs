use super::answer::Answer;
use super::compare::is_named;
use super::request::{Reply, Request};
use spec::Status;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::AddAssign;

/// What the requests of a run covered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Covered {
    /// The drives and numbers of reactors.
    pub(crate) servers: BTreeSet<String>,
    /// Compared replies.
    pub(crate) replies: u64,
    /// Those of NVMe hosts.
    pub(crate) replies_to_hosts: u64,
    /// Commands of hosts that reactors had others execute.
    pub(crate) diverted: u64,
    /// Seeds in which reactors gave connections of hosts to others.
    pub(crate) moved_hosts: u64,
    /// The same of Redis clients.
    pub(crate) moved_clients: u64,
    /// Errors of Redis clients, and statuses other than success.
    pub(crate) errors: u64,
    /// EXEC that executed commands.
    pub(crate) transactions: u64,
    /// EXEC that found a watched key changed.
    pub(crate) refused_transactions: u64,
    /// Names of Redis commands.
    pub(crate) names: BTreeSet<String>,
}

impl Covered {
    pub(crate) fn add(&mut self, request: &Request, reply: &Reply) {
        self.replies += 1;
        match (request, reply) {
            (Request::Redis(words), Reply::Redis(answer)) => {
                let is_exec = is_named(words, "exec");
                let name = String::from_utf8_lossy(&words[0]).to_ascii_lowercase();
                self.names.insert(name);
                match answer {
                    Answer::Error(_) => self.errors += 1,
                    Answer::Array(_) if is_exec => self.transactions += 1,
                    Answer::Null | Answer::NullArray if is_exec => self.refused_transactions += 1,
                    _ => {}
                }
            }
            (_, Reply::Host { status, .. }) => {
                self.replies_to_hosts += 1;
                self.errors += u64::from(*status != Status::SUCCESS);
            }
            (Request::Host(_), Reply::Redis(_)) => panic!("a host received {reply}"),
        }
    }
}

impl AddAssign for Covered {
    fn add_assign(&mut self, other: Self) {
        self.servers.extend(other.servers);
        self.replies += other.replies;
        self.replies_to_hosts += other.replies_to_hosts;
        self.diverted += other.diverted;
        self.moved_hosts += other.moved_hosts;
        self.moved_clients += other.moved_clients;
        self.errors += other.errors;
        self.transactions += other.transactions;
        self.refused_transactions += other.refused_transactions;
        self.names.extend(other.names);
    }
}

impl fmt::Display for Covered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let servers: Vec<_> = self.servers.iter().map(String::as_str).collect();
        write!(
            f,
            "{} equal replies, {} of them to NVMe hosts, {} of those diverted, {} seeds with moved \
             connections of hosts and {} with moved Redis clients, {} errors, {} transactions and \
             {} with a changed watched key, {} commands of Redis, by {}",
            self.replies,
            self.replies_to_hosts,
            self.diverted,
            self.moved_hosts,
            self.moved_clients,
            self.errors,
            self.transactions,
            self.refused_transactions,
            self.names.len(),
            servers.join("; ")
        )
    }
}
