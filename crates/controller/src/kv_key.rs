//! The key of a key-value command.

use base::Key;
use base::limits::{KEY_BYTES_INLINE, KEY_BYTES_MAX};
use engine::{KeySpaceId, Store};
use spec::{Command, Status};

const _: () = assert!(KEY_BYTES_INLINE == spec::KEY_BYTES_INLINE, "two names of one layout");

/// Announces a command with an inline key, to prefetch its index entry.
pub(crate) fn expect(store: &Store, command: &Command) {
    if let (Ok(space), Ok(key)) = (key_space(command), key(command, None, Status::SUCCESS)) {
        store.expect(space, &key);
    }
}

/// Returns the key space of the command's namespace, which has the same number.
#[inline]
pub(crate) fn key_space(command: &Command) -> Result<KeySpaceId, Status> {
    u16::try_from(command.nsid()).map(KeySpaceId).map_err(|_| Status::INVALID_NAMESPACE)
}

/// Returns the command's key: inline if it has at most 16 bytes, otherwise fetched from host
/// memory. `too_long` is the command's status for a missing long key.
#[inline]
pub(crate) fn key(
    command: &Command,
    long_key: Option<&Key>,
    too_long: Status,
) -> Result<Key, Status> {
    let len = usize::from(command.key_length());
    match len {
        0 => Err(Status::INVALID_KEY_SIZE),
        1..=KEY_BYTES_INLINE => {
            let inline = command.inline_key();
            Key::new(&inline[..len]).map_err(|_| Status::INVALID_KEY_SIZE)
        }
        _ => {
            const _: () = assert!(KEY_BYTES_MAX == u8::MAX as usize, "no length is too long");
            long_key.filter(|key| key.as_bytes().len() == len).cloned().ok_or(too_long)
        }
    }
}
