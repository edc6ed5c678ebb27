use engine::Error;
use spec::Status;

/// The status that tells a host of `error` (KV command set 1.0d, command specific status values).
pub(crate) const fn status_of(error: Error) -> Status {
    match error {
        Error::KeyNotFound => Status::KEY_DOES_NOT_EXIST,
        Error::KeyExists => Status::KEY_EXISTS,
        Error::ValueTooLong { .. } => Status::INVALID_VALUE_SIZE,
        Error::CapacityExceeded => Status::CAPACITY_EXCEEDED,
        Error::Unrecovered => Status::UNRECOVERED_ERROR,
        Error::NoKeySpace | Error::KeySpaceReserved => Status::INVALID_NAMESPACE,
        Error::KeySpaceExists => Status::INTERNAL_ERROR,
    }
}
