//! Clients that move between their requests.

use crate::differential::answer::Answer;
use crate::differential::ours::{self, Moves};
use crate::differential::seen::line;
use base::Nanos;
use reactor::Reactor;

/// One request at a time, so that the client moves after most of them.
#[test]
fn all_that_a_client_has_set_moves_along() {
    Reactor::new(None).run(async {
        let (door, moves) = (ours::door(1).await, Moves::new(Nanos(1)));
        let mut client = ours::Client::connect_moving(&door, 1, moves.clone());
        let mut other = ours::Client::connect(&door, 2);
        let steps = [
            ("client setname me", "OK"),
            ("client reply skip", ""),
            ("set key unheard", ""),
            ("get key", "\"unheard\""),
            ("watch key", "OK"),
            ("multi", "OK"),
            ("set key mine", "QUEUED"),
            ("exec", "[OK]"),
            ("watch key", "OK"),
            ("append key +", ":5"),
            ("multi", "OK"),
            ("get key", "QUEUED"),
            ("exec", "(nil)"),
            ("select 1", "OK"),
            ("set key other", "OK"),
            ("client reply off", ""),
            ("set key more", ""),
            ("client reply on", "OK"),
            ("get key", "\"more\""),
            ("client getname", "\"me\""),
        ];
        for (request, expected) in steps {
            let told = client.ask(&line(request), usize::from(!expected.is_empty())).await;
            let told: Vec<String> = told.iter().map(ToString::to_string).collect();
            assert_eq!(told.concat(), expected, "{request}");
            ours::pass(1).await;
        }
        assert!(moves.count() > steps.len() as u64 / 2, "{} moves", moves.count());
        let told = other.ask(&line("get key"), 1).await;
        assert_eq!(told, [Answer::Bulk(b"mine+".to_vec())]);
        let census = door.census(9).into_iter().find(|client| client.name == "me");
        let census = census.expect("it is connected");
        assert_eq!((census.database, census.commands), (1, steps.len() as u64));
    });
}

#[test]
fn a_client_that_has_moved_is_ended_by_its_id() {
    Reactor::new(None).run(async {
        let (door, moves) = (ours::door(1).await, Moves::new(Nanos(1)));
        let mut client = ours::Client::connect_moving(&door, 1, moves.clone());
        let Answer::Integer(id) = client.ask(&line("client id"), 1).await.remove(0) else {
            panic!("an id is a number")
        };
        for _ in 0..3 {
            client.ask(&line("ping"), 1).await;
        }
        ours::pass(1).await;
        assert!(moves.count() > 0);
        let mut other = ours::Client::connect(&door, 2);
        let killed = other.ask(&line(&format!("client kill id {id}")), 1).await;
        assert_eq!(killed, [Answer::Integer(1)]);
        ours::pass(1).await;
        assert!(client.is_over());
        assert_eq!(door.census(9).len(), 1);
    });
}

/// The next reactor ends it, and executes nothing that it has sent on its way.
#[test]
fn a_client_on_its_way_is_ended_by_its_id() {
    Reactor::new(None).run(async {
        let way = Nanos::from_millis(10);
        let (door, moves) = (ours::door(1).await, Moves::slow(Nanos(1), way));
        let mut client = ours::Client::connect_moving(&door, 1, moves.clone());
        let Answer::Integer(id) = client.ask(&line("client id"), 1).await.remove(0) else {
            panic!("an id is a number")
        };
        ours::pass(1).await;
        assert_eq!((moves.count(), client.is_over()), (1, false), "it is on its way");
        let mut other = ours::Client::connect(&door, 2);
        let killed = other.ask(&line(&format!("client kill id {id}")), 1).await;
        assert_eq!(killed, [Answer::Integer(1)]);
        client.say(&line("incr key"));
        ours::pass(20).await;
        assert!(client.is_over());
        assert_eq!((moves.count(), door.census(9).len()), (1, 1));
        assert_eq!(other.ask(&line("get key"), 1).await, [Answer::NullBulk]);
    });
}

/// Its next reactor may have stopped.
#[test]
fn a_client_that_is_dropped_on_its_way_is_forgotten() {
    Reactor::new(None).run(async {
        let (door, moves) = (ours::door(1).await, Moves::losing(Nanos(1)));
        let mut client = ours::Client::connect_moving(&door, 1, moves.clone());
        client.ask(&line("ping"), 1).await;
        ours::pass(1).await;
        assert_eq!((moves.count(), door.census(9)), (1, Vec::new()));
        assert!(client.is_over());
    });
}
