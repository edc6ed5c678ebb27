use base::Nanos;
use serde::Serializer;

/// Writes a time as its nanoseconds.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
pub(super) fn serialize<S: Serializer>(time: &Nanos, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(time.0)
}

/// The same for a time that may not be there.
pub(super) mod optional {
    use base::Nanos;
    use serde::{Serialize, Serializer};

    #[expect(clippy::ref_option, reason = "serde calls it with a reference")]
    pub(crate) fn serialize<S: Serializer>(
        time: &Option<Nanos>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        time.map(|time| time.0).serialize(serializer)
    }
}

/// The same for one time, or several: as a profile has them.
pub(super) mod each {
    use base::Nanos;
    use serde::Serializer;

    pub(crate) fn serialize<S: Serializer>(
        times: &[Nanos],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match times {
            [time] => serializer.serialize_u64(time.0),
            times => serializer.collect_seq(times.iter().map(|time| time.0)),
        }
    }
}
