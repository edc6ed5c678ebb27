use base::Nanos;
use serde::Serializer;

/// Writes a time as its nanoseconds.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
pub(super) fn serialize<S: Serializer>(time: &Nanos, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(time.0)
}
