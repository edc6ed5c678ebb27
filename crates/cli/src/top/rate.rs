#[expect(clippy::cast_precision_loss, reason = "for people, for whom 53 bits are plenty")]
pub(super) fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

#[expect(clippy::cast_precision_loss, reason = "for people, for whom 53 bits are plenty")]
pub(super) fn per_second(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
}
