use super::columns::{
    Column, head, of_clients, of_devices, of_hosts, of_reactors, of_redis, of_tenants, redis_of,
};
use super::sample::Sample;
use crate::table::numbers;

/// Formats a sample in lines, with all columns.
pub(super) fn of(sample: &Sample) -> String {
    let head = head(sample).map(|line| line + "\n").concat();
    let reactors: Vec<_> = sample.reactors.iter().copied().enumerate().collect();
    let mut text = head;
    let redis = redis_of(sample);
    text += &table(&of_hosts(u16::MAX), &sample.hosts);
    if !redis.is_empty() {
        text += &table(&of_clients(u16::MAX), &sample.redis_clients);
        text += &table(&of_redis(u16::MAX), &redis);
    }
    if !sample.tenants.is_empty() {
        text += &table(&of_tenants(u16::MAX), &sample.tenants);
    }
    text += &table(&of_devices(u16::MAX), &sample.devices);
    text += &table(&of_reactors(u16::MAX), &reactors);
    text
}

fn table<T>(columns: &[Column<T>], rows: &[T]) -> String {
    let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
    let row = |row| columns.iter().map(|column| (column.text)(row)).collect();
    numbers(&names, rows.iter().map(row))
}
