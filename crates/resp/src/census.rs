use crate::door::Door;
use base::Nanos;
use std::sync::atomic::Ordering::Relaxed;

const SECOND_NS: u128 = 1_000_000_000;

/// How busy a connection was lately.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    at: Nanos,
    /// Commands until then.
    commands: u64,
    /// In a thousand seconds.
    rate: u64,
}

impl Pace {
    /// Of a connection that came now.
    pub(crate) fn new(now: Nanos) -> Self {
        Self { at: now, ..Self::default() }
    }

    /// The mean of what was done since it was last asked for, and of what it was before, as if that
    /// had lasted a second. So a great total of a client that rests is soon forgotten.
    fn at(self, now: Nanos, commands: u64) -> Self {
        let passed = u128::from(now.0.saturating_sub(self.at.0));
        let done = u128::from(commands.saturating_sub(self.commands)) * 1_000;
        let rate = (u128::from(self.rate) + done) * SECOND_NS / (SECOND_NS + passed);
        Self { at: now, commands, rate: u64::try_from(rate).unwrap_or(u64::MAX) }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    /// The pace after so many milliseconds in which so many commands were done.
    fn pace_of(steps: &[(u64, u64)]) -> u64 {
        let mut pace = Pace::default();
        for (millis, commands) in steps {
            pace = pace.at(Nanos(pace.at.0 + millis * 1_000_000), pace.commands + commands);
        }
        pace.rate
    }

    #[test]
    fn a_pace_comes_near_the_rate_and_forgets_what_was() {
        // The limit of (pace + 1,000 * 1,000) / 2.
        let steady = pace_of(&[(1_000, 1_000); 40]);
        assert!((999_990..=1_000_000).contains(&steady), "{steady}");
        let rests = pace_of(&[(3_600_000, 1_000_000), (1_000, 0), (1_000, 0), (1_000, 0)]);
        let begins = pace_of(&[(1_000, 100)]);
        assert!(rests < begins, "{rests} {begins}");
        assert_eq!(pace_of(&[(0, 0)]), 0);
    }
}
