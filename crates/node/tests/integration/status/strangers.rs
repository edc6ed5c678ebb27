//! HTTP clients whose requests are slow, too long or malformed.

use crate::status::guest::{Guest, Load, Visit};
use crate::status::scene::{PAIRS, Scene};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

const HOST: &str = "nqn.2026-11.com.example:host";
const LOAD: Load = Load::Pairs { stores: 5, retrieves: 5, missing: 0, len: 9 };

/// Sends `bytes` and returns all that the server sends until it closes the connection.
fn say(http: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(http).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    // It need not take all of that.
    let _ = stream.write_all(bytes);
    let mut heard = Vec::new();
    // One that is reset is over too.
    let _ = stream.read_to_end(&mut heard);
    String::from_utf8_lossy(&heard).into_owned()
}

#[test]
fn there_is_one_page_and_nothing_can_be_changed() {
    let scene = Scene::new(1);
    let ask = |line: &str| say(scene.http(), format!("{line}\r\nHost: x\r\n\r\n").as_bytes());
    let (head, body) = {
        let answer = ask("GET /status HTTP/1.1");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.to_owned(), body.to_owned())
    };
    assert!(head.starts_with("HTTP/1.1 200 ") && head.contains("application/json"), "{head}");
    let document: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(document["devices"][0]["name"], "pairs");
    assert_eq!(document["server"]["connections"], 0);
    let only_head = ask("HEAD /status HTTP/1.1");
    assert!(only_head.starts_with("HTTP/1.1 200 ") && only_head.ends_with("\r\n\r\n"));
    assert!(ask("GET / HTTP/1.1").starts_with("HTTP/1.1 404 "));
    let refused = ask("POST /status HTTP/1.1");
    assert!(refused.starts_with("HTTP/1.1 405 ") && refused.contains("allow: GET, HEAD\r\n"));
    scene.server.stop().unwrap();
}

#[test]
fn garbage_and_requests_without_an_end_are_cut_off() {
    let scene = Scene::new(2);
    for garbage in [&b"\x16\x03\x01\x02\x00\x01\x00"[..], b"hello\r\n\r\n", &[0xff; 4_000]] {
        let answer = say(scene.http(), garbage);
        assert!(!answer.contains(" 200 "), "{answer}");
    }
    // As long as a header may be, and far more.
    let endless = format!("GET /status HTTP/1.1\r\nX: {}", "x".repeat(4 << 20));
    let start = Instant::now();
    assert!(!say(scene.http(), endless.as_bytes()).contains(" 200 "));
    assert!(start.elapsed() < Duration::from_secs(4), "it is not waited for the rest");
    assert_eq!(scene.status().server.connections, 0, "the server counts hosts, not HTTP clients");
    scene.server.stop().unwrap();
}

/// Silent clients occupy all connection slots until their timeout.
#[test]
fn silent_http_clients_delay_other_http_clients_only() {
    let scene = Scene::new(2);
    let before = scene.status();
    let mut silent: Vec<TcpStream> =
        (0..12).map(|_| TcpStream::connect(scene.http()).unwrap()).collect();
    // One says a little, now and then.
    silent[0].write_all(b"GET /sta").unwrap();
    let start = Instant::now();
    let visit = Visit { address: scene.address(), subsystem: PAIRS, host: HOST, queues: 1 };
    let guest = Guest::come(visit, LOAD);
    assert!(start.elapsed() < Duration::from_secs(3), "a host is served at once");
    let status = scene.status();
    assert!(status.server.uptime_ns > before.server.uptime_ns);
    assert_eq!(status.devices[0].work.commands, 10);
    guest.leave();
    let stopping = Instant::now();
    scene.server.stop().unwrap();
    assert!(stopping.elapsed() < Duration::from_secs(3), "silent clients delay no stop");
}

/// A reactor is asked no more often than ten times in a second.
#[test]
fn a_repeated_request_gets_the_cached_answer() {
    let scene = Scene::new(1);
    let start = Instant::now();
    let mut told: Vec<u64> = Vec::new();
    while start.elapsed() < Duration::from_secs(1) {
        told.push(scene.status().server.uptime_ns);
    }
    assert!(told.is_sorted());
    let asked = told.len();
    told.dedup();
    assert!(asked > 20 && told.len() <= 11, "{} of {asked}", told.len());
    scene.server.stop().unwrap();
}
