use super::address::STATUS_PATH;
use super::status::Status;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::header::HOST;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

/// Timeout of a status request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum bytes of a status: some thousand for each of the maximum connections.
const DOCUMENT_BYTES_MAX: usize = 256 << 20;

/// Why a status request failed.
#[derive(Debug, thiserror::Error)]
pub enum NoStatus {
    /// The connection failed.
    #[error(
        "no server answers at {address} ({error}): start kvasir serve with --http, or give its \
         address"
    )]
    Unreachable {
        /// The address of the server.
        address: SocketAddr,
        /// The system's error.
        error: io::Error,
    },
    /// The server accepted the connection and did not answer in time.
    #[error("the server at {0} did not answer within 10 seconds: try again, or another address")]
    Silent(SocketAddr),
    /// The answer does not parse as a status of this version.
    #[error("the server at {address} is not kvasir serve of this version: {reason}")]
    Strange {
        /// The address of the server.
        address: SocketAddr,
        /// The error in the answer.
        reason: String,
    },
    /// The server's reactors did not answer in time.
    #[error("the server at {0} is too busy to report its status")]
    Busy(SocketAddr),
}

/// A blocking client of a server's status service.
#[derive(Debug)]
pub struct Inquirer {
    address: SocketAddr,
    runtime: Runtime,
}

impl Inquirer {
    /// Creates a client of the status service at `address`. Fails if the machine has no file
    /// descriptors left.
    pub fn new(address: SocketAddr) -> io::Result<Self> {
        Ok(Self { address, runtime: Builder::new_current_thread().enable_all().build()? })
    }

    /// Requests the status.
    pub fn ask(&self) -> Result<Status, NoStatus> {
        let asked = async { timeout(TIMEOUT, self.fetch()).await };
        self.runtime.block_on(asked).unwrap_or(Err(NoStatus::Silent(self.address)))
    }

    async fn fetch(&self) -> Result<Status, NoStatus> {
        let address = self.address;
        let stream = TcpStream::connect(address).await;
        let stream = stream.map_err(|error| NoStatus::Unreachable { address, error })?;
        self.request(stream).await
    }

    async fn request(&self, stream: TcpStream) -> Result<Status, NoStatus> {
        let address = self.address;
        let strange = |error: &dyn std::fmt::Display| {
            let reason = error.to_string();
            NoStatus::Strange { address, reason }
        };
        let failed = |error: &hyper::Error| match hung_up(error) {
            Some(error) => NoStatus::Unreachable { address, error },
            None => strange(error),
        };
        let connected = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = connected.map_err(|error| failed(&error))?;
        // The task ends with the request.
        let connection = self.runtime.spawn(connection);
        let request = Request::get(STATUS_PATH).header(HOST, address.to_string());
        let request = request.body(Empty::<Bytes>::new()).expect("all parts of it are right");
        let response = sender.send_request(request).await.map_err(|error| failed(&error))?;
        let status = response.status();
        let body = Limited::new(response.into_body(), DOCUMENT_BYTES_MAX).collect().await;
        connection.abort();
        match status {
            StatusCode::OK => {}
            StatusCode::SERVICE_UNAVAILABLE => return Err(NoStatus::Busy(address)),
            other => return Err(strange(&other)),
        }
        let body = body.map_err(|error| match error.downcast_ref() {
            Some(error) => failed(error),
            None => strange(&error),
        })?;
        let body = body.to_bytes();
        serde_json::from_slice(&body).map_err(|error| strange(&error))
    }
}

/// Returns the system's error of a connection that ended before the whole answer, as at a server
/// that is being stopped. A connection that ended before the request was sent cancels it.
fn hung_up(error: &hyper::Error) -> Option<io::Error> {
    use std::error::Error;
    if error.is_incomplete_message() || error.is_canceled() {
        return Some(io::ErrorKind::UnexpectedEof.into());
    }
    let system: &io::Error = error.source()?.downcast_ref()?;
    Some(io::Error::new(system.kind(), system.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    /// Returns what a client gets from a server that calls `serve` on its connection and closes it.
    fn asked_of(serve: impl FnOnce(TcpStream) + Send + 'static) -> Result<Status, NoStatus> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let inquirer = Inquirer::new(listener.local_addr().unwrap()).unwrap();
        let host = std::thread::spawn(move || serve(listener.accept().unwrap().0));
        let asked = inquirer.ask();
        host.join().unwrap();
        asked
    }

    fn read_request(stream: &mut TcpStream) {
        assert!(stream.read(&mut [0; 1_024]).unwrap() > 0);
    }

    fn assert_unreachable(asked: &Result<Status, NoStatus>) {
        assert!(matches!(asked, Err(NoStatus::Unreachable { .. })), "{asked:?}");
    }

    #[test]
    fn a_connection_that_ends_before_the_answer_means_no_server() {
        assert_unreachable(&asked_of(|mut stream| read_request(&mut stream)));
        // Unread bytes of the request reset the connection.
        assert_unreachable(&asked_of(|mut stream| assert!(stream.read(&mut [0]).unwrap() > 0)));
    }

    #[test]
    fn a_connection_that_ends_before_the_request_means_no_server() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let inquirer = Inquirer::new(address).unwrap();
        let asked = inquirer.runtime.block_on(async {
            let stream = super::TcpStream::connect(address).await.unwrap();
            drop(listener.accept().unwrap());
            // The end is readable.
            stream.readable().await.unwrap();
            inquirer.request(stream).await
        });
        assert_unreachable(&asked);
    }

    #[test]
    fn an_answer_that_ends_early_means_no_server() {
        let asked = asked_of(|mut stream| {
            read_request(&mut stream);
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{").unwrap();
        });
        assert_unreachable(&asked);
    }
}
