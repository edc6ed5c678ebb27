//! What an experiment found.

use crate::plot::Panel;
use serde::Serialize;

/// Result of an experiment.
#[derive(Default, Serialize)]
pub(super) struct Finding {
    pub(super) setup: String,
    /// Assumptions about the device and the load that the paper does not state.
    pub(super) assumptions: Vec<String>,
    pub(super) rows: Vec<Row>,
    pub(super) criterion: String,
    /// Whether the criterion holds.
    pub(super) holds: bool,
    /// A second criterion beside one that is known not to hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) beside: Option<Verdict>,
    #[serde(skip)]
    pub(super) panels: Vec<Panel>,
}

/// A criterion, and whether it holds.
#[derive(Serialize)]
pub(super) struct Verdict {
    pub(super) criterion: String,
    pub(super) holds: bool,
}

/// One figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Row {
    pub(super) label: String,
    /// The paper's figure, if it gives a number.
    pub(super) paper: Option<f64>,
    pub(super) ours: f64,
    pub(super) unit: &'static str,
}
