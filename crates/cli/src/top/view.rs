use super::columns::{
    Column, head, of_clients, of_devices, of_hosts, of_reactors, of_redis, of_tenants, redis_of,
};
use super::sample::Sample;
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::Stylize;
use ratatui::text::{Line, Text};
use ratatui::widgets::{Cell, Paragraph, Row, Table, Wrap};

/// Most lines of a table of devices or reactors, so that hosts have room.
const ROWS_MAX: u16 = 8;

/// The state of the screen.
#[derive(Default)]
pub(super) struct View {
    /// `None` during the first interval.
    pub(super) sample: Option<Sample>,
    /// The latest error, as a sentence: the sample is older then.
    pub(super) trouble: Option<String>,
}

impl View {
    pub(super) fn draw(&self, frame: &mut Frame<'_>) {
        let rows = |count: usize| u16::try_from(count).unwrap_or(ROWS_MAX).min(ROWS_MAX) + 2;
        let sample = self.sample.as_ref();
        let devices = rows(sample.map_or(0, |sample| sample.devices.len()));
        let reactors = rows(sample.map_or(0, |sample| sample.reactors.len()));
        let redis = sample.map(redis_of).unwrap_or_default();
        let doors = if redis.is_empty() { 0 } else { rows(redis.len()) };
        let tenants = match sample.map_or(0, |sample| sample.tenants.len()) {
            0 => 0,
            count => rows(count),
        };
        let fixed = 5 + doors + tenants + devices + reactors;
        let rest = frame.area().height.saturating_sub(fixed);
        let clients = match sample {
            Some(sample) if doors > 0 => share(rest, &sample.redis_clients, &sample.hosts),
            _ => 0,
        };
        let parts = [
            Constraint::Length(4),
            Constraint::Min(3),
            Constraint::Length(clients),
            Constraint::Length(doors),
            Constraint::Length(tenants),
            Constraint::Length(devices),
            Constraint::Length(reactors),
            Constraint::Length(1),
        ];
        let [top, hosts, clients, doors, tenants, devices, reactors, keys] =
            Layout::vertical(parts).areas(frame.area());
        frame.render_widget(Paragraph::new(self.head()).wrap(Wrap { trim: true }), top);
        frame.render_widget(Line::from("q quits").dim(), keys);
        let Some(sample) = sample else { return };
        draw_table(frame, hosts, &of_hosts(hosts.width), &sample.hosts);
        draw_table(frame, clients, &of_clients(clients.width), &sample.redis_clients);
        draw_table(frame, doors, &of_redis(doors.width), &redis);
        draw_table(frame, tenants, &of_tenants(tenants.width), &sample.tenants);
        draw_table(frame, devices, &of_devices(devices.width), &sample.devices);
        let all: Vec<_> = sample.reactors.iter().copied().enumerate().collect();
        draw_table(frame, reactors, &of_reactors(reactors.width), &all);
    }

    fn head(&self) -> Text<'static> {
        let mut lines: Vec<Line<'static>> = match &self.sample {
            Some(sample) => head(sample).map(Line::from).into(),
            None => vec![Line::from("waiting for the first interval")],
        };
        if let Some(trouble) = &self.trouble {
            lines.push(Line::from(format!("{trouble}; retrying")).red());
        }
        Text::from(lines)
    }
}

/// Returns the lines of `rest` for a table of `some` rows, beside one of `others` rows that gets
/// the remainder: half each, or what the other does not need.
fn share<T, U>(rest: u16, some: &[T], others: &[U]) -> u16 {
    let wants = |count: usize| u16::try_from(count + 2).unwrap_or(u16::MAX);
    let left = rest.saturating_sub(wants(others.len()));
    wants(some.len()).min(left.max(rest / 2))
}

/// A table with its first column left-aligned and the others right-aligned.
fn draw_table<T>(frame: &mut Frame<'_>, area: Rect, columns: &[Column<T>], rows: &[T]) {
    let cell = |(place, text): (usize, String)| {
        let is_first = place == 0;
        let alignment = if is_first { Alignment::Left } else { Alignment::Right };
        Cell::from(Text::from(text).alignment(alignment))
    };
    let row = |texts: Vec<String>| Row::new(texts.into_iter().enumerate().map(cell));
    let header = row(columns.iter().map(|column| column.name.to_owned()).collect()).bold();
    let rows = rows.iter().map(|it| row(columns.iter().map(|column| (column.text)(it)).collect()));
    let widths = columns.iter().enumerate().map(|(place, column)| match place {
        0 => Constraint::Min(column.width),
        _ => Constraint::Length(column.width),
    });
    frame.render_widget(Table::new(rows, widths).header(header), area);
}

#[cfg(test)]
mod tests;
