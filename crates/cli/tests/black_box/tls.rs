//! `kvasir serve --resp-tls`: clients of the Redis protocol over TLS, ours and others.

use crate::authority::Authority;
use crate::moving::{moved, totals};
use crate::program::{Ran, json, kvasir};
use crate::redis::{Client, target};
use crate::serving::Serving;
use rustix::process::Signal;
use std::env;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The words that have a server show what `authority` has signed, and others as it has.
fn served(authority: &Authority, more: &[&str]) -> Serving {
    let (certificate, key) = (authority.path("server.crt"), authority.path("server.key"));
    let words = ["--device", "mem:64MiB", "--clock", "none", "--resp-tls", ":0"];
    let files = ["--resp-tls-cert", &certificate, "--resp-tls-key", &key];
    Serving::start(words.iter().chain(&files).chain(more))
}

/// The host and the port of a server's door over TLS.
fn address(served: &Serving) -> String {
    let uri = served.ready["devices"][0]["resp_tls"].as_str().expect("it has such a door");
    uri.strip_prefix("rediss://").expect("a URI of that protocol").to_owned()
}

/// A target over TLS, with the client's certificate if it `shows` it.
fn rediss(served: &Serving, authority: &Authority, database: u32, shows: bool) -> String {
    let path = |name: &str| authority.path(name);
    let uri = format!("rediss://{}/{database}?ca={}", address(served), path("ca.crt"));
    if !shows {
        return uri;
    }
    format!("{uri}&cert={}&key={}", path("client.crt"), path("client.key"))
}

/// Starts a program of others with its input from here; nothing if it is not there, and need not.
fn other(program: &str, arguments: &[&str]) -> Option<Child> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    match command.spawn() {
        Ok(child) => Some(child),
        Err(_) => {
            let is_required = env::var("REQUIRE_REDIS").is_ok_and(|value| value == "1");
            assert!(!is_required, "REQUIRE_REDIS=1, and there is no {program}");
            eprintln!("skipped: no {program} on the path");
            None
        }
    }
}

/// What it says when it has been told `input`, on both ways.
fn said(child: Child, input: &[u8]) -> String {
    let mut child = child;
    let mut stdin = child.stdin.take().expect("it is ours");
    let input = input.to_vec();
    let telling = std::thread::spawn(move || {
        // One that is refused may not listen.
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().expect("it ends");
    telling.join().expect("it was told");
    let both = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&both).into_owned()
}

/// What Debian's redis-cli says over TLS, to a server that demands the files of `shown` of it.
fn redis_cli(
    served: &Serving,
    (trusted, shown): (&Authority, Option<&Authority>),
    words: &[&str],
    input: &[u8],
) -> Option<String> {
    let (address, ca) = (address(served), trusted.path("ca.crt"));
    let port = address.rsplit(':').next().expect("a port").to_owned();
    let mut arguments = vec!["-h", "127.0.0.1", "-p", &port, "--tls", "--cacert", &ca];
    let own = shown.map(|shown| [shown.path("client.crt"), shown.path("client.key")]);
    if let Some([certificate, key]) = &own {
        arguments.extend(["--cert", certificate, "--key", key]);
    }
    arguments.extend(words);
    Some(said(other("redis-cli", &arguments)?, input))
}

#[test]
fn redis_cli_comes_in_over_tls_with_a_certificate_and_not_without() {
    let (ours, others) = (Authority::new(), Authority::new());
    let ca = ours.path("ca.crt");
    let served = served(&ours, &["--resp", ":0", "--resp-tls-clients", &ca]);
    let both = (&ours, Some(&ours));
    let Some(answer) = redis_cli(&served, both, &["set", "name", "value"], b"") else { return };
    assert_eq!(answer.trim(), "OK");
    Client::of(&served).says("get name", "value");
    let great = vec![b'v'; 2 << 20];
    assert_eq!(redis_cli(&served, both, &["-x", "set", "great"], &great).unwrap().trim(), "OK");
    let back = redis_cli(&served, both, &["get", "great"], b"").unwrap();
    assert!(back.trim_end().as_bytes() == great);
    for who in [(&ours, None), (&ours, Some(&others)), (&others, Some(&ours))] {
        let answer = redis_cli(&served, who, &["get", "name"], b"").unwrap();
        assert!(!answer.contains("value"), "{answer}");
    }
    // Another implementation, at the oldest version that there is.
    let address = address(&served);
    let (own, key) = (ours.path("client.crt"), ours.path("client.key"));
    for version in ["-tls1_2", "-tls1_3"] {
        let words = ["s_client", "-connect", &address, "-CAfile", &ca, "-cert", &own, "-key", &key];
        let words = [&words[..], &["-verify_return_error", "-quiet", version]].concat();
        let Some(child) = other("openssl", &words) else { return };
        let answer = said(child, b"GET name\r\nQUIT\r\n");
        assert!(answer.contains("value") && answer.contains("+OK"), "{version}: {answer}");
    }
    let words = ["s_client", "-connect", &address, "-tls1_1"];
    let answer = said(other("openssl", &words).unwrap(), b"GET name\r\nQUIT\r\n");
    assert!(!answer.contains("+OK"), "{answer}");
    // Who does not speak TLS is let go at once, and others stay.
    let mut plain = TcpStream::connect(&address).expect("it listens");
    plain.set_read_timeout(Some(Duration::from_mins(1))).expect("it can be set");
    plain.write_all(b"GET name\r\n").expect("it listens");
    let mut come = Vec::new();
    let _ = plain.read_to_end(&mut come);
    assert!(!come.windows(5).any(|part| part == b"value"));
    assert_eq!(redis_cli(&served, both, &["ping"], b"").unwrap().trim(), "PONG");
    served.stop();
}

#[test]
fn export_import_and_bench_work_over_tls() {
    let authority = Authority::new();
    let ca = authority.path("ca.crt");
    let from = served(&authority, &["--resp-tls-clients", &ca]);
    let to = served(&authority, &["--resp", ":0"]);
    let (from_uri, to_uri) =
        (rediss(&from, &authority, 2, true), rediss(&to, &authority, 3, false));
    let load = ["bench", "store", "--ops", "500", "--value-size", "uniform:0-64KiB", "--json"];
    let report = json(load.iter().chain(&["--target", &from_uri.replace('?', "?connections=2&")]));
    assert_eq!((&report["errors"], &report["connections"]), (&0.into(), &2.into()), "{report}");
    let [first, second] = ["first", "second"].map(|name| authority.folder.path().join(name));
    let exported = moved("export", &first, &from_uri);
    assert_eq!(exported["keys"], 500, "{exported}");
    moved("import", &first, &to_uri);
    // By the other door of the same server.
    let again = moved("export", &second, &format!("{}/3", target(&to)));
    assert_eq!(totals(&again), totals(&exported));

    let refused = |target: &str, sentence: &str| {
        let Ran { code, stderr, .. } = kvasir(["bench", "retrieve", "--target", target]);
        assert!(code != Some(0) && stderr.contains(sentence), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    };
    refused(&rediss(&from, &authority, 2, false), "who connects has to show a certificate");
    refused(&format!("rediss://{}/2", address(&from)), "names the file with the CA");
    let other = Authority::new();
    refused(&rediss(&to, &other, 2, false), "is not signed by the CA that was given");
    let plain = target(&to).strip_prefix("resp://").expect("a URI").to_owned();
    refused(&format!("rediss://{plain}/2?ca={ca}"), "the other end does not speak TLS");
    refused(&format!("rediss://{plain}/2?ca={ca}.none"), "ca.crt.none cannot be read");
    refused(&format!("resp://{}/2", address(&to)), "the server");
    let named = rediss(&to, &authority, 0, false).replace("127.0.0.1", "localhost");
    refused(&named, "is that of another name or address");
    from.stop();
    to.stop();
}

#[test]
fn files_of_tls_that_are_wrong_end_the_start_in_a_sentence() {
    let authority = Authority::new();
    authority.sign("old", (2001, 2002));
    let path = |name: &str| authority.path(name);
    fs::write(path("prose"), "no certificate\n").expect("it is written");
    let door = |address: &str, cert: &str, key: &str, more: &[&str]| {
        let words = ["serve", "--device", "mem:64MiB", "--resp-tls", address];
        let files = ["--resp-tls-cert", &path(cert), "--resp-tls-key", &path(key)];
        kvasir(words.iter().chain(&files).chain(more))
    };
    let (clients, prose) = (path("server.key"), path("prose"));
    for (ran, sentence) in [
        (door(":0", "none", "server.key", &[]), "none cannot be read: No such file"),
        (door(":0", "prose", "server.key", &[]), "prose has no certificate in PEM"),
        (door(":0", "server.crt", "prose", &[]), "prose has no private key in PEM"),
        (door(":0", "server.crt", "client.key", &[]), "client.key has a key that is not the one"),
        (door(":0", "old.crt", "old.key", &[]), "old.crt has a certificate that has expired"),
        (
            door(":0", "server.crt", "server.key", &["--resp-tls-clients", &clients]),
            "server.key has no certificate in PEM",
        ),
        (door("0.0.0.0:0", "server.crt", "server.key", &[]), "or --resp-tls-clients the CA of"),
        (
            kvasir(["serve", "--device", "mem:64MiB", "--resp-tls", ":0"]),
            "not provided: --resp-tls-cert <FILE> --resp-tls-key <FILE>",
        ),
        (
            kvasir(["serve", "--device", "mem:64MiB", "--resp", ":0", "--resp-tls-key", &prose]),
            "--resp-tls <ADDR>",
        ),
    ] {
        let Ran { code, stderr, .. } = ran;
        assert_eq!((code, stderr.lines().count()), (Some(2), 1), "{stderr}");
        assert!(stderr.contains(sentence), "{sentence}: {stderr}");
    }
    // Those who show certificates may come from anywhere.
    let ca = path("ca.crt");
    let words = ["--device", "mem:64MiB", "--resp-tls", "0.0.0.0:0", "--resp-tls-clients", &ca];
    let (cert, key) = (path("server.crt"), path("server.key"));
    let files = ["--resp-tls-cert", &cert, "--resp-tls-key", &key];
    Serving::start(words.iter().chain(&files)).stop();
}

#[test]
fn the_certificates_of_the_guide_are_taken() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/redis.md");
    let page = fs::read_to_string(page).expect("it is there");
    let commands = page.lines().filter_map(|line| line.strip_prefix("    openssl "));
    let folder = tempfile::tempdir().expect("a folder");
    let mut count = 0;
    for command in commands {
        let words = format!("cd '{}' && openssl {command}", folder.path().display());
        let Some(openssl) = other("openssl", &["version"]) else { return };
        said(openssl, b"");
        let output = Command::new("sh").args(["-c", &words]).output().expect("there is a shell");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{command}: {errors}");
        count += 1;
    }
    assert_eq!(count, 3, "a CA, a server and a client");
    let path = |name: &str| folder.path().join(name).to_str().expect("a name of ours").to_owned();
    let [ca, cert, key] = ["ca.crt", "server.crt", "server.key"].map(path);
    let words = ["--device", "mem:64MiB", "--resp-tls", ":0", "--resp-tls-clients", &ca];
    let files = ["--resp-tls-cert", &cert, "--resp-tls-key", &key];
    let served = Serving::start(words.iter().chain(&files));
    let (cert, key) = (path("client.crt"), path("client.key"));
    for host in ["127.0.0.1", "localhost"] {
        let address = address(&served).replace("127.0.0.1", host);
        let target = format!("rediss://{address}/0?ca={ca}&cert={cert}&key={key}");
        json(["bench", "store", "--ops", "9", "--json", "--target", &target]);
    }
    served.stop();
}

#[test]
fn an_unfinished_handshake_uses_a_connection_and_does_not_delay_the_stop() {
    let authority = Authority::new();
    let file = format!("{FILE}[limits]\nconnections = 1\n");
    let served = Serving::with_file(authority.folder.path(), &file);
    let target = rediss(&served, &authority, 0, false);
    let mut silent = TcpStream::connect(address(&served)).expect("it listens");
    // Half of the head of a record.
    silent.write_all(&[22, 3]).expect("it listens");
    sleep(Duration::from_millis(100));
    let load = ["bench", "store", "--ops", "9", "--json", "--target", &target];
    let Ran { code, stderr, .. } = kvasir(load);
    assert!(code != Some(0) && stderr.contains("the other end left"), "{stderr}");
    drop(silent);
    let started = Instant::now();
    while kvasir(load).code != Some(0) {
        assert!(started.elapsed() < Duration::from_mins(1), "its place is free again");
    }
    let _silent = TcpStream::connect(address(&served)).expect("it listens");
    // Give the server time to accept it.
    sleep(Duration::from_millis(100));
    let started = Instant::now();
    let stopped = served.stop();
    assert!(started.elapsed() < Duration::from_secs(5), "the stop does not wait for a handshake");
    assert!(stopped["connections_refused"].as_u64() > Some(0), "{stopped}");
}

/// A file of a server over TLS.
const FILE: &str = "\
[server]
nvme_tcp = [\"127.0.0.1:0\"]
[[device]]
name = \"device\"
device = \"mem:64MiB\"
resp_tls = \":0\"
resp_tls_cert = \"server.crt\"
resp_tls_key = \"server.key\"
[[subsystem]]
device = \"device\"
";

#[test]
fn renewed_certificates_are_shown_from_the_signal_on_and_bad_ones_never() {
    let (authority, later) = (Authority::new(), Authority::new());
    let folder = authority.folder.path();
    let served = Serving::with_file(folder, FILE);
    let [before, after] = [&authority, &later].map(|of| rediss(&served, of, 0, false));
    let reaches = |target: &str| {
        let ran = kvasir(["bench", "store", "--ops", "9", "--json", "--target", target]);
        ran.code == Some(0)
    };
    assert!(reaches(&before) && !reaches(&after));
    let read_again = || {
        served.signal(Signal::HUP);
        served.error_line()
    };
    let renew = |certificate: &str, key: &str| {
        fs::copy(later.path(certificate), authority.path("server.crt")).expect("it is copied");
        fs::copy(later.path(key), authority.path("server.key")).expect("it is copied");
    };
    let check = || {
        let path = authority.path("server.toml");
        kvasir(["serve", "--config", &path, "--check"])
    };
    later.sign("old", (2001, 2002));
    for (certificate, key, problem) in [
        ("server.crt", "client.key", "server.key has a key that is not the one"),
        ("old.crt", "old.key", "server.crt has a certificate that has expired"),
    ] {
        renew(certificate, key);
        let sentence = read_again();
        assert!(sentence.contains(problem), "{sentence}");
        assert!(sentence.ends_with("; nothing was reloaded"), "{sentence}");
        assert!(reaches(&before) && !reaches(&after));
        let Ran { code, stderr, .. } = check();
        assert_eq!((code, stderr.lines().count()), (Some(2), 1), "{stderr}");
        assert!(stderr.contains(problem), "{stderr}");
    }
    renew("server.crt", "server.key");
    let checked = check();
    assert_eq!((checked.code, &checked.stderr[..]), (Some(0), ""));
    assert!(checked.stdout.contains("rediss://127.0.0.1:0"), "{}", checked.stdout);
    let said = read_again();
    assert!(said.starts_with("kvasir: reloaded "), "{said}");
    assert!(reaches(&after) && !reaches(&before));
    served.stop();
}
