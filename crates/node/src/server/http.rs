//! The status service of the server's operator: HTTP, on a thread of its own.
//!
//! A request does not delay the hosts' commands: the thread waits for the reactors, and they never
//! wait for it. It serves few connections at a time, each for one short request, with a timeout.
//! Each page is a line in [`page`].

use super::address::STATUS_PATH;
use super::error::ServerError;
use super::metrics::{METRICS_TYPE, text};
use super::status::Status;
use super::status_service::StatusService;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{sleep, timeout};

/// Path of the same numbers for Prometheus.
const METRICS_PATH: &str = "/metrics";

/// Connections at a time. Others wait until one ends.
const CONNECTIONS_MAX: usize = 8;

/// Maximum bytes of a request; browsers send some hundreds.
const REQUEST_BYTES_MAX: usize = 16 << 10;

/// Timeout of a request's arrival.
const REQUEST_WITHIN: Duration = Duration::from_secs(5);

/// Timeout of a whole connection.
const DONE_WITHIN: Duration = Duration::from_secs(15);

/// Pause before the next accept after the machine had no resources for a connection.
const PAUSE: Duration = Duration::from_millis(10);

/// The service's thread. Dropping it stops the thread.
#[derive(Debug)]
pub(super) struct HttpDoor {
    address: SocketAddr,
    /// Dropped, it ends the thread.
    stop: Option<oneshot::Sender<Infallible>>,
    thread: Option<JoinHandle<()>>,
}

impl HttpDoor {
    /// Binds the listener, before the server has any other part.
    pub(super) fn listen(address: SocketAddr) -> Result<TcpListener, ServerError> {
        let listener = TcpListener::bind(address).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        listener.map_err(|error| ServerError::Listen { address, error })
    }

    /// Serves the clients that connect to `listener`.
    pub(super) fn open(listener: TcpListener, status_service: StatusService) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel::<Infallible>();
        let listener = {
            let _inside = runtime.enter();
            tokio::net::TcpListener::from_std(listener)?
        };
        let thread = Builder::new().name("kvasir-http".to_owned()).spawn(move || {
            runtime.block_on(async {
                tokio::spawn(serve(listener, Arc::new(status_service)));
                // The sender is dropped, never used: this returns an error.
                let _ = stopped.await;
            });
        })?;
        Ok(Self { address, stop: Some(stop), thread: Some(thread) })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for HttpDoor {
    /// Cuts off open connections.
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join)
            && !std::thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

async fn serve(listener: tokio::net::TcpListener, status_service: Arc<StatusService>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let place = places.clone().acquire_owned().await;
        let Ok((stream, _)) = listener.accept().await else {
            sleep(PAUSE).await;
            continue;
        };
        let status_service = status_service.clone();
        tokio::spawn(async move {
            // A slow or malformed connection is closed without an answer.
            let _ = timeout(DONE_WITHIN, connection(stream, &status_service)).await;
            drop(place);
        });
    }
}

async fn connection(stream: TcpStream, status_service: &StatusService) -> Result<(), hyper::Error> {
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_WITHIN)
        .max_buf_size(REQUEST_BYTES_MAX)
        .keep_alive(false)
        .serve_connection(
            TokioIo::new(stream),
            service_fn(|request| answer(request, status_service)),
        )
        .await
}

async fn answer(
    request: Request<Incoming>,
    status_service: &StatusService,
) -> Result<Response<Body>, Infallible> {
    Ok(match *request.method() {
        Method::GET | Method::HEAD => page(request.uri().path(), status_service).await,
        _ => {
            let mut refusal = said(StatusCode::METHOD_NOT_ALLOWED, "only GET is supported\n");
            let headers = refusal.headers_mut();
            headers.insert(ALLOW, "GET, HEAD".parse().expect("it is a header's value"));
            refusal
        }
    })
}

type Body = Full<Bytes>;

async fn page(path: &str, status_service: &StatusService) -> Response<Body> {
    match path {
        STATUS_PATH => {
            let json = |status: &Status| serde_json::to_vec(status);
            let json = |status: &Status| json(status).expect("it has only names as keys");
            shown(status_service, "application/json", json).await
        }
        METRICS_PATH => {
            shown(status_service, METRICS_TYPE, |status| text(status).into_bytes()).await
        }
        _ => said(StatusCode::NOT_FOUND, "not found: use /status or /metrics\n"),
    }
}

/// Returns the status of the server in the form that `form` makes.
async fn shown(
    status_service: &StatusService,
    kind: &'static str,
    form: impl Fn(&Status) -> Vec<u8>,
) -> Response<Body> {
    match status_service.status().await {
        Some(status) => response(StatusCode::OK, kind, form(&status).into()),
        None => said(StatusCode::SERVICE_UNAVAILABLE, "a thread of the server does not answer\n"),
    }
}

fn said(status: StatusCode, sentence: &'static str) -> Response<Body> {
    response(status, "text/plain", Bytes::from_static(sentence.as_bytes()))
}

fn response(status: StatusCode, kind: &'static str, body: Bytes) -> Response<Body> {
    let response = Response::builder().status(status).header(CONTENT_TYPE, kind);
    let response = response.header(CACHE_CONTROL, "no-store").body(Full::new(body));
    response.expect("all parts of it are right")
}
