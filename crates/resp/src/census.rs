use crate::door::Door;
use base::Nanos;
use std::sync::atomic::Ordering::Relaxed;

/// A client, as it is at an instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCensus {
    /// Which it is of all that there ever were, as CLIENT ID has it.
    pub id: u64,
    /// From where it came.
    pub address: String,
    /// What it calls itself.
    pub name: String,
    /// The user that it is; nothing before that is known.
    pub user: String,
    /// The database that it has selected.
    pub database: u16,
    /// For how long it has been there.
    pub connected: Nanos,
    /// Commands of it that were executed.
    pub commands: u64,
    /// Bytes of a request that is not whole, and of answers that it has not read.
    pub buffered_bytes: u64,
}

impl Door {
    /// At most `most` of the clients, those that did most lately, the busiest first.
    pub fn census(&self, most: usize) -> Vec<ClientCensus> {
        let now = clock::now();
        let mut clients = self.clients();
        let mut ranks: Vec<(u64, u64)> = Vec::with_capacity(clients.len());
        for (id, client) in clients.iter_mut() {
            client.pace = client.pace.at(now, client.wire.commands());
            ranks.push((u64::MAX - client.pace.rate, *id));
        }
        if ranks.len() > most {
            ranks.select_nth_unstable(most);
            ranks.truncate(most);
        }
        ranks.sort_unstable();
        let one = |(_, id): (u64, u64)| {
            let client = &clients[&id];
            let wire = &client.wire;
            let buffered = wire.query_bytes.load(Relaxed) + wire.output_bytes.load(Relaxed);
            ClientCensus {
                id,
                address: wire.ends.peer().to_owned(),
                name: client.name.clone(),
                user: client.user.clone(),
                database: client.database,
                connected: Nanos(now.0.saturating_sub(client.since.0)),
                commands: client.pace.commands,
                buffered_bytes: buffered as u64,
            }
        };
        ranks.into_iter().map(one).collect()
    }
}
