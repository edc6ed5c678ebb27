use crate::args::Clock;
use crate::device;
use crate::output::Failure;
use base::{GIB, SizeError, parse_size};
use node::INDEXES;
use node::Profile;
use node::profile::Index;
use workload::Payload;

/// Largest budget of an index, as in profiles.
const DRAM_MAX: u64 = 1_024 * GIB;

/// A device under load, as a target's URI names it.
#[derive(Debug)]
pub(crate) struct Target {
    /// The URI.
    pub(crate) uri: String,
    /// The device's clock.
    pub(crate) clock: Clock,
    /// The device.
    pub(crate) profile: Profile,
    /// Whether the flash keeps the bytes of values.
    pub(crate) payload: Payload,
    /// The device's seed, if it has its own.
    pub(crate) seed: Option<u64>,
    /// Whether the seed orders timers that are due at the same instant.
    pub(crate) shuffle: bool,
    /// The namespace's id, if the URI names one.
    pub(crate) nsid: Option<u32>,
}

/// The name in a target's URI, and its options with their values.
type Parts<'u> = (&'u str, Vec<(&'u str, &'u str)>);

/// Splits what follows the scheme of a target's URI. An option without a value has an empty one.
/// Refuses an option that is there twice.
pub(crate) fn name_and_options(rest: &str) -> Result<Parts<'_>, Failure> {
    let Some((name, all)) = rest.split_once('?') else { return Ok((rest, Vec::new())) };
    let mut options: Vec<(&str, &str)> = Vec::new();
    for option in all.split('&') {
        let (key, value) = option.split_once('=').unwrap_or((option, ""));
        if options.iter().any(|(known, _)| *known == key) {
            return Err(Failure::Refused(format!("the target has the option {key} twice")));
        }
        options.push((key, value));
    }
    Ok((name, options))
}

impl Target {
    /// Parses a target: `sim:PROFILE` or `emu:PROFILE`, and options after a `?`.
    pub(crate) fn parse(uri: &str) -> Result<Self, Failure> {
        let (clock, rest) = match uri.split_once(':') {
            Some(("sim", rest)) => (Clock::Virtual, rest),
            Some(("emu", rest)) => (Clock::Real, rest),
            _ => {
                return Err(Failure::Refused(format!(
                    "the target {uri:?} is not available: use sim:PROFILE for virtual time or \
                     emu:PROFILE for real time, as in sim:moke, nvme-tcp://HOST:PORT/NQN, \
                     resp://HOST:PORT/DATABASE, file:PATH or mem:SIZE"
                )));
            }
        };
        let (name, mut options) = name_and_options(rest)?;
        let mut target = Self {
            uri: uri.to_owned(),
            clock,
            profile: device::load(name)?,
            payload: Payload::None,
            seed: None,
            shuffle: false,
            nsid: None,
        };
        // Options of an index apply to the index that the target names.
        options.sort_by_key(|(key, _)| *key != "index");
        for (key, value) in options {
            target.set(key, value)?;
        }
        target.profile.check_index().map_err(|problem| {
            Failure::Refused(format!("the target {uri:?} is not possible: {problem}"))
        })?;
        Ok(target)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), Failure> {
        let refused = |possible: &str| {
            let sentence = format!("the target's option {key} is {possible}, not {value:?}");
            Failure::Refused(sentence)
        };
        match key {
            "payload" => {
                self.payload = match value {
                    "full" => Payload::Full,
                    "checksum" => Payload::Checksum,
                    "none" => Payload::None,
                    _ => return Err(refused("full, checksum or none")),
                }
            }
            "seed" => {
                let seed = value.parse().map_err(|_| refused("a whole number"))?;
                self.seed = Some(seed);
            }
            "shuffle" => {
                self.shuffle = match value {
                    "0" => false,
                    "1" => true,
                    _ => return Err(refused("0 or 1")),
                }
            }
            "index" => {
                let index = Index::named(value).ok_or_else(|| refused(&index_names()))?;
                if self.profile.index.is_none() {
                    return Err(Failure::Refused(format!(
                        "{} has no index, because none of its namespaces is of kind kv",
                        self.profile.name
                    )));
                }
                self.profile.index = Some(index);
            }
            "dram" => {
                let bytes = match parse_size(value) {
                    Ok(bytes @ 1..=DRAM_MAX) => bytes,
                    Err(error @ SizeError::NoUnit(_)) => {
                        let sentence = format!("the target's option {key} is wrong: {error}");
                        return Err(Failure::Refused(sentence));
                    }
                    _ => return Err(refused("a size up to 1024GiB, as 1MiB")),
                };
                self.budgeted_index(key)?.dram_bytes = Some(bytes);
            }
            "keys" => {
                let keys = value.parse().ok().filter(|keys| *keys > 0);
                let keys = keys.ok_or_else(|| refused("a whole number above 0"))?;
                self.budgeted_index(key)?.keys_max = Some(keys);
            }
            "ns" => {
                let count = self.profile.namespaces.len();
                let is_there = |nsid: &u32| (1..=count).contains(&(*nsid as usize));
                let nsid = value.parse().ok().filter(is_there);
                let possible = if count == 1 { "1".to_owned() } else { format!("1 to {count}") };
                self.nsid = Some(nsid.ok_or_else(|| refused(&possible))?);
            }
            _ => {
                return Err(Failure::Refused(format!(
                    "a target has no option {key:?}, only payload, seed, shuffle, index, dram, \
                     keys and ns"
                )));
            }
        }
        Ok(())
    }

    /// Returns the index to which the option `key` applies.
    fn budgeted_index(&mut self, key: &str) -> Result<&mut Index, Failure> {
        let index = self.profile.index.as_mut().filter(|index| index.has_budget());
        index.ok_or_else(|| {
            Failure::Refused(format!(
                "the target's option {key} is for an index with a budget, as index=cached-hash"
            ))
        })
    }
}

fn index_names() -> String {
    INDEXES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(uri: &str) -> String {
        match Target::parse(uri) {
            Err(Failure::Refused(sentence)) => sentence,
            other => panic!("{uri}: {other:?}"),
        }
    }

    #[test]
    fn a_target_has_the_options_of_its_uri() {
        let target = Target::parse("sim:ideal?payload=full&seed=7&shuffle=1&index=hash").unwrap();
        assert_eq!((target.profile.name.as_str(), target.payload), ("ideal", Payload::Full));
        assert_eq!((target.seed, target.shuffle), (Some(7), true));
        assert_eq!(target.profile.index.unwrap().kind, "hash");
        assert_eq!(target.clock, Clock::Virtual);
        let target = Target::parse("sim:moke?dram=2MiB&keys=1000&index=cached-hash").unwrap();
        let index = target.profile.index.unwrap();
        assert_eq!((index.dram_bytes, index.keys_max), (Some(2 << 20), Some(1_000)));
        let target = Target::parse("emu:moke").unwrap();
        assert_eq!((target.payload, target.seed, target.shuffle), (Payload::None, None, false));
        assert_eq!(target.clock, Clock::Real);
    }

    #[test]
    fn every_index_of_the_store_can_be_named() {
        for (name, _) in INDEXES {
            assert!(Target::parse(&format!("sim:ideal?index={name}")).is_ok());
        }
    }

    #[test]
    fn a_wrong_target_is_refused_with_an_example() {
        for (uri, words) in [
            ("nvme:moke", "use sim:PROFILE"),
            ("emu:", "there is no profile \"\""),
            ("moke", "use sim:PROFILE"),
            ("", "use sim:PROFILE"),
            ("sim:", "there is no profile \"\""),
            ("sim:mokee", "there is no profile \"mokee\""),
            ("sim:moke?", "only payload, seed, shuffle, index, dram, keys and ns"),
            ("sim:moke?speed=2", "only payload, seed, shuffle, index, dram, keys and ns"),
            ("sim:moke?payload", "full, checksum or none, not \"\""),
            ("sim:moke?payload=some", "full, checksum or none"),
            ("sim:moke?seed=-1", "a whole number"),
            ("sim:moke?shuffle=yes", "0 or 1"),
            ("sim:moke?ns=2", "option ns is 1, not \"2\""),
            ("sim:moke?ns=0", "option ns is 1, not \"0\""),
            ("sim:moke?ns=", "option ns is 1, not \"\""),
            ("sim:moke?ns=-1", "option ns is 1, not \"-1\""),
            ("sim:moke?index=tree", "hash or cached-hash or btree, not \"tree\""),
            ("sim:moke?dram=1MiB", "an index with a budget"),
            ("sim:moke?index=btree&keys=7", "an index with a budget"),
            ("sim:moke?dram=much&index=cached-hash", "a size up to 1024GiB, as 1MiB, not \"much\""),
            ("sim:moke?dram=1025GiB&index=cached-hash", "a size up to 1024GiB"),
            ("sim:moke?dram=64&index=cached-hash", "option dram is wrong: 64 has no unit: write"),
            ("sim:moke?index=cached-hash&keys=0", "a whole number above 0"),
            ("sim:moke?index=cached-hash&dram=64KiB", "for 15625000 keys needs at least"),
            ("sim:moke?index=cached-hash&dram=1GiB&keys=9999999999", "for the table of its index"),
            ("sim:moke?seed=1&seed=2", "twice"),
        ] {
            let sentence = refusal(uri);
            assert!(sentence.contains(words), "{uri}: {sentence}");
        }
    }
}
