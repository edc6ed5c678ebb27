use crate::call::Call;
use crate::failure::Failure;
use clock::UnixMillis;

/// What a date counts in, and from when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    pub(super) is_seconds: bool,
    /// From now on, and not from 1970.
    pub(super) is_from_now: bool,
}

impl Unit {
    pub(super) const EX: Self = Self { is_seconds: true, is_from_now: true };
    pub(super) const PX: Self = Self { is_seconds: false, is_from_now: true };
    pub(super) const EXAT: Self = Self { is_seconds: true, is_from_now: false };
    pub(super) const PXAT: Self = Self { is_seconds: false, is_from_now: false };
}

/// What may follow the value of a SET, and the key of a GETEX.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "words that a client says, or does not")]
pub(super) struct Options {
    pub(super) must_exist: bool,
    pub(super) must_not_exist: bool,
    /// Which argument the value before must equal.
    pub(super) must_equal: Option<usize>,
    pub(super) gets: bool,
    pub(super) keeps_date: bool,
    pub(super) persists: bool,
    /// The unit of a date, and which argument it is.
    pub(super) date: Option<(Unit, usize)>,
}

impl Options {
    /// Those from argument `at` on.
    pub(super) fn parse(call: &Call<'_>, mut at: usize, is_set: bool) -> Result<Self, Failure> {
        let mut options = Self::default();
        while at < call.request.len() {
            let is = |word: &str| call.is_word(at, word);
            let of_set = |word: &str| is_set && is(word);
            let has_no_date = options.date.is_none();
            let has_no_other = options.must_equal.is_none();
            if of_set("nx") && !options.must_exist && has_no_other {
                options.must_not_exist = true;
            } else if of_set("xx") && !options.must_not_exist && has_no_other {
                options.must_exist = true;
            } else if of_set("ifeq")
                && !(options.must_exist || options.must_not_exist)
                && at + 1 < call.request.len()
            {
                at += 1;
                options.must_equal = Some(at);
            } else if of_set("get") {
                options.gets = true;
            } else if of_set("keepttl") && has_no_date {
                options.keeps_date = true;
            } else if !is_set && is("persist") && has_no_date {
                options.persists = true;
            } else if let Some(unit) = unit(call, at)
                && options.date.is_none_or(|(before, _)| before == unit)
                && !options.keeps_date
                && !options.persists
                && at + 1 < call.request.len()
            {
                at += 1;
                options.date = Some((unit, at));
            } else {
                return Err(Failure::SYNTAX);
            }
            at += 1;
        }
        Ok(options)
    }
}

fn unit(call: &Call<'_>, at: usize) -> Option<Unit> {
    let units = [("ex", Unit::EX), ("px", Unit::PX), ("exat", Unit::EXAT), ("pxat", Unit::PXAT)];
    units.into_iter().find(|(word, _)| call.is_word(at, word)).map(|(_, unit)| unit)
}

/// Milliseconds since 1970.
pub(super) fn now() -> i64 {
    i64::try_from(clock::host_unix_now().0).unwrap_or(i64::MAX)
}

/// The date of a number of milliseconds since 1970; those before it are that beginning.
pub(super) fn date_of(millis: i64) -> UnixMillis {
    UnixMillis(u64::try_from(millis).unwrap_or(0))
}

/// The date that an argument of a SET or GETEX says, which must be above 0.
pub(super) fn date(call: &Call<'_>, unit: Unit, at: usize) -> Result<UnixMillis, Failure> {
    let number = call.integer(at)?;
    let factor = if unit.is_seconds { 1_000 } else { 1 };
    let from = if unit.is_from_now { now() } else { 0 };
    let millis = number.checked_mul(factor).and_then(|millis| millis.checked_add(from));
    let millis = millis.filter(|_| number > 0).ok_or_else(|| call.invalid_expiry())?;
    Ok(date_of(millis))
}
