use crate::zipfian::Zipfian;
use base::limits::VALUE_BYTES_MAX;
use base::{GIB, KIB, MIB, human_bytes, parse_length};
use std::fmt;
use std::str::FromStr;

/// The lengths of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueSizes {
    /// All have this many bytes.
    Fixed(u32),
    /// All lengths in a range are equally frequent.
    Uniform {
        /// The shortest, in bytes.
        min: u32,
        /// The longest, in bytes.
        max: u32,
    },
    /// By Zipf's law with the exponent 0.99, short ones frequent: as YCSB draws the lengths of its
    /// fields.
    Zipfian {
        /// The shortest, which is the most frequent, in bytes.
        min: u32,
        /// The longest, in bytes.
        max: u32,
    },
    /// A few lengths, each with its weight.
    Mix(SizeMix),
}

/// A few lengths of values, each with its weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeMix {
    shares: [Share; SizeMix::LENGTHS_MAX],
    count: usize,
}

/// One length of a [`SizeMix`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// The length in bytes.
    pub bytes: u32,
    /// Its frequency relative to the sum of all weights.
    pub weight: u32,
}

/// Why lengths of values are invalid; displays as one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueSizesError {
    /// The text has no known form.
    Form(String),
    /// A value cannot be that long.
    TooLong {
        /// Bytes that were asked for.
        bytes: u64,
    },
    /// The shortest is longer than the longest.
    Backwards {
        /// The shortest, in bytes.
        min: u32,
        /// The longest, in bytes.
        max: u32,
    },
    /// The weight of a length is zero.
    Weight {
        /// The length in bytes.
        bytes: u32,
    },
    /// No length at all, or more than a mix holds.
    Lengths(usize),
}

impl fmt::Display for ValueSizesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form(text) => write!(
                f,
                "value sizes are written as 4KiB, uniform:64B-2MiB, zipfian:64B-4KiB or \
                 mix:100B=60,4KiB=30,1MiB=10, not as {text}"
            ),
            Self::TooLong { bytes } => {
                let max = human_bytes(VALUE_BYTES_MAX.into());
                write!(f, "a value has at most {max}, not {bytes} bytes")
            }
            Self::Backwards { min, max } => {
                write!(f, "values of at least {min} bytes and at most {max} do not exist")
            }
            Self::Weight { bytes } => {
                write!(f, "the weight of the values of {bytes} bytes is not 1 or more")
            }
            Self::Lengths(count) => {
                write!(f, "a mix has 1 to {} lengths of values, not {count}", SizeMix::LENGTHS_MAX)
            }
        }
    }
}

impl std::error::Error for ValueSizesError {}

impl SizeMix {
    /// More would not be a few, and a plan stays small enough to be copied.
    pub const LENGTHS_MAX: usize = 16;

    /// Returns the mix of `shares`.
    ///
    /// # Errors
    /// When there is none or more than [`Self::LENGTHS_MAX`], a weight is 0, or a value too long.
    pub fn new(shares: &[Share]) -> Result<Self, ValueSizesError> {
        let mut mix = Self { shares: [Share::default(); Self::LENGTHS_MAX], count: shares.len() };
        let places = mix.shares.get_mut(..shares.len()).filter(|places| !places.is_empty());
        places.ok_or(ValueSizesError::Lengths(shares.len()))?.copy_from_slice(shares);
        for share in shares {
            check_bytes(share.bytes.into())?;
            if share.weight == 0 {
                return Err(ValueSizesError::Weight { bytes: share.bytes });
            }
        }
        Ok(mix)
    }

    /// Returns its lengths with their weights.
    pub fn shares(&self) -> &[Share] {
        &self.shares[..self.count]
    }

    /// Returns the sum of all weights.
    pub(crate) fn weight(&self) -> u64 {
        self.shares().iter().map(|share| u64::from(share.weight)).sum()
    }
}

impl ValueSizes {
    /// Checks that such values exist.
    ///
    /// # Errors
    /// When a value is too long, or the shortest longer than the longest.
    pub fn validate(&self) -> Result<(), ValueSizesError> {
        match *self {
            Self::Uniform { min, max } | Self::Zipfian { min, max } if min > max => {
                Err(ValueSizesError::Backwards { min, max })
            }
            _ => check_bytes(self.max().into()).map(drop),
        }
    }

    /// Returns the shortest length in bytes.
    pub fn min(&self) -> u32 {
        match self {
            Self::Fixed(bytes) => *bytes,
            Self::Uniform { min, .. } | Self::Zipfian { min, .. } => *min,
            Self::Mix(mix) => mix.shares().iter().map(|share| share.bytes).min().unwrap_or(0),
        }
    }

    /// Returns the longest length in bytes.
    pub fn max(&self) -> u32 {
        match self {
            Self::Fixed(bytes) => *bytes,
            Self::Uniform { max, .. } | Self::Zipfian { max, .. } => *max,
            Self::Mix(mix) => mix.shares().iter().map(|share| share.bytes).max().unwrap_or(0),
        }
    }

    /// Returns the expected length in bytes.
    #[expect(clippy::cast_precision_loss, reason = "16 products of 32 bits are below 2^53 or near")]
    pub fn mean(&self) -> f64 {
        match *self {
            Self::Fixed(bytes) => bytes.into(),
            Self::Uniform { min, max } => f64::midpoint(min.into(), max.into()),
            Self::Zipfian { min, max } => {
                f64::from(min) + Zipfian::new(u64::from(max - min) + 1).mean_rank()
            }
            Self::Mix(mix) => {
                let part = |share: &Share| u64::from(share.bytes) * u64::from(share.weight);
                let sum: u64 = mix.shares().iter().map(part).sum();
                sum as f64 / mix.weight() as f64
            }
        }
    }
}

fn check_bytes(bytes: u64) -> Result<u32, ValueSizesError> {
    let fitting = u32::try_from(bytes).ok().filter(|&bytes| bytes <= VALUE_BYTES_MAX);
    fitting.ok_or(ValueSizesError::TooLong { bytes })
}

impl fmt::Display for ValueSizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(bytes) => write!(f, "{}", Size(*bytes)),
            Self::Uniform { min, max } => write!(f, "uniform:{}-{}", Size(*min), Size(*max)),
            Self::Zipfian { min, max } => write!(f, "zipfian:{}-{}", Size(*min), Size(*max)),
            Self::Mix(mix) => {
                f.write_str("mix:")?;
                for (place, share) in mix.shares().iter().enumerate() {
                    let comma = if place == 0 { "" } else { "," };
                    write!(f, "{comma}{}={}", Size(share.bytes), share.weight)?;
                }
                Ok(())
            }
        }
    }
}

/// Bytes in the largest unit of which they are a whole number.
struct Size(u32);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = u64::from(self.0);
        let units = [(GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB"), (1, "B")];
        let fits = |(unit, _): &(u64, &str)| bytes > 0 && bytes.is_multiple_of(*unit);
        let (unit, name) = units.into_iter().find(fits).unwrap_or((1, "B"));
        write!(f, "{}{name}", bytes / unit)
    }
}

impl FromStr for ValueSizes {
    type Err = ValueSizesError;

    fn from_str(text: &str) -> Result<Self, ValueSizesError> {
        let of_no_form = || ValueSizesError::Form(text.to_owned());
        let size = |text: &str| check_bytes(parse_length(text).map_err(|_| of_no_form())?);
        let range = |text: &str| {
            let (min, max) = text.split_once('-').ok_or_else(of_no_form)?;
            Ok((size(min)?, size(max)?))
        };
        let share = |text: &str| {
            let (bytes, weight) = text.split_once('=').ok_or_else(of_no_form)?;
            let weight = weight.parse().map_err(|_| of_no_form())?;
            Ok(Share { bytes: size(bytes)?, weight })
        };
        let sizes = match text.split_once(':') {
            None => Self::Fixed(size(text)?),
            Some(("uniform", text)) => {
                let (min, max) = range(text)?;
                Self::Uniform { min, max }
            }
            Some(("zipfian", text)) => {
                let (min, max) = range(text)?;
                Self::Zipfian { min, max }
            }
            Some(("mix", text)) => {
                let shares: Result<Vec<Share>, _> = text.split(',').map(share).collect();
                Self::Mix(SizeMix::new(&shares?)?)
            }
            Some(_) => return Err(of_no_form()),
        };
        sizes.validate()?;
        Ok(sizes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_is_read_and_written_back() {
        let mix = SizeMix::new(&[(100, 60), (4_096, 30), (1 << 20, 10)].map(share)).unwrap();
        for (text, sizes) in [
            ("0B", ValueSizes::Fixed(0)),
            ("100B", ValueSizes::Fixed(100)),
            ("4KiB", ValueSizes::Fixed(4_096)),
            ("2MiB", ValueSizes::Fixed(2 << 20)),
            ("uniform:64B-2MiB", ValueSizes::Uniform { min: 64, max: 2 << 20 }),
            ("zipfian:64B-4KiB", ValueSizes::Zipfian { min: 64, max: 4_096 }),
            ("mix:100B=60,4KiB=30,1MiB=10", ValueSizes::Mix(mix)),
        ] {
            assert_eq!(text.parse(), Ok(sizes));
            assert_eq!(sizes.to_string(), text);
        }
        assert_eq!("4k".parse(), Ok(ValueSizes::Fixed(4_096)));
        assert_eq!("uniform:1-1".parse(), Ok(ValueSizes::Uniform { min: 1, max: 1 }));
    }

    fn share((bytes, weight): (u32, u32)) -> Share {
        Share { bytes, weight }
    }

    #[test]
    fn what_cannot_be_meant_is_refused_in_one_sentence() {
        let form = |text: &str| ValueSizesError::Form(text.to_owned());
        let many = format!("mix:{}", ["1B=1"; 17].join(","));
        let texts = ["", "4 KiB", "4KiB-8KiB", "uniform:", "uniform:4KiB", "pareto:1B-2B", "mix:"];
        let more = ["mix:4KiB", "mix:4KiB=x", "mix:4KiB=-1", "zipfian:1B-x", "Uniform:1B-2B"];
        let mut refused: Vec<(&str, ValueSizesError)> =
            texts.into_iter().chain(more).map(|text| (text, form(text))).collect();
        refused.extend([
            ("3MiB", ValueSizesError::TooLong { bytes: 3 << 20 }),
            ("9GiB", ValueSizesError::TooLong { bytes: 9 << 30 }),
            ("uniform:1B-2097153", ValueSizesError::TooLong { bytes: (2 << 20) + 1 }),
            ("mix:3MiB=1", ValueSizesError::TooLong { bytes: 3 << 20 }),
            ("zipfian:2B-1B", ValueSizesError::Backwards { min: 2, max: 1 }),
            ("mix:1B=1,2B=0", ValueSizesError::Weight { bytes: 2 }),
            (&many, ValueSizesError::Lengths(17)),
        ]);
        for (text, error) in refused {
            assert_eq!(text.parse::<ValueSizes>(), Err(error.clone()), "{text}");
            let sentence = error.to_string();
            assert!(!sentence.contains('\n') && sentence.len() < 160, "{sentence}");
        }
        assert_eq!(SizeMix::new(&[]), Err(ValueSizesError::Lengths(0)));
    }

    #[test]
    fn the_longest_and_the_mean_are_those_of_the_definition() {
        let mean = |text: &str| text.parse::<ValueSizes>().unwrap().mean();
        let max = |text: &str| text.parse::<ValueSizes>().unwrap().max();
        assert!((mean("4KiB") - 4_096.0).abs() < 1e-9);
        assert!((mean("uniform:64B-67B") - 65.5).abs() < 1e-9);
        assert!((mean("mix:100B=3,1KiB=1") - 331.0).abs() < 1e-9);
        assert_eq!(["4KiB", "uniform:1B-2KiB", "zipfian:1B-9B"].map(max), [4_096, 2_048, 9]);
        assert_eq!(max("mix:100B=3,1KiB=1,1B=9"), 1_024);
        assert!((mean("zipfian:7B-7B") - 7.0).abs() < 1e-9);
        let even_odds = 1.0 + 2.0_f64.powf(-0.99);
        assert!((mean("zipfian:7B-8B") - (8.0 - 1.0 / even_odds)).abs() < 1e-9);
    }
}
