//! The key-value command set.

use crate::completion::{Executed, Outcome};
use crate::controller::Controller;
use crate::kv_key::{key, key_space};
use crate::status::status_of;
use crate::submission::Submission;
use base::limits::VALUE_BYTES_MAX;
use base::{Buf, BufMut, Key};
use engine::{Condition, Error, Store, Stored};
use spec::{Command, ListWriter, RetrieveOptions, Status, StoreOptions};
use std::sync::Arc;

impl Controller {
    /// Executes Store. It is durable at its completion, as the profile's `ack` defines.
    pub(crate) async fn store_value(
        &self,
        store: &Arc<Store>,
        submission: &Submission,
    ) -> Executed {
        let Submission { command, long_key, data } = submission;
        let space = key_space(command)?;
        let key = key(command, long_key.as_ref(), Status::INVALID_KEY_SIZE)?;
        let condition = condition(command)?;
        if command.size() > VALUE_BYTES_MAX {
            return Err(Status::INVALID_VALUE_SIZE);
        }
        if command.size() != data.len() {
            return Err(Status::INVALID_FIELD);
        }
        let announced = store.announce();
        if let Some(delays) = &self.delays {
            delays.store(data.len(), &key).await;
        }
        let stored = store.put(space, &key, data, condition.into(), announced).await;
        let stored = stored.map_err(status_of)?;
        if let Some(delays) = &self.delays
            && stored == Stored::Overwrote
            && let Some(update) = delays.update()
        {
            update.await;
        }
        Ok(Outcome::done())
    }

    /// Executes Retrieve: returns the value, cut to the host's buffer, and its whole length.
    pub(crate) async fn retrieve(&self, store: &Arc<Store>, submission: &Submission) -> Executed {
        let Submission { command, long_key, .. } = submission;
        let space = key_space(command)?;
        let key = key(command, long_key.as_ref(), Status::INVALID_FIELD)?;
        // Values are never compressed, so a raw retrieve is an ordinary one.
        RetrieveOptions::from_bits(command.options()).ok_or(Status::INVALID_FIELD)?;
        if let Some(delays) = &self.delays {
            delays.retrieve(&key).await;
        }
        let found = store.retrieve(space, &key).await.map_err(status_of)?;
        let outcome = delivered(found.value, command.size());
        if let Some(delays) = &self.delays {
            delays.deliver_value(outcome.data.len()).await;
        }
        Ok(outcome)
    }

    pub(crate) async fn delete(&self, store: &Arc<Store>, submission: &Submission) -> Executed {
        let Submission { command, long_key, .. } = submission;
        let space = key_space(command)?;
        let key = key(command, long_key.as_ref(), Status::INVALID_FIELD)?;
        no_options(command)?;
        let announced = store.announce();
        if let Some(delays) = &self.delays {
            delays.delete(&key).await;
        }
        match store.delete(space, &key, announced).await {
            Err(Error::KeyNotFound) if !self.delete_reports_missing() => Ok(Outcome::done()),
            deleted => deleted.map(|()| Outcome::done()).map_err(status_of),
        }
    }

    pub(crate) async fn exist(&self, store: &Arc<Store>, submission: &Submission) -> Executed {
        let Submission { command, long_key, .. } = submission;
        let space = key_space(command)?;
        let key = key(command, long_key.as_ref(), Status::INVALID_FIELD)?;
        no_options(command)?;
        if let Some(delays) = &self.delays {
            delays.exist(&key).await;
        }
        match store.exist(space, &key).await {
            Ok(true) => Ok(Outcome::done()),
            Ok(false) => Err(Status::KEY_DOES_NOT_EXIST),
            Err(error) => Err(status_of(error)),
        }
    }

    /// Executes List: returns as many keys as fit the host's buffer, from the command's key or from
    /// the first one. Fabrics hosts get keys of up to 16 bytes only.
    pub(crate) async fn list(&self, store: &Arc<Store>, submission: &Submission) -> Executed {
        let Submission { command, long_key, .. } = submission;
        let space = key_space(command)?;
        no_options(command)?;
        let start = match command.key_length() {
            0 => None,
            _ => Some(key(command, long_key.as_ref(), Status::INVALID_FIELD)?),
        };
        let room = command.size().min(VALUE_BYTES_MAX);
        let mut buffer = BufMut::unpooled(room as usize);
        let mut writer = ListWriter::new(buffer.as_mut()).ok_or(Status::INVALID_FIELD)?;
        if let Some(delays) = &self.delays {
            delays.list(start.as_ref()).await;
        }
        let take = |key: &Key| !self.lists(key) || writer.push(key.as_bytes());
        let listed = store.list(space, start.as_ref(), take).await;
        listed.map_err(status_of)?;
        let len = u32::try_from(writer.len()).map_err(|_| Status::INTERNAL_ERROR)?;
        let data: Buf = buffer.freeze().slice(0..len);
        if let Some(delays) = &self.delays {
            delays.deliver(len).await;
        }
        Ok(Outcome::with_data(data))
    }
}

/// Returns `value`, cut to `room` bytes, and its whole length.
#[inline]
pub(crate) fn delivered(value: Buf, room: u32) -> Outcome {
    let result = value.len().into();
    let data = if value.len() <= room { value } else { value.slice(0..room) };
    Outcome { status: Status::SUCCESS, result, data }
}

/// Executes Flush (NVM Express Base 2.0, section 7.1): makes all acknowledged data durable.
pub(crate) async fn flush(store: &Store) -> Executed {
    store.flush().await.map(|()| Outcome::done()).map_err(status_of)
}

fn condition(command: &Command) -> Result<Condition, Status> {
    let options = StoreOptions::from_bits(command.options()).ok_or(Status::INVALID_FIELD)?;
    let must_exist = options.contains(StoreOptions::MUST_EXIST);
    match (must_exist, options.contains(StoreOptions::MUST_NOT_EXIST)) {
        (false, false) => Ok(Condition::Always),
        (true, false) => Ok(Condition::MustExist),
        (false, true) => Ok(Condition::MustNotExist),
        (true, true) => Err(Status::INVALID_FIELD),
    }
}

fn no_options(command: &Command) -> Result<(), Status> {
    if command.options() == 0 { Ok(()) } else { Err(Status::INVALID_FIELD) }
}
