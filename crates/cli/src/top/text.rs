use super::columns::{Column, head, of_devices, of_hosts, of_reactors};
use super::sample::Sample;
use crate::table::numbers;

/// A sample in lines, with all columns.
pub(super) fn of(sample: &Sample) -> String {
    let head = head(sample).map(|line| line + "\n").concat();
    let reactors: Vec<_> = sample.reactors.iter().copied().enumerate().collect();
    let mut text = head;
    text += &table(&of_hosts(u16::MAX), &sample.hosts);
    text += &table(&of_devices(), &sample.devices);
    text += &table(&of_reactors(), &reactors);
    text
}

fn table<T>(columns: &[Column<T>], rows: &[T]) -> String {
    let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
    let row = |row| columns.iter().map(|column| (column.text)(row)).collect();
    numbers(&names, rows.iter().map(row))
}
