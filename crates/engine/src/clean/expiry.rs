use clock::UnixMillis;

/// Returns true when a record with this date of expiry makes its key exist no more.
#[inline]
pub(crate) fn has_expired(expires: Option<UnixMillis>) -> bool {
    expires.is_some_and(|date| date <= clock::unix_now())
}
