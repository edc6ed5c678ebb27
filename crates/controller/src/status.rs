use engine::Error;
use ftl::ZoneError;
use spec::Status;

/// The status that tells a host of `error` (KV command set 1.0d, command specific status values).
pub(crate) const fn status_of(error: Error) -> Status {
    match error {
        Error::KeyNotFound => Status::KEY_DOES_NOT_EXIST,
        Error::KeyExists => Status::KEY_EXISTS,
        Error::ValueTooLong { .. } => Status::INVALID_VALUE_SIZE,
        Error::CapacityExceeded => Status::CAPACITY_EXCEEDED,
        Error::Unrecovered => Status::UNRECOVERED_ERROR,
        Error::Unwritten => Status::WRITE_FAULT,
        Error::NoKeySpace | Error::KeySpaceReserved => Status::INVALID_NAMESPACE,
        Error::KeyChanged
        | Error::OpenedTooOften
        | Error::ReactorEnded
        | Error::KeySpaceExists
        | Error::NoCheckpoint
        | Error::BatchTooLong { .. }
        | Error::BatchRepeatsKey => Status::INTERNAL_ERROR,
    }
}

/// The status that tells a host why blocks could not be read.
pub(crate) const fn status_of_read(error: media::Error) -> Status {
    match error {
        media::Error::NoFreeExtent
        | media::Error::PowerLost
        | media::Error::ReadOnly
        | media::Error::UnwrittenBlock(_)
        | media::Error::NoSpace
        | media::Error::NotFlushed => Status::INTERNAL_ERROR,
        media::Error::Unrecovered(_) | media::Error::UnrecoveredBlock(_) => {
            Status::UNRECOVERED_READ_ERROR
        }
    }
}

/// The status that tells a host why blocks could not be written.
pub(crate) const fn status_of_write(error: media::Error) -> Status {
    match error {
        media::Error::NoFreeExtent | media::Error::NoSpace | media::Error::ReadOnly => {
            Status::CAPACITY_EXCEEDED
        }
        media::Error::PowerLost
        | media::Error::Unrecovered(_)
        | media::Error::UnrecoveredBlock(_)
        | media::Error::UnwrittenBlock(_)
        | media::Error::NotFlushed => Status::WRITE_FAULT,
    }
}

/// The status that tells a host why zones did not do what it asked, where `of_medium` says so of
/// their medium (ZNS 1.1a, command specific status values).
pub(crate) fn status_of_zones(
    error: ZoneError,
    of_medium: impl FnOnce(media::Error) -> Status,
) -> Status {
    match error {
        ZoneError::Boundary => Status::ZONE_BOUNDARY_ERROR,
        ZoneError::Full => Status::ZONE_IS_FULL,
        ZoneError::ReadOnly => Status::ZONE_IS_READ_ONLY,
        ZoneError::Offline => Status::ZONE_IS_OFFLINE,
        ZoneError::InvalidWrite => Status::ZONE_INVALID_WRITE,
        ZoneError::TooManyActive => Status::TOO_MANY_ACTIVE_ZONES,
        ZoneError::TooManyOpen => Status::TOO_MANY_OPEN_ZONES,
        ZoneError::InvalidTransition => Status::INVALID_ZONE_STATE_TRANSITION,
        ZoneError::OutOfRange => Status::LBA_OUT_OF_RANGE,
        ZoneError::NotAStart => Status::INVALID_FIELD,
        ZoneError::Media(error) => of_medium(error),
    }
}

/// Whether a command that failed like this may succeed when it is simply sent again: nothing is
/// wrong with it, and another host or the device itself may change what stood in its way.
pub(crate) const fn may_pass(status: Status) -> bool {
    matches!(
        status,
        Status::INTERNAL_ERROR
            | Status::ABORT_REQUESTED
            | Status::CAPACITY_EXCEEDED
            | Status::FORMAT_IN_PROGRESS
            | Status::SANITIZE_IN_PROGRESS
            | Status::ASYNC_EVENT_LIMIT_EXCEEDED
            | Status::CONNECT_CONTROLLER_BUSY
            | Status::TOO_MANY_ACTIVE_ZONES
            | Status::TOO_MANY_OPEN_ZONES
            | Status::WRITE_FAULT
    )
}
