use super::info::Limits;
use super::key::{Spelling, quoted};
use super::value;
use crate::output::{Failure, Output};
use base::{Buf, Key, human_bytes};
use client::{Pairs, PairsError};
use controller::Queue;
use spec::{Status, StoreOptions};
use std::path::PathBuf;

/// Commands on the pairs of a namespace.
#[derive(Clone, Debug)]
pub(super) enum Action<'a> {
    Store { key: Key, value: Buf, options: StoreOptions },
    Retrieve { key: Key, file: &'a Option<PathBuf> },
    Delete { key: Key },
    Exist { key: Key },
    List { prefix: Option<Key>, spelling: Spelling },
}

impl Action<'_> {
    /// Refuses keys and values that the namespace does not accept.
    pub(super) fn check(&self, limits: &Limits) -> Result<(), Failure> {
        let (key, value) = match self {
            Self::Store { key, value, .. } => (key, value.len()),
            Self::Retrieve { key, .. } | Self::Delete { key } | Self::Exist { key } => (key, 0),
            Self::List { .. } => return Ok(()),
        };
        if key.as_bytes().len() > usize::from(limits.key_bytes_max) {
            let (found, most) = (key.as_bytes().len(), limits.key_bytes_max);
            return Err(Failure::Refused(format!(
                "the namespace takes keys of up to {most} bytes, and this one has {found}"
            )));
        }
        if value > limits.value_bytes_max {
            let [found, most] = [value, limits.value_bytes_max].map(|len| human_bytes(len.into()));
            return Err(Failure::Refused(format!(
                "the namespace takes values of up to {most}, and this one has {found}"
            )));
        }
        Ok(())
    }
}

/// Pairs, and `why`, which returns the error of a lost connection.
pub(super) struct Doing<'a, Q> {
    pub(super) pairs: &'a Pairs<Q>,
    pub(super) why: &'a dyn Fn() -> Option<Failure>,
}

impl<Q: Queue> Doing<'_, Q> {
    pub(super) async fn act(&self, action: &Action<'_>) -> Result<Output, Failure> {
        let pairs = self.pairs;
        let mut output = Output::new(String::new());
        match action {
            Action::Store { key, value, options } => {
                let stored = pairs.store(key, value.clone(), *options).await;
                stored.map_err(|error| self.failure("stored", key, error))?;
            }
            Action::Retrieve { key, file } => {
                let found = pairs.retrieve(key).await;
                let found = found.map_err(|error| self.failure("retrieved", key, error))?;
                value::write(&found, file.as_deref())?;
            }
            Action::Delete { key } => {
                let deleted = pairs.delete(key).await;
                deleted.map_err(|error| self.failure("deleted", key, error))?;
            }
            Action::Exist { key } => {
                let found = pairs.exist(key).await;
                let is_there = found.map_err(|error| self.failure("looked for", key, error))?;
                if is_there {
                    output = Output::new(format!("there is a key {}\n", quoted(key)));
                } else {
                    output = output.with_errors(Some(missing(key)));
                }
            }
            Action::List { prefix, spelling } => self.list(prefix.as_ref(), *spelling).await?,
        }
        Ok(output)
    }

    /// Prints keys as they arrive.
    async fn list(&self, prefix: Option<&Key>, spelling: Spelling) -> Result<(), Failure> {
        let prefix = prefix.map_or(&[][..], Key::as_bytes);
        let mut after: Option<Key> = None;
        loop {
            let keys = self.pairs.list(after.as_ref()).await.map_err(|error| {
                self.lost(error).unwrap_or_else(|| {
                    Failure::Broken(format!("the keys cannot be listed: {error}"))
                })
            })?;
            // Keys come in the device's own order, so all of them must be compared with the prefix.
            let wanted = keys.iter().filter(|key| key.as_bytes().starts_with(prefix));
            let lines: String = wanted.map(|key| spelling.line(key)).collect();
            let is_read = value::print(lines.as_bytes())?;
            after = keys.last().cloned();
            if after.is_none() || !is_read {
                return Ok(());
            }
        }
    }

    fn failure(&self, done: &str, key: &Key, error: PairsError) -> Failure {
        let known = match error {
            PairsError::Status(Status::KEY_DOES_NOT_EXIST) => Some(missing(key)),
            PairsError::Status(Status::KEY_EXISTS) => {
                Some(format!("the key {} already exists", quoted(key)))
            }
            PairsError::Status(Status::CAPACITY_EXCEEDED) => {
                Some("the namespace is full: delete other keys".to_owned())
            }
            _ => None,
        };
        if let Some(sentence) = known {
            return Failure::Broken(sentence);
        }
        self.lost(error).unwrap_or_else(|| {
            Failure::Broken(format!("{} cannot be {done}: {error}", quoted(key)))
        })
    }

    /// Returns the error of a lost connection, if `error` is one.
    fn lost(&self, error: PairsError) -> Option<Failure> {
        (error == PairsError::Status(Status::HOST_PATHING_ERROR)).then(self.why)?
    }
}

fn missing(key: &Key) -> String {
    format!("there is no key {}", quoted(key))
}
