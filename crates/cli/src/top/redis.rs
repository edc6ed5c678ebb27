use super::rate::{per_second, seconds};
use crate::number::quotient;
use node::server::{ClientStatus, DeviceStatus, RedisStatus};
use serde::Serialize;

/// The combined work of all Redis clients of a device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct RedisSample {
    #[serde(skip)]
    pub(super) device: String,
    pub(super) clients: u64,
    pub(super) commands_per_second: f64,
    pub(super) bytes_received_per_second: f64,
    pub(super) bytes_sent_per_second: f64,
    /// Share of requested values that were in memory; none without a cache or without requests.
    pub(super) cache_hit_percent: Option<f64>,
}

/// A Redis client.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct ClientSample {
    pub(super) device: String,
    pub(super) address: String,
    pub(super) name: String,
    pub(super) user: String,
    pub(super) database: u16,
    pub(super) connected_seconds: f64,
    /// None if the client is older than the interval and was not in the server's previous answer.
    pub(super) commands_per_second: Option<f64>,
    pub(super) buffered_bytes: u64,
}

impl RedisSample {
    pub(super) fn of(
        before: Option<&DeviceStatus>,
        after: &DeviceStatus,
        interval: f64,
    ) -> Option<Self> {
        let now = after.redis.as_ref()?;
        let then = before.and_then(|before| before.redis.as_ref());
        let rate = |of: fn(&RedisStatus) -> u64| {
            per_second(of(now).saturating_sub(then.map_or(0, of)), interval)
        };
        let cache = after.cache.map(|cache| {
            let then = before.and_then(|before| before.cache);
            let (hits, misses) = then.map_or((0, 0), |then| (then.hits, then.misses));
            (cache.hits.saturating_sub(hits), cache.misses.saturating_sub(misses))
        });
        let share = cache.and_then(|(hits, misses)| quotient(hits, hits + misses));
        Some(Self {
            device: after.name.clone(),
            clients: now.clients,
            commands_per_second: rate(|it| it.commands),
            bytes_received_per_second: rate(|it| it.bytes_received),
            bytes_sent_per_second: rate(|it| it.bytes_sent),
            cache_hit_percent: share.map(|share| share * 100.0),
        })
    }
}

impl ClientSample {
    /// Returns the clients of a device that the server lists.
    pub(super) fn all_of(
        before: Option<&DeviceStatus>,
        after: &DeviceStatus,
        interval: f64,
    ) -> Vec<Self> {
        let known = before.and_then(|before| before.redis.as_ref());
        let known = known.map_or(&[][..], |known| &known.busiest);
        let told = after.redis.iter().flat_map(|redis| &redis.busiest);
        told.map(|client| Self::of(known, client, &after.name, interval)).collect()
    }

    fn of(known: &[ClientStatus], client: &ClientStatus, device: &str, interval: f64) -> Self {
        let connected = seconds(client.connected_ns);
        let before = known.iter().find(|it| it.id == client.id).map(|it| it.commands);
        // A client that connected in this interval started at zero.
        let before = before.or((connected <= interval).then_some(0));
        Self {
            device: device.to_owned(),
            address: client.address.clone(),
            name: client.name.clone(),
            user: client.user.clone(),
            database: client.database,
            connected_seconds: connected,
            commands_per_second: before
                .map(|before| per_second(client.commands.saturating_sub(before), interval)),
            buffered_bytes: client.buffered_bytes,
        }
    }
}
