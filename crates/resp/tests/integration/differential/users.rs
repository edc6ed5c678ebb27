//! What users may do, beside what they may do with Redis.

use crate::differential::answer::Answer;
use crate::differential::generate::encoded;
use crate::differential::ours;
use crate::differential::redis::{self, Redis};
use reactor::Reactor;
use resp::Users;

/// `default` has a password; of bob the digest stands there, of "pw".
const USERS: &str = "
# Clients from outside.
user default on >secret ~* &* +@all
user bob on #30c952fab122c3f9759f02a6d95c3758b246b4fee239957b2d4fee46e26170c4 ~b:* +get +@hash
user reader on nopass ~* resetchannels +@read -keys +ping +acl
user writer on >one >two ~w* ~x?z resetchannels +@all -@dangerous -@admin +@connection -acl
user off off >pw ~* resetchannels +@all
";

/// How a connection begins.
const WHO: &str = "
ping
auth nosuch x
auth wrong
auth secret
auth default secret
auth bob pw
auth bob PW
auth reader anything
auth writer two
auth writer three
auth off pw
auth a b c
hello
hello 3
hello 3 auth bob pw
hello 2 auth bob nosuch
hello 3 auth reader x setname me
";

/// What each asks then.
const WHAT: &str = "
get b:1
get a
set b:1 x
mget b:1 a
hget b:h f
hset b:h f 1
hgetall x
keys nosuch
scan 0 match nosuch count 1000
ping
acl whoami
select 1
select 99
set w1 x
set xyz 1
set xyyz 1
mset w1 a q 1
del w1 xyz
flushall
config get nosuch
info nosuch
client getname
slowlog reset
latency latest
config set timeout 0
object encoding b:1
object encoding w1
object freq x
memory usage nosuch
wait 0 0
function flush
zadd w2 1 a
zrange w2 0 -1
rename w1 w3
rename w1 a
nosuch
get
dbsize
multi
get a
set w5 1
exec
echo x
acl nosuch
acl getuser nosuch
acl cat nosuch
watch w1 a
reset
ping
quit
";

fn line(line: &str) -> Vec<u8> {
    encoded(&line.split(' ').map(|word| word.as_bytes().to_vec()).collect())
}

/// Redis takes a user's rules by a command.
fn tell_redis(server: &Redis) -> redis::Client {
    let mut client = server.connect();
    let users = USERS.lines().filter(|line| line.starts_with("user ")).collect::<Vec<_>>();
    for user in users.into_iter().rev() {
        let rules = user.strip_prefix("user ").expect("it begins so");
        let reset = rules.replacen(' ', " reset ", 1);
        let told = client.ask(&line(&format!("acl setuser {reset}")), 1);
        assert_eq!(told, [Answer::Status(b"OK".to_vec())], "{user}");
    }
    client
}

#[test]
fn users_may_do_what_they_may_with_redis() {
    let Some(server) = Redis::start("users") else { return };
    tell_redis(&server);
    let users = Users::parse(USERS).expect("it is right");
    assert!(!users.are_open());
    Reactor::new(None).run(async {
        let door = ours::door_for(users).await;
        for who in WHO.trim().lines() {
            let mut theirs = server.connect();
            let mut ours = ours::Client::connect(&door, 1);
            for asked in std::iter::once(who).chain(WHAT.trim().lines()) {
                let (a, b) = (theirs.ask(&line(asked), 1), ours.ask(&line(asked), 1).await);
                let is_map = matches!(a[0], Answer::Map(_));
                // Which server it is differs.
                let tells_of_itself =
                    asked.starts_with("hello") && !matches!(a[0], Answer::Error(_));
                if tells_of_itself {
                    assert_eq!(is_map, matches!(b[0], Answer::Map(_)), "{who}: {asked}");
                } else {
                    assert_eq!(a, b, "{who}: {asked}");
                }
            }
        }
    });
}

/// Redis asks for the right to CLIENT KILL alone.
#[test]
fn connections_of_others_are_ended_by_who_runs_the_server() {
    Reactor::new(None).run(async {
        let door = ours::door_for(Users::parse(USERS).expect("it is right")).await;
        let (mut writer, mut all) =
            (ours::Client::connect(&door, 1), ours::Client::connect(&door, 2));
        let kill = "client kill type normal";
        let told = writer.ask(&[line("auth writer two"), line(kill)].concat(), 2).await;
        let refused = "NOPERM this user has no permissions to run the 'client|kill' command";
        assert_eq!(told[1].to_string(), refused);
        let told = all.ask(&[line("auth secret"), line(kill)].concat(), 2).await;
        assert_eq!(told[1], Answer::Integer(1));
    });
}

#[test]
fn a_stranger_may_not_make_the_server_hold_much() {
    let Some(server) = Redis::start("strangers") else { return };
    tell_redis(&server);
    Reactor::new(None).run(async {
        let door = ours::door_for(Users::parse(USERS).expect("it is right")).await;
        let words = |count: usize| format!("*{count}\r\n{}", "$1\r\nx\r\n".repeat(count));
        let long = |len: usize| format!("*1\r\n${len}\r\n{}\r\n", "x".repeat(len));
        for sent in [words(10), "*11\r\n".to_owned(), long(16_384), "*1\r\n$16385\r\n".to_owned()] {
            let (mut theirs, mut ours) = (server.connect(), ours::Client::connect(&door, 1));
            let bytes = sent.into_bytes();
            assert_eq!(theirs.ask(&bytes, 1), ours.ask(&bytes, 1).await);
        }
        // An authenticated client may.
        let (mut theirs, mut ours) = (server.connect(), ours::Client::connect(&door, 1));
        let bytes = [line("auth bob pw"), words(11).into_bytes()].concat();
        assert_eq!(theirs.ask(&bytes, 2), ours.ask(&bytes, 2).await);
    });
}

#[test]
fn what_is_no_user_is_said_with_its_line() {
    for (text, sentence) in [
        ("user", "line 1 is not of the form"),
        ("\nuser a on\nuse b", "line 3 is not of the form"),
        ("user a on #12", "which is not # and 64 hexadecimal digits"),
        ("user a +nosuch", "there is no such command"),
        ("user a +@nosuch", "no category is \"nosuch\""),
        ("user a +config|get", "name the command alone"),
        ("user a %R~x", "which is no rule here"),
        ("user a db=16", "numbers of databases"),
        ("user a db=", "numbers of databases"),
        ("user a on\nuser a off", "line 2 names \"a\" once more"),
    ] {
        let error = Users::parse(text).expect_err(text).to_string();
        assert!(error.contains(sentence) && error.lines().count() == 1, "{error}");
    }
    assert!(!Users::parse("").expect("no users").are_open(), "each client authenticates");
    assert!(Users::default().are_open());
    assert_eq!(Users::default().without_password(), Some("default"));
    let guest = Users::parse("user guest on nopass").expect("it is right");
    assert_eq!((guest.are_open(), guest.without_password()), (false, Some("guest")));
    let closed = Users::parse("user off off nopass\nuser b on >secret").expect("it is right");
    assert_eq!(closed.without_password(), None);
}

#[test]
fn a_user_has_databases_and_begins_in_the_first() {
    let users = Users::parse("user ann on >pw ~* +@all db=3,5").expect("it is right");
    Reactor::new(None).run(async {
        let door = ours::door_for(users).await;
        let mut ann = ours::Client::connect(&door, 1);
        let mut says = async |asked: &str| ann.ask(&line(asked), 1).await[0].to_string();
        assert_eq!(says("get a").await, "NOAUTH Authentication required.");
        assert_eq!(says("auth ann pw").await, "OK");
        assert_eq!(says("set a 1").await, "OK");
        let no = "NOPERM this user has no permissions to use database 0";
        assert_eq!(says("select 0").await, no);
        assert_eq!(says("copy a a db 0").await, no);
        assert_eq!(says("flushall").await, no);
        assert_eq!(says("copy a a db 5").await, ":1");
        assert_eq!(says("select 5").await, "OK");
        assert_eq!(says("get a").await, "\"1\"");
        assert_eq!(says("reset").await, "RESET");
        assert_eq!(says("get a").await, "NOAUTH Authentication required.");
    });
}
