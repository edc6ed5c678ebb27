use crate::progress::Progress;

/// How to run an experiment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// Whether the mechanism that the paper credits is switched off.
    pub(super) is_control: bool,
    pub(super) progress: Progress,
}
