use super::answer::Answer;
use super::generate::encoded;
use super::host_command::ask_all;
use super::request::{Reply, Request};
use crate::shared_drive::peer::Peer;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Longer than any reply takes on a busy machine: a server that does not answer must fail.
const TIMEOUT: Duration = Duration::from_mins(1);

/// A connection to a server.
pub(crate) enum Client {
    Redis(RedisClient),
    Host(Peer),
}

impl Client {
    /// Sends all requests before it reads, and returns their replies in order.
    pub(crate) fn ask(&mut self, requests: &[Request]) -> Vec<Reply> {
        match self {
            Self::Redis(client) => client.ask(requests).into_iter().map(Reply::Redis).collect(),
            Self::Host(peer) => {
                let commands: Vec<_> = requests.iter().map(Request::host_command).collect();
                ask_all(peer, &commands)
            }
        }
    }
}

/// A connection of the Redis protocol.
pub(crate) struct RedisClient {
    stream: TcpStream,
    received: Vec<u8>,
}

impl RedisClient {
    /// Connects, and returns when a reactor serves the connection.
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut client = Self { stream, received: Vec::new() };
        let pong = client.ask(&[Request::line("ping")]);
        assert_eq!(pong, [Answer::Status(b"PONG".to_vec())]);
        client
    }

    fn ask(&mut self, requests: &[Request]) -> Vec<Answer> {
        let bytes: Vec<u8> = requests.iter().flat_map(|it| encoded(it.words())).collect();
        self.stream.write_all(&bytes).unwrap();
        let (mut answers, mut part) = (Vec::new(), vec![0; 1 << 16]);
        while let Some(request) = requests.get(answers.len()) {
            match Answer::parse(&self.received) {
                Some((answer, len)) => {
                    self.received.drain(..len);
                    answers.push(answer);
                }
                None => {
                    let len = match self.stream.read(&mut part) {
                        // This thread has formatted drives: the end of that ring may interrupt it.
                        Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                        len => len.unwrap_or_else(|error| panic!("no reply to {request}: {error}")),
                    };
                    assert!(len > 0, "the server closes the connection before {request}");
                    self.received.extend_from_slice(&part[..len]);
                }
            }
        }
        assert!(self.received.is_empty(), "more replies than requests: {:?}", self.received);
        answers
    }
}
