use base::{Buf, Key};
use controller::{Completion, Queue, Submission};
use spec::{Command, ListError, ListReader, Status, StoreOptions};

/// Bytes that a Retrieve asks for while the value's length is unknown: every target can move as
/// many at once.
const FIRST_ROOM: u32 = 64 << 10;

/// Bytes of keys that a List asks for.
pub const KEY_LIST_BYTES: u32 = 64 << 10;

/// Bytes of keys that are asked for where a few are enough: some 50 of 16 bytes.
const FEW_KEYS_BYTES: u32 = 1 << 10;

/// Keys and values of a namespace, one command after the other.
#[derive(Clone, Debug)]
pub struct Pairs<Q> {
    queue: Q,
    nsid: u32,
}

/// Why a command on a pair failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PairsError {
    /// The command failed.
    #[error("{0}")]
    Status(Status),
    /// The data of a List is malformed.
    #[error("the target returned no list of keys: {0}")]
    List(ListError),
    /// A List returned a key from which no further List can continue.
    #[error("the target returned a key of {0} bytes, which is no key of 1 to 16")]
    Key(usize),
    /// The length of a value contradicts the command's result.
    #[error("the target returned {found} bytes of a value that it says has {said}")]
    Length {
        /// Bytes received.
        found: u32,
        /// Bytes by the command's result.
        said: u64,
    },
}

impl<Q: Queue> Pairs<Q> {
    /// Accesses the namespace `nsid`, of the Key Value command set. Requires that no other task
    /// submits to the queue or takes its completions.
    pub fn new(queue: Q, nsid: u32) -> Self {
        Self { queue, nsid }
    }

    /// Returns the queue.
    pub fn queue(&self) -> &Q {
        &self.queue
    }

    /// Stores `value` under `key`.
    pub async fn store(
        &self,
        key: &Key,
        value: Buf,
        options: StoreOptions,
    ) -> Result<(), PairsError> {
        let command = Command::store(self.nsid, key.as_bytes(), value.len(), options);
        self.ask(Submission::with_data(command, key, value)).await.map(drop)
    }

    /// Returns the value of `key`. Repeats the command with more room if the value is longer than
    /// the room, as often as other hosts lengthen it.
    pub async fn retrieve(&self, key: &Key) -> Result<Buf, PairsError> {
        let mut room = FIRST_ROOM;
        loop {
            let command = Command::retrieve(self.nsid, key.as_bytes(), room);
            let Completion { result: said, data, .. } =
                self.ask(Submission::new(command, key)).await?;
            let found = data.len();
            let length = PairsError::Length { found, said };
            let len = u32::try_from(said).map_err(|_| length)?;
            if found != len.min(room) {
                return Err(length);
            }
            if len <= room {
                return Ok(data);
            }
            room = len;
        }
    }

    /// Deletes `key` and its value. Feature 20h of the device decides whether a missing key is an
    /// error.
    pub async fn delete(&self, key: &Key) -> Result<(), PairsError> {
        let command = Command::delete(self.nsid, key.as_bytes());
        self.ask(Submission::new(command, key)).await.map(drop)
    }

    /// Returns whether `key` exists.
    pub async fn exist(&self, key: &Key) -> Result<bool, PairsError> {
        let command = Command::exist(self.nsid, key.as_bytes());
        match self.ask(Submission::new(command, key)).await {
            Ok(_) => Ok(true),
            Err(PairsError::Status(Status::KEY_DOES_NOT_EXIST)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns some keys that follow `after` in the device's own order, or the first ones. An empty
    /// list is the end.
    pub async fn list(&self, after: Option<&Key>) -> Result<Vec<Key>, PairsError> {
        self.list_within(after, KEY_LIST_BYTES).await
    }

    /// A few of the first keys in the device's own order. No keys
    /// are an empty namespace.
    pub async fn first_keys(&self) -> Result<Vec<Key>, PairsError> {
        self.list_within(None, FEW_KEYS_BYTES).await
    }

    async fn list_within(&self, after: Option<&Key>, room: u32) -> Result<Vec<Key>, PairsError> {
        let start = after.map_or(&[][..], Key::as_bytes);
        let command = Command::list(self.nsid, start, room);
        let submission = Submission { command, long_key: None, data: Buf::phantom(0, 0) };
        let data = self.ask(submission).await?.data;
        let reader = ListReader::new(data.bytes().unwrap_or_default()).map_err(PairsError::List)?;
        let mut keys = Vec::new();
        for key in reader {
            let key = key.map_err(PairsError::List)?;
            // `start` is the last key of the previous list.
            if key != start {
                let len = key.len();
                let key = Key::new(key).ok().filter(|key| !key.is_long());
                keys.push(key.ok_or(PairsError::Key(len))?);
            }
        }
        Ok(keys)
    }

    async fn ask(&self, submission: Submission) -> Result<Completion, PairsError> {
        let number = self.queue.submit(submission);
        let completion = self.queue.next().await;
        assert_eq!(completion.id, number, "no other task submits to the queue");
        match completion.status {
            Status::SUCCESS => Ok(completion),
            status => Err(PairsError::Status(status)),
        }
    }
}
