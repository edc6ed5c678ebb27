use crate::server::{GREETING, settings, with};
use base::{Buf, Key};
use controller::{Queue, Submission};
use resp_client::RespQueue;
use spec::{Command, Status, StoreOptions};

/// A command with its request, the server's answer, and its completion.
struct Case {
    submission: Submission,
    request: &'static str,
    answer: &'static str,
    ends: (Status, u64, &'static [u8]),
}

fn named(bytes: &[u8]) -> Key {
    Key::new(bytes).expect("it is one")
}

fn cases() -> Vec<Case> {
    let (key, long) = (named(b"k"), named(&[b'l'; 20]));
    let store = |options| {
        let command = Command::store(1, b"k", 2, options);
        Submission::with_data(command, &key, Buf::copy_from(b"vv"))
    };
    let retrieve = |room| Submission::new(Command::retrieve(1, b"k", room), &key);
    let set = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2\r\nvv\r\n";
    let get = "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n";
    let case = |submission, request, answer, ends| Case { submission, request, answer, ends };
    let ended = |status| (status, 0, &b""[..]);
    vec![
        case(store(StoreOptions::NONE), set, "+OK\r\n", ended(Status::SUCCESS)),
        case(store(StoreOptions::NONE), set, "-OOM full\r\n", ended(Status::INTERNAL_ERROR)),
        case(
            store(StoreOptions::MUST_EXIST),
            "*4\r\n$3\r\nSET\r\n$1\r\nk\r\n$2\r\nvv\r\n$2\r\nXX\r\n",
            "$-1\r\n",
            ended(Status::KEY_DOES_NOT_EXIST),
        ),
        case(
            store(StoreOptions::MUST_NOT_EXIST),
            "*4\r\n$3\r\nSET\r\n$1\r\nk\r\n$2\r\nvv\r\n$2\r\nNX\r\n",
            "$-1\r\n",
            ended(Status::KEY_EXISTS),
        ),
        case(retrieve(100), get, "$3\r\nabc\r\n", (Status::SUCCESS, 3, b"abc")),
        case(retrieve(2), get, "$3\r\nabc\r\n", (Status::SUCCESS, 3, b"ab")),
        case(retrieve(2), get, "$-1\r\n", ended(Status::KEY_DOES_NOT_EXIST)),
        case(
            Submission::new(Command::retrieve(1, long.as_bytes(), 9), &long),
            "*2\r\n$3\r\nGET\r\n$20\r\nllllllllllllllllllll\r\n",
            "$0\r\n\r\n",
            ended(Status::SUCCESS),
        ),
        case(
            Submission::new(Command::delete(1, b"k"), &key),
            "*2\r\n$3\r\nDEL\r\n$1\r\nk\r\n",
            ":1\r\n",
            ended(Status::SUCCESS),
        ),
        case(
            Submission::new(Command::exist(1, b"k"), &key),
            "*2\r\n$6\r\nEXISTS\r\n$1\r\nk\r\n",
            ":0\r\n",
            ended(Status::KEY_DOES_NOT_EXIST),
        ),
        case(
            Submission::new(Command::list(1, b"k", 9), &key),
            "",
            "",
            ended(Status::INVALID_OPCODE),
        ),
    ]
}

#[test]
fn commands_are_requests_and_their_answers_completions() {
    for Case { submission, request, answer, ends } in cases() {
        let parts = [GREETING, (request.as_bytes(), answer.as_bytes())];
        let script = parts.map(|(expected, answer)| (expected.to_vec(), answer.to_vec())).to_vec();
        with(1, settings(), script, async move |opened| {
            let queue = RespQueue::new(vec![opened.unwrap()]);
            let number = queue.submit(submission);
            let completion = queue.next().await;
            let data = completion.data.bytes().unwrap_or_default();
            assert_eq!((completion.id, completion.status), (number, ends.0), "{request}");
            assert_eq!((completion.result, data), (ends.1, ends.2), "{request}");
            let refusal = answer.starts_with('-').then(|| "OOM full".to_owned());
            assert_eq!(queue.refusal(), refusal);
        });
    }
}

#[test]
fn outstanding_commands_of_an_ended_connection_complete_with_a_path_error() {
    let script = vec![(GREETING.0.to_vec(), GREETING.1.to_vec())];
    with(1, settings(), script, async |opened| {
        let queue = RespQueue::new(vec![opened.unwrap()]);
        let key = named(b"k");
        for _ in 0..2 {
            queue.submit(Submission::new(Command::exist(1, b"k"), &key));
        }
        queue.close();
        queue.submit(Submission::new(Command::exist(1, b"k"), &key));
        for number in 0..3 {
            let completion = queue.next().await;
            let expected = (number, Status::HOST_PATHING_ERROR);
            assert_eq!((completion.id, completion.status), expected);
        }
    });
}
