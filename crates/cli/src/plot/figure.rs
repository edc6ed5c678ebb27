//! What a figure shows, without its look.

/// The content of one file.
pub(crate) struct Figure {
    pub(crate) title: String,
    /// The setup, in small type below the panels.
    pub(crate) caption: String,
    /// From top to bottom.
    pub(crate) panels: Vec<Panel>,
}

/// One pair of axes and the data between them.
pub(crate) struct Panel {
    pub(crate) title: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) series: Vec<Series>,
}

/// One axis of a panel.
pub(crate) struct Axis {
    /// The measure; with its unit, if the labels of the ticks do not show it.
    pub(crate) label: String,
    pub(crate) scale: Scale,
    pub(crate) unit: Unit,
}

/// Maps values to positions on an axis. A panel leaves out values without a position and states
/// their number.
pub(crate) enum Scale {
    /// Linear from zero; only values of at least zero have a position.
    Linear,
    /// By decimal logarithm; only values above zero have a position.
    Log10,
    /// By binary logarithm; only values above zero have a position.
    Log2,
    /// A share q, from 0 to below 1, by its nines: -log10(1 - q), so that 99 % and 99.9 % are as
    /// far apart as 90 % and 99 %. Draw the largest of n values at 1 - 1/n, since 1 has no
    /// position.
    Nines,
    /// The value i is at the i-th name, from 0.
    Categories(Vec<String>),
}

/// Format of the values of an axis.
#[derive(Clone, Copy)]
pub(crate) enum Unit {
    /// Plain: 1024.
    Plain,
    /// With k, M, G or T: 20 k.
    Count,
    /// The values are nanoseconds: 50 us, 1 ms.
    Nanos,
    /// The values are bytes, few enough to be counted: 255 B.
    Bytes,
}

/// Values of one kind. In all panels of a figure, series with equal names look equal.
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) mark: Mark,
    /// x and y, in the order of x.
    pub(crate) points: Vec<(f64, f64)>,
}

/// Form of a series.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// A line; a few points also have markers.
    Line,
    /// Markers only.
    Points,
    /// Each y holds until the x of the next point; the last point ends the last step.
    Steps,
    /// Bars from zero, on an x axis of names; side by side if series share a name.
    Bars,
}
