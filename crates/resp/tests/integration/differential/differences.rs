use crate::differential::generate::{Words, encoded};
use crate::differential::ours;
use crate::differential::redis::Redis;
use reactor::Reactor;
use std::path::Path;

fn words(line: &str) -> Words {
    let unquoted = |word: &str| word.trim_matches('"').as_bytes().to_vec();
    line.split(' ').map(unquoted).collect()
}

/// Each line of the table says what Redis answers and what this answers: both are asked.
#[test]
fn every_difference_is_as_the_table_says() {
    let Some(server) = Redis::start("differences") else { return };
    let path = "../../docs/guide/redis-differences.tsv";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let table = std::fs::read_to_string(path).expect("the table is there");
    let rows: Vec<_> = table.lines().filter(|line| !line.starts_with('#')).skip(1).collect();
    assert!(rows.len() > 5, "the table has rows");
    for row in rows {
        let columns: Vec<_> = row.split('\t').collect();
        let [commands, redis, kvasir, why] = columns[..] else { panic!("four columns: {row}") };
        assert!(why.ends_with('.'), "{row}");
        Reactor::new(None).run(async {
            let door = ours::door(1).await;
            let (mut theirs, mut ours) = (server.connect(), ours::Client::connect(&door, 1));
            theirs.ask(&encoded(&words("flushall")), 1);
            let mut last = (String::new(), String::new());
            for command in commands.split("; ") {
                let bytes = encoded(&words(command));
                let (a, b) = (theirs.ask(&bytes, 1), ours.ask(&bytes, 1).await);
                last = (a[0].to_string(), b[0].to_string());
            }
            assert_eq!((last.0.as_str(), last.1.as_str()), (redis, kvasir), "{commands}");
        });
    }
}
