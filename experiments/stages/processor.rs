//! The processor of the costs.

use std::fs::read_to_string;

/// A processor by /proc/cpuinfo.
pub(crate) struct Processor {
    pub(crate) name: String,
    /// The frequency that the kernel reports: under a hypervisor the nominal one.
    pub(crate) mhz: u64,
}

impl Processor {
    pub(crate) fn of_this_machine() -> Result<Self, String> {
        let text = read_to_string("/proc/cpuinfo").map_err(|error| error.to_string())?;
        Self::parse(&text).ok_or_else(|| "/proc/cpuinfo has no model name and MHz".to_owned())
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few thousand")]
    fn parse(cpuinfo: &str) -> Option<Self> {
        let of = |name: &str| {
            let line = cpuinfo.lines().find(|line| line.starts_with(name))?;
            line.split_once(':').map(|(_, value)| value.trim())
        };
        let mhz: f64 = of("cpu MHz")?.parse().ok()?;
        let name = of("model name")?.split_whitespace().collect::<Vec<_>>().join(" ");
        Some(Self { name, mhz: mhz.round() as u64 })
    }
}

#[cfg(test)]
mod tests {
    use super::Processor;

    #[test]
    fn the_first_processor_counts() {
        let text = "processor\t: 0\nmodel name\t: Some  CPU\ncpu MHz\t\t: 2099.998\n\n\
                    model name\t: Other\ncpu MHz\t\t: 1.0\n";
        let processor = Processor::parse(text).expect("it has both lines");
        assert_eq!((&processor.name[..], processor.mhz), ("Some CPU", 2_100));
        assert!(Processor::parse("processor\t: 0\n").is_none());
    }
}
