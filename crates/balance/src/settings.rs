use base::Nanos;

/// How the load of cores is balanced. `RoundRobin` and `ProportionalShare` divide what a core above
/// the mean gives away among the cores below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Each core executes all stages of its requests.
    None,
    /// Equal parts: `RR` of `OctoKV`.
    RoundRobin,
    /// In proportion to what each core lacks to the mean: `PS` of `OctoKV`.
    ProportionalShare,
    /// As `None`, but a new connection goes to a core with little load, and a busy core gives open
    /// ones away: `ConnectionPlacer`, `ConnectionMover`.
    Connections,
    /// A request goes where the least work is queued, and a connection as with `Connections`:
    /// Kvasir's own.
    Auto,
}

impl Policy {
    /// All policies.
    pub const ALL: [Self; 5] =
        [Self::None, Self::RoundRobin, Self::ProportionalShare, Self::Connections, Self::Auto];

    /// Returns its name on the command line and in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::RoundRobin => "rr",
            Self::ProportionalShare => "ps",
            Self::Connections => "conn",
            Self::Auto => "auto",
        }
    }

    /// Returns whether connections go to cores with little load, also open ones.
    pub const fn places_connections(self) -> bool {
        matches!(self, Self::Connections | Self::Auto)
    }

    /// Returns whether cores execute stages for each other.
    pub const fn diverts(self) -> bool {
        !matches!(self, Self::None | Self::Connections)
    }
}

/// The bounds and shares of a balancer. Shares are parts of 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// `T_OL`: a core with a higher utilisation is overloaded. 0.4 in the slides of `OctoKV`.
    pub overload: f64,
    /// `T_LB`: the cores are unbalanced if the highest and the lowest utilisation differ by more.
    /// 0.1 in an example of the slides.
    pub spread: f64,
    /// The share of its utilisation that a core above the mean gives away in a window. 0.2 in the
    /// slides.
    pub movable: f64,
    /// The length of a window. The slides do not state it. It has to be long enough that the
    /// utilisations of equally loaded cores differ by less than `spread`.
    pub window: Nanos,
    /// Whether a core keeps what it diverted in the window before, and how much of it.
    pub memory: Memory,
}

/// What a core diverts at the start of a window. The slides do not say it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Memory {
    /// Nothing: a core gives away its share anew in each window.
    Off,
    /// What it diverted in the window before. A window in which the core is not above the mean, or
    /// no core is overloaded, lowers this by the share `release`. So a balanced core stays near
    /// the mean. A core gives away at most what it has above the mean. A core of the low group
    /// first takes back what it diverts to a core of the high group.
    On {
        /// The share.
        release: f64,
    },
}

impl Memory {
    /// The default of `release`: an assumption, as the slides do not say it.
    pub const RELEASE: f64 = 0.05;
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            overload: 0.4,
            spread: 0.1,
            movable: 0.2,
            window: Nanos::from_millis(100),
            memory: Memory::On { release: Memory::RELEASE },
        }
    }
}
