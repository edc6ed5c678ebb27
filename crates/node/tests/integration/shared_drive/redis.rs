//! Redis clients of one drive, in several reactors.

use crate::shared_drive::peer::Peer;
use crate::shared_drive::scene::{File, Scene, serve_memory};
use spec::Status;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

const REACTORS: u16 = 3;
const CLIENTS: u32 = 6;

pub(crate) struct Client(BufReader<TcpStream>);

impl Client {
    pub(crate) fn of(scene: &Scene) -> Self {
        Self::to(scene.server.resp_address(0).unwrap())
    }

    pub(crate) fn to(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut client = Self(BufReader::new(stream));
        assert_eq!(client.ask("PING"), "+PONG");
        client
    }

    /// Sends a line, and returns the first line of the answer.
    pub(crate) fn ask(&mut self, line: &str) -> String {
        self.0.get_mut().write_all(format!("{line}\r\n").as_bytes()).unwrap();
        self.line()
    }

    /// Sends `requests`, and returns the first line of the next answer. `None`: the connection has
    /// ended.
    pub(crate) fn try_ask(&mut self, requests: &str) -> Option<String> {
        self.0.get_mut().write_all(requests.as_bytes()).ok()?;
        let mut line = String::new();
        match self.0.read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => Some(line.trim_end().to_owned()),
            Err(error) => {
                assert_ne!(error.kind(), ErrorKind::WouldBlock, "no answer to {requests}");
                None
            }
        }
    }

    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Returns a value.
    pub(crate) fn get(&mut self, key: &str) -> Option<String> {
        let len = self.ask(&format!("GET {key}"));
        assert!(len.starts_with('$'), "{len}");
        (len != "$-1").then(|| self.line())
    }
}

fn scenes() -> [Scene; 2] {
    [File::formatted().serve(REACTORS), serve_memory(REACTORS)]
}

fn clients(scene: &Scene) -> Vec<Client> {
    (0..CLIENTS).map(|_| Client::of(scene)).collect()
}

#[test]
fn each_reactor_has_clients_and_hosts_that_see_the_same_keys() {
    for scene in scenes() {
        let mut clients = clients(&scene);
        let (_admin, controller) = Peer::admin(scene.address(), 0);
        let queues: Vec<_> = (1..=3).map(|id| Peer::io(scene.address(), controller, id)).collect();
        for number in 0..clients.len() {
            let (key, value) = (format!("key{number}"), format!("value{number}"));
            assert_eq!(clients[number].ask(&format!("SET {key} {value}")), "+OK");
            for other in &mut clients {
                assert_eq!(other.get(&key).as_deref(), Some(&value[..]));
            }
            assert!(queues.iter().all(|queue| queue.exists(key.as_bytes())));
        }
        assert_eq!(queues[0].store(b"key1", b"new"), Some(Status::SUCCESS));
        assert!(clients.iter_mut().all(|client| client.get("key1").as_deref() == Some("new")));
        let status = scene.status();
        let here: Vec<u64> = status.reactors.iter().map(|it| it.redis_clients).collect();
        assert_eq!(here, [2, 2, 2]);
        assert_eq!(status.devices[0].redis.as_ref().unwrap().clients, u64::from(CLIENTS));
        scene.server.stop().unwrap();
    }
}

/// Commands that read and write one key are steps, whichever reactors execute them.
#[test]
fn counters_that_all_reactors_add_to_lose_nothing() {
    const ROUNDS: u32 = 100;
    for scene in scenes() {
        let threads = clients(&scene).into_iter().map(|mut client| {
            thread::spawn(move || {
                for round in 0..ROUNDS {
                    assert!(client.ask("INCR sum").starts_with(':'));
                    assert!(client.ask("HINCRBY hash field 2").starts_with(':'));
                    for line in ["MULTI", "INCR first", "INCR second", "EXEC"] {
                        let answer = client.ask(line);
                        assert!(["+OK", "+QUEUED", "*2"].contains(&&answer[..]), "{answer}");
                    }
                    let (first, second) = (client.line(), client.line());
                    assert_eq!(first, second, "both were added to in one step, in round {round}");
                }
            })
        });
        for thread in threads.collect::<Vec<_>>() {
            thread.join().unwrap();
        }
        let mut client = Client::of(&scene);
        for key in ["sum", "first", "second"] {
            assert_eq!(client.get(key), Some((CLIENTS * ROUNDS).to_string()), "{key}");
        }
        assert_eq!(client.ask("HGET hash field"), "$4");
        assert_eq!(client.line(), (2 * CLIENTS * ROUNDS).to_string());
        scene.server.stop().unwrap();
    }
}

#[test]
fn a_watch_sees_what_a_client_of_another_reactor_does() {
    for scene in scenes() {
        let mut clients = clients(&scene);
        for number in 1..clients.len() {
            assert_eq!(clients[0].ask("WATCH key"), "+OK");
            assert_eq!(clients[0].ask("MULTI"), "+OK");
            assert_eq!(clients[0].ask("SET key mine"), "+QUEUED");
            assert_eq!(clients[number].ask(&format!("SET key {number}")), "+OK");
            assert_eq!(clients[0].ask("EXEC"), "*-1");
            assert_eq!(clients[0].get("key"), Some(number.to_string()));
        }
        scene.server.stop().unwrap();
    }
}

#[test]
fn a_client_of_another_reactor_is_ended_by_its_id() {
    for scene in scenes() {
        let mut clients = clients(&scene);
        let ids: Vec<String> =
            clients.iter_mut().map(|it| it.ask("CLIENT ID").split_off(1)).collect();
        for id in &ids[1..] {
            assert_eq!(clients[0].ask(&format!("CLIENT KILL ID {id}")), ":1");
        }
        for client in &mut clients[1..] {
            assert_eq!(client.0.read_to_end(&mut Vec::new()).unwrap(), 0, "it is closed");
        }
        assert_eq!(clients[0].ask("PING"), "+PONG");
        scene.server.stop().unwrap();
    }
}
