use super::*;
use crate::top::sample::tests::{busy, with_redis, with_tenants};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

/// Returns the lines of a terminal of this size, without trailing blanks.
fn lines(view: &View, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| view.draw(frame)).unwrap();
    let buffer = terminal.backend().buffer().clone();
    let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..height).map(|y| line(y).trim_end().to_owned()).collect()
}

fn showing(trouble: Option<&str>) -> View {
    View { sample: Some(busy()), trouble: trouble.map(str::to_owned) }
}

#[test]
fn a_terminal_of_80_columns_has_what_matters() {
    let expected = "\
kvasir 1.2.3 at 192.0.2.1:8420, up 1 d 01:00:00
3,100 operations/s, 8.2 MB/s read, 0.1 MB/s written, 6 connections


host                  queues in flight   reads/s  writes/s      MB/s     memory
..0-8000-000000000001      3        12     2,000     1,000       8.3    3.0 MiB
nqn.quiet                  3        12         0         0       0.0        0 B

device                 operations/s  MB/s read MB/s written    WAF    RAF    SAF
fast                          3,100        8.2          0.1   1.25   1.50      -

reactor   busy   locks   NVMe  Redis commands/s MB/s stored cleaned moved
0       25.0 %   1.2 %      6      0     10,000         2.5     100     5

q quits";
    let shown = lines(&showing(None), 80, 15);
    assert_eq!(
        squeezed(&shown),
        squeezed(&expected.lines().map(str::to_owned).collect::<Vec<_>>())
    );
}

/// Returns lines with one blank between words: column positions depend on the terminal's width.
fn squeezed(lines: &[String]) -> Vec<String> {
    let words = |line: &String| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines = lines.iter().map(words);
    lines.filter(|line| !line.is_empty()).collect()
}

#[test]
fn a_wide_terminal_has_subsystems_and_addresses_too() {
    let shown = squeezed(&lines(&showing(None), 130, 20));
    let header = "host address subsystem queues in flight reads/s writes/s MB/s memory";
    assert_eq!(shown[2], header);
    assert!(shown[3].contains("192.0.2.7:50000 ..om.example:pairs 3 12 2,000"), "{shown:?}");
}

#[test]
fn an_error_is_shown_above_the_last_sample() {
    let shown = squeezed(&lines(&showing(Some("no server answers at 192.0.2.1:8420")), 80, 20));
    assert_eq!(shown[2], "no server answers at 192.0.2.1:8420; retrying");
    assert!(shown[4].ends_with("2,000 1,000 8.3 3.0 MiB"));
}

#[test]
fn trouble_is_said_to_its_end_on_80_columns() {
    let trouble = "no server answers at 192.0.2.1:8420 (Connection refused (os error 111)): start \
                   kvasir serve with --http, or say where it answers";
    let shown = squeezed(&lines(&showing(Some(trouble)), 80, 20));
    assert_eq!(shown[2..4].join(" "), format!("{trouble}; retrying"));
}

#[test]
fn before_the_first_interval_is_over_that_is_said() {
    assert_eq!(
        squeezed(&lines(&View::default(), 80, 20)),
        ["waiting for the first interval", "q quits"]
    );
}

#[test]
fn any_size_can_be_drawn() {
    for (width, height) in [(1, 1), (20, 5), (80, 6), (300, 100)] {
        lines(&showing(Some("x")), width, height);
    }
}

/// The second line of the table is of a client whose name contains codes to clear the screen.
#[test]
fn clients_of_redis_have_their_tables_on_80_columns() {
    let expected = "\
kvasir 1.2.3 at 192.0.2.1:8420, up 00:01:00
2,000 operations/s, 20.0 MB/s read, 2.0 MB/s written, 6 connections
host                  queues in flight   reads/s  writes/s      MB/s     memory
Redis client          name            user         db    commands/s buffered
192.0.2.8:40002       app             default      3          1,900  2.0 KiB
192.0.2.8:40003       \\u{1b}[2Jx\\ny default      3            100  3.0 KiB
192.0.2.8:40001       quiet           default      3              0  1.0 KiB
192.0.2.8:40004                       default      3              -  4.0 KiB
Redis, by device       clients   commands/s    MB/s in   MB/s out cache hits
fast                     1,234        2,000        2.0       20.0     75.0 %
device                 operations/s  MB/s read MB/s written    WAF    RAF    SAF
fast                          2,000       20.0          2.0   1.25   1.50      -
reactor   busy   locks   NVMe  Redis commands/s MB/s stored cleaned moved
0       25.0 %   1.2 %      6      0     10,000         2.5     100     5
q quits";
    let view = View { sample: Some(with_redis()), trouble: None };
    let shown = lines(&view, 80, 24);
    assert_eq!(
        squeezed(&shown),
        squeezed(&expected.lines().map(str::to_owned).collect::<Vec<_>>())
    );
    assert!(shown.iter().all(|line| !line.contains('\u{1b}')));
    // On a small terminal the busiest are shown.
    let shown = squeezed(&lines(&view, 80, 20));
    assert!(shown.iter().any(|line| line.starts_with("192.0.2.8:40002")), "{shown:?}");
}

/// Returns the start and end of each of `names` in a line that has all of them, in their order.
fn places(line: &str, names: &[&str]) -> Vec<(usize, usize)> {
    let mut from = 0;
    let place = |name: &&str| {
        let at = from + line[from..].find(name).unwrap_or_else(|| panic!("{name} of {line:?}"));
        from = at + name.len();
        (at, from)
    };
    names.iter().map(place).collect()
}

/// Each heading is complete, and the figures below it are aligned with its end.
#[test]
fn headings_are_whole_and_above_their_figures_at_any_width() {
    fn check<T>(lines: &[String], columns: &[Column<T>], rows: &[T], width: u16) {
        let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
        let text =
            |row: &T| -> Vec<String> { columns.iter().map(|column| (column.text)(row)).collect() };
        let is_header = |line: &&String| names.iter().all(|name| line.contains(name));
        let at = lines.iter().position(|line| is_header(&line));
        let at = at.unwrap_or_else(|| panic!("{names:?} at {width}: {lines:#?}"));
        let headings = places(&lines[at], &names);
        for (row, line) in rows.iter().zip(&lines[at + 1..]) {
            let texts = text(row);
            let cells = places(line, &texts.iter().map(String::as_str).collect::<Vec<_>>());
            assert_eq!((cells[0].0, headings[0].0), (0, 0), "{line:?} at {width}");
            for (cell, heading) in cells.iter().zip(&headings).skip(1) {
                // An empty cell has no end.
                assert!(cell.0 == cell.1 || cell.1 == heading.1, "{line:?} at {width}: {lines:#?}");
            }
        }
    }
    let redis = View { sample: Some(with_redis()), trouble: None };
    for width in 40..=200 {
        let (shown, sample) = (lines(&showing(None), width, 30), busy());
        check(&shown, &of_hosts(width), &sample.hosts, width);
        check(&shown, &of_devices(width), &sample.devices, width);
        let reactors: Vec<_> = sample.reactors.into_iter().enumerate().collect();
        check(&shown, &of_reactors(width), &reactors, width);
        let (shown, sample) = (lines(&redis, width, 40), with_redis());
        check(&shown, &of_clients(width), &sample.redis_clients, width);
        check(&shown, &of_redis(width), &redis_of(&sample), width);
        check(&shown, &of_devices(width), &sample.devices, width);
    }
}

#[test]
fn two_tables_share_the_lines() {
    let of = |rest, some: usize, others: usize| share(rest, &vec![(); some], &vec![(); others]);
    assert_eq!((of(20, 100, 100), of(20, 100, 0), of(20, 100, 3)), (10, 18, 15));
    assert_eq!((of(20, 1, 100), of(20, 0, 0), of(0, 9, 9)), (3, 2, 0));
}

#[test]
fn tenants_have_a_table_and_their_fairness_is_in_the_head() {
    let shown = squeezed(&lines(&View { sample: Some(with_tenants()), trouble: None }, 110, 24));
    assert!(shown[1].ends_with("6 connections, fairness 1.00"), "{shown:?}");
    let header = "tenant weight requests/s MB/s busy waiting limited requests/s max bytes/s max";
    let place = shown.iter().position(|line| line == header).expect("there is a table");
    assert_eq!(shown[place + 1], "team 3 600 0.6 60.0 % 1.2 0.3 5,000 -");
    assert_eq!(shown[place + 2], "default 1 200 0.2 20.0 % 0.4 0.1 5,000 -");
    let without = squeezed(&lines(&showing(None), 130, 24));
    assert!(!without.iter().any(|line| line.starts_with("tenant")), "{without:?}");
}
