/// A figure beside what it is compared with.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) what: &'static str,
    pub(crate) ours: f64,
    /// The divisor.
    pub(crate) other: f64,
    pub(crate) of: &'static str,
    pub(crate) bar: Bar,
}

/// The required ratio.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bar {
    AtLeast(f64),
    AtMost(f64),
}

impl Row {
    fn ratio(&self) -> f64 {
        self.ours / self.other
    }

    /// Returns the row as text, with whether it meets the bar.
    pub(crate) fn line(&self) -> String {
        let Self { what, ours, other, of, bar } = self;
        let ratio = self.ratio();
        let (words, holds) = match bar {
            Bar::AtLeast(bar) => (format!("at least {bar}"), ratio >= *bar),
            Bar::AtMost(bar) => (format!("at most {bar}"), ratio <= *bar),
        };
        let holds = if holds { "met" } else { "NOT met" };
        format!("{what}: {ours:.2}; {of}: {other:.2}; ratio {ratio:.3} (bar: {words}, {holds})")
    }
}

/// Prints each row as the median of the rounds.
pub(crate) fn print_medians(rounds: &[Vec<Row>]) {
    for (place, row) in rounds[0].iter().enumerate() {
        let mut of_row: Vec<&Row> = rounds.iter().map(|rows| &rows[place]).collect();
        of_row.sort_by(|one, other| one.ratio().total_cmp(&other.ratio()));
        let middle = of_row[of_row.len() / 2];
        println!("{}", Row { what: row.what, ..middle.clone() }.line());
    }
}
