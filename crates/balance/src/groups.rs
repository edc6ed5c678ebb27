use crate::settings::Settings;

/// The cores by their utilisation in a window.
#[derive(Clone, Debug, PartialEq)]
pub struct Groups {
    /// The utilisation of each core, from 0 to 1.
    utilisations: Vec<f64>,
    mean: f64,
}

impl Groups {
    /// Groups cores with these utilisations, from 0 to 1.
    ///
    /// # Panics
    /// If there is no core.
    #[expect(clippy::cast_precision_loss, reason = "there are few cores")]
    pub fn of(utilisations: Vec<f64>) -> Self {
        assert!(!utilisations.is_empty(), "a balancer has cores");
        let mean = utilisations.iter().sum::<f64>() / utilisations.len() as f64;
        Self { utilisations, mean }
    }

    /// Returns whether a core is overloaded.
    pub fn are_overloaded(&self, settings: &Settings) -> bool {
        self.highest() > settings.overload
    }

    /// Returns whether the cores need balancing: one is overloaded, and the highest and lowest
    /// utilisation are too far apart.
    pub fn are_unbalanced(&self, settings: &Settings) -> bool {
        let lowest = self.utilisations.iter().copied().fold(f64::MAX, f64::min);
        self.are_overloaded(settings) && self.highest() - lowest > settings.spread
    }

    fn highest(&self) -> f64 {
        self.utilisations.iter().copied().fold(f64::MIN, f64::max)
    }

    /// Returns the utilisation that `core` has above the mean: the high group has some.
    pub fn excess(&self, core: usize) -> f64 {
        (self.utilisations[core] - self.mean).max(0.0)
    }

    /// Returns the utilisation that `core` lacks to the mean: the low group can take as much.
    pub fn room(&self, core: usize) -> f64 {
        (self.mean - self.utilisations[core]).max(0.0)
    }

    /// Returns what all cores of the low group can take.
    pub fn acceptable(&self) -> f64 {
        (0..self.utilisations.len()).map(|core| self.room(core)).sum()
    }

    /// Returns the utilisation of `core`.
    pub fn utilisation(&self, core: usize) -> f64 {
        self.utilisations[core]
    }
}
