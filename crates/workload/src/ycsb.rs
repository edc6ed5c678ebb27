use crate::chooser::Distribution;

/// A core workload of YCSB (Cooper et al., "Benchmarking Cloud Serving Systems with YCSB", 2010).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ycsb {
    /// 50 % retrieves, 50 % overwrites.
    A,
    /// 95 % retrieves, 5 % overwrites.
    B,
    /// Retrieves only.
    C,
    /// 95 % retrieves, mostly of the newest keys, 5 % stores of new keys.
    D,
    /// 95 % scans of 1 to 100 keys, all lengths as often, 5 % stores of new keys.
    E,
    /// 50 % retrieves, 50 % retrieves each followed by an overwrite of the same key.
    F,
}

impl Ycsb {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::A, Self::B, Self::C, Self::D, Self::E, Self::F];

    /// Returns the name on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::A => "ycsb-a",
            Self::B => "ycsb-b",
            Self::C => "ycsb-c",
            Self::D => "ycsb-d",
            Self::E => "ycsb-e",
            Self::F => "ycsb-f",
        }
    }

    /// Returns how often each key is used, unless the plan says otherwise.
    pub const fn distribution(self) -> Distribution {
        match self {
            Self::D => Distribution::Latest,
            _ => Distribution::Zipfian,
        }
    }

    /// Returns its mixture.
    pub(crate) const fn mixture(self) -> Mixture {
        let (percent, often, otherwise) = match self {
            Self::A => (50, Verb::Retrieve, Verb::Overwrite),
            Self::B => (95, Verb::Retrieve, Verb::Overwrite),
            Self::C => (100, Verb::Retrieve, Verb::Retrieve),
            Self::D => (95, Verb::Retrieve, Verb::Insert),
            Self::E => (95, Verb::Scan, Verb::Insert),
            Self::F => (50, Verb::Retrieve, Verb::ReadModifyWrite),
        };
        Mixture { percent, often, otherwise }
    }
}

/// Operations of at most two kinds, drawn one by one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mixture {
    /// The mean number of the first kind in 100 operations.
    pub(crate) percent: u8,
    pub(crate) often: Verb,
    pub(crate) otherwise: Verb,
}

/// An operation on a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Retrieve,
    Overwrite,
    /// Stores a new key.
    Insert,
    Scan,
    ReadModifyWrite,
}

impl Mixture {
    /// Returns the mean number of stores of new keys in 100 operations.
    pub(crate) const fn insert_percent(self) -> u8 {
        match self.otherwise {
            Verb::Insert => 100 - self.percent,
            _ => 0,
        }
    }

    /// True when it overwrites keys that it may also retrieve.
    pub(crate) const fn has_versions(self) -> bool {
        matches!(self.otherwise, Verb::Overwrite | Verb::ReadModifyWrite)
    }
}
