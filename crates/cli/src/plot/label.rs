//! Formats the labels of ticks.

use super::figure::Unit;

impl Unit {
    /// Formats `value`, in the multiple of the unit that suits `reference`.
    pub(super) fn label(self, value: f64, reference: f64) -> String {
        if value == 0.0 {
            return "0".to_owned();
        }
        let (size, name) = self.multiple(reference);
        let digits = digits(value / size);
        if name.is_empty() { digits } else { format!("{digits} {name}") }
    }

    /// Returns the largest multiple of the unit that `reference` reaches, and its name.
    pub(super) fn multiple(self, reference: f64) -> (f64, &'static str) {
        let multiples: &[(f64, &str)] = match self {
            Self::Plain => &[(1.0, "")],
            Self::Count => &[(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")],
            Self::Nanos => &[(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")],
            Self::Bytes => &[(1.0, "B")],
        };
        // The math library may return a slightly too small power of ten.
        let reference = reference * (1.0 + 1e-9);
        let smallest = multiples[multiples.len() - 1];
        multiples.iter().copied().find(|(size, _)| *size <= reference).unwrap_or(smallest)
    }
}

/// Formats `value` with six significant digits, without trailing zeros.
fn digits(value: f64) -> String {
    let rounded: f64 = format!("{value:.5e}").parse().unwrap_or(value);
    if (1e-4..1e6).contains(&rounded) { rounded.to_string() } else { format!("{rounded:e}") }
}

/// Formats the share with `nines` nines, in percent.
pub(super) fn nines(nines: usize) -> String {
    match nines {
        0 => "0%".to_owned(),
        1 => "90%".to_owned(),
        2 => "99%".to_owned(),
        _ => format!("99.{}%", "9".repeat(nines - 2)),
    }
}
