use super::*;
use crate::top::sample::tests::{busy, with_redis};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

/// The lines of a terminal of this size, without the blanks at their ends.
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

reactor                        busy connections
0                            25.0 %           6

q quits";
    let shown = lines(&showing(None), 80, 15);
    assert_eq!(
        squeezed(&shown),
        squeezed(&expected.lines().map(str::to_owned).collect::<Vec<_>>())
    );
}

/// Lines with one blank between words: where columns begin is left to the terminal's width.
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
fn trouble_is_said_and_what_was_known_stays() {
    let shown = squeezed(&lines(&showing(Some("nothing answers at 192.0.2.1:8420")), 80, 20));
    assert_eq!(shown[2], "nothing answers at 192.0.2.1:8420; it is asked again");
    assert!(shown[4].ends_with("2,000 1,000 8.3 3.0 MiB"));
}

#[test]
fn trouble_is_said_to_its_end_on_80_columns() {
    let trouble = "nothing answers at 192.0.2.1:8420 (Connection refused (os error 111)): start \
                   kvasir serve with --http, or say where it answers";
    let shown = squeezed(&lines(&showing(Some(trouble)), 80, 20));
    assert_eq!(shown[2..4].join(" "), format!("{trouble}; it is asked again"));
}

#[test]
fn before_the_first_interval_is_over_that_is_said() {
    assert_eq!(
        squeezed(&lines(&View::default(), 80, 20)),
        ["counting for the first interval", "q quits"]
    );
}

#[test]
fn any_size_can_be_drawn() {
    for (width, height) in [(1, 1), (20, 5), (80, 6), (300, 100)] {
        lines(&showing(Some("x")), width, height);
    }
}

/// The second line of the table is of a client whose name is to clear the screen.
#[test]
fn clients_of_redis_have_their_tables_on_80_columns() {
    let expected = "\
kvasir 1.2.3 at 192.0.2.1:8420, up 00:01:00
0 operations/s, 0.0 MB/s read, 0.0 MB/s written, 6 connections
host                  queues in flight   reads/s  writes/s      MB/s     memory
Redis client          name            user         db    commands/s buffered
192.0.2.8:40002       app             default      3          1,900  2.0 KiB
192.0.2.8:40003       \\u{1b}[2Jx\\ny default      3            100  3.0 KiB
192.0.2.8:40001       quiet           default      3              0  1.0 KiB
192.0.2.8:40004                       default      3              -  4.0 KiB
Redis, by device       clients   commands/s    MB/s in   MB/s out cache hits
fast                     1,234        2,000        2.0       20.0     75.0 %
device                 operations/s  MB/s read MB/s written    WAF    RAF    SAF
fast                              0        0.0          0.0   1.25   1.50      -
reactor                        busy connections
0                            25.0 %           6
q quits";
    let view = View { sample: Some(with_redis()), trouble: None };
    let shown = lines(&view, 80, 24);
    assert_eq!(
        squeezed(&shown),
        squeezed(&expected.lines().map(str::to_owned).collect::<Vec<_>>())
    );
    assert!(shown.iter().all(|line| !line.contains('\u{1b}')));
    // With little room the busiest are shown.
    let shown = squeezed(&lines(&view, 80, 20));
    assert!(shown.iter().any(|line| line.starts_with("192.0.2.8:40002")), "{shown:?}");
}

#[test]
fn each_of_two_tables_has_half_or_what_the_other_does_not_need() {
    let of = |rest, some: usize, others: usize| share(rest, &vec![(); some], &vec![(); others]);
    assert_eq!((of(20, 100, 100), of(20, 100, 0), of(20, 100, 3)), (10, 18, 15));
    assert_eq!((of(20, 1, 100), of(20, 0, 0), of(0, 9, 9)), (3, 2, 0));
}
