use crate::server::{GREETING, settings, with};
use base::Nanos;
use resp_client::{Arg, Error, Reply, Settings};

/// Formats a reply and its content.
fn shown(reply: &Reply) -> String {
    match reply {
        Reply::Status(word) => format!("+{word}"),
        Reply::Error(text) => format!("-{text}"),
        Reply::Integer(number) => format!(":{number}"),
        Reply::Null => "nil".to_owned(),
        Reply::Bulk(value) => format!("\"{}\"", value.bytes().expect("it came").escape_ascii()),
        Reply::Array(members) => {
            format!("[{}]", members.iter().map(shown).collect::<Vec<_>>().join(" "))
        }
    }
}

fn scripted(requests: &[u8], answers: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let parts = [GREETING, (requests, answers)];
    parts.map(|(expected, answer)| (expected.to_vec(), answer.to_vec())).to_vec()
}

#[test]
fn answers_are_understood_in_whatever_pieces_they_come() {
    let long = "v".repeat(100_000);
    let bulk = format!("${}\r\n{long}\r\n", long.len());
    for (answer, expected) in [
        ("+OK\r\n", "+OK".to_owned()),
        ("-ERR no\r\n", "-ERR no".to_owned()),
        (":-9223372036854775808\r\n", format!(":{}", i64::MIN)),
        ("$-1\r\n", "nil".to_owned()),
        ("*-1\r\n", "nil".to_owned()),
        ("*0\r\n", "[]".to_owned()),
        ("$0\r\n\r\n", "\"\"".to_owned()),
        ("$4\r\n\r\n\x00x\r\n", "\"\\r\\n\\x00x\"".to_owned()),
        (&bulk, format!("\"{long}\"")),
        (
            &format!("*3\r\n*2\r\n:1\r\n{bulk}*0\r\n$1\r\nk\r\n"),
            format!("[[:1 \"{long}\"] [] \"k\"]"),
        ),
    ] {
        for seed in 0..20 {
            let script =
                scripted(b"*1\r\n$1\r\nx\r\n*1\r\n$1\r\nx\r\n", answer.repeat(2).as_bytes());
            let expected = expected.clone();
            with(seed, settings(), script, async move |opened| {
                let connection = opened.unwrap();
                let x = [Arg::from("x")];
                let answers = connection.ask_all([&x[..], &x]).await.unwrap();
                for answer in &answers {
                    assert_eq!(shown(answer), expected);
                }
                assert_eq!(answers.len(), 2);
            });
        }
    }
}

#[test]
fn an_invalid_answer_ends_the_connection_and_every_request() {
    let nested = "*1\r\n".repeat(9);
    let line = format!("+{}", "x".repeat(70_000));
    for (answer, words) in [
        ("HTTP/1.1 400 Bad Request\r\n", "an answer begins with 'H'"),
        ("\r\n", "an answer begins with"),
        (":1x\r\n", "a number or a length is none"),
        ("$-2\r\n", "a number or a length is none"),
        ("$536870913\r\n", "a number or a length is none"),
        ("$99999999999999999999\r\n", "a number or a length is none"),
        ("*-2\r\n", "a number or a length is none"),
        ("$2\r\nabc\r\n", "a value does not end where it should"),
        ("$5000\r\n", "the server did not answer within"),
        (&nested, "an answer is too large"),
        (&line, "a line has no end"),
        ("+OK\r\n+OK\r\n+OK\r\n", "it answers what was not asked"),
    ] {
        let script = scripted(b"*1\r\n$1\r\nx\r\n*1\r\n$1\r\nx\r\n", answer.as_bytes());
        with(1, settings(), script, async move |opened| {
            let connection = opened.unwrap();
            let x = [Arg::from("x")];
            let first = connection.ask_all([&x[..], &x]).await;
            // With three answers both requests succeed, and the surplus one ends the connection.
            let error = match first {
                Err(error) => error,
                Ok(_) => connection.ask(&x).await.unwrap_err(),
            };
            assert!(error.to_string().contains(words), "{answer:?}: {error}");
            assert_eq!(connection.ask(&x).await.unwrap_err(), error, "it stays so");
            assert_eq!(connection.failure(), Some(error));
        });
    }
}

#[test]
fn a_client_says_who_it_is_and_which_database_it_wants() {
    let settings = Settings {
        user: Some("ann".to_owned()),
        password: Some("pw".to_owned()),
        database: 7,
        ..settings()
    };
    let script = [
        (&b"*3\r\n$4\r\nAUTH\r\n$3\r\nann\r\n$2\r\npw\r\n"[..], &b"+OK\r\n"[..]),
        (b"*2\r\n$6\r\nSELECT\r\n$1\r\n7\r\n", b"+OK\r\n"),
        GREETING,
    ];
    let script = script.map(|(expected, answer)| (expected.to_vec(), answer.to_vec())).to_vec();
    with(1, settings.clone(), script.clone(), async |opened| assert!(opened.is_ok()));
    let mut refused = script;
    refused[1].1 = b"-ERR DB index is out of range\r\n".to_vec();
    with(1, settings, refused, async |opened| {
        let sentence = opened.unwrap_err().to_string();
        assert_eq!(sentence, "the server refuses SELECT: ERR DB index is out of range");
    });
}

#[test]
fn a_silent_server_times_out_only_while_it_owes_an_answer() {
    with(1, settings(), scripted(b"*1\r\n$1\r\nx\r\n", b""), async |opened| {
        let connection = opened.unwrap();
        clock::sleep(Nanos::from_secs(60), clock::Stage::Core).await;
        assert_eq!(connection.failure(), None, "nothing was asked");
        let asked = clock::now();
        let error = connection.ask(&["x".into()]).await.unwrap_err();
        assert_eq!(error, Error::Silent(Nanos::from_secs(5)));
        assert!(clock::now() - asked <= Nanos::from_secs(10));
    });
}
