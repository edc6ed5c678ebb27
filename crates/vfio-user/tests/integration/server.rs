use crate::device::{Device, Log};
use reactor::{Reactor, Remote, UnixListener, UnixStream, stopped};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as Blocking;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use vfio_user::{Ended, MappedDoorbells, serve};

/// A server of one client on a thread of its own.
pub(crate) struct Server {
    thread: JoinHandle<Ended>,
    remote: Remote,
    log: Arc<Mutex<Log>>,
}

/// No step of a test takes as long.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);

impl Server {
    /// Serves one end of a pair of sockets, and returns the other.
    pub(crate) fn start() -> (Self, Blocking) {
        Self::start_with(false)
    }

    /// The same, whose doorbells the client may map.
    pub(crate) fn start_mapped() -> (Self, Blocking) {
        Self::start_with(true)
    }

    fn start_with(are_mapped: bool) -> (Self, Blocking) {
        let (near, client) = pair();
        let server = Self::run(are_mapped, move || async move { UnixStream::new(near).unwrap() });
        (server, client)
    }

    /// Serves the first client that connects to `path`.
    pub(crate) fn listen(path: &Path, are_mapped: bool) -> Self {
        let listener = UnixListener::bind(path).unwrap();
        Self::run(are_mapped, move || async move { listener.accept().await.unwrap() })
    }

    fn run<F: Future<Output = UnixStream>>(
        are_mapped: bool,
        stream: impl FnOnce() -> F + Send + 'static,
    ) -> Self {
        let log = Arc::new(Mutex::new(Log::default()));
        let (remote, device_log) = (Remote::new().unwrap(), log.clone());
        let unshared_log = log.clone();
        let thread_remote = remote.clone();
        let thread = std::thread::spawn(move || {
            let root = async {
                let stream = Rc::new(stream().await);
                let stopping = stream.clone();
                clock::spawn(async move {
                    stopped().await;
                    stopping.shut_down();
                });
                let doorbells = are_mapped.then(|| Rc::new(MappedDoorbells::new().unwrap()));
                let page = doorbells.clone().map(|page| page as Rc<dyn pcie::DoorbellPage>);
                let tell = move |unshared| unshared_log.lock().unwrap().unshared.push(unshared);
                let make = |memory, interrupts| -> Rc<dyn pcie::PciFunction> {
                    Rc::new(Device::new(memory, interrupts, page, device_log))
                };
                serve(&stream, doorbells, tell, make).await
            };
            Reactor::new(None).serve(&thread_remote, root).unwrap().0
        });
        Self { thread, remote, log }
    }

    pub(crate) fn log(&self) -> Arc<Mutex<Log>> {
        self.log.clone()
    }

    /// Tells the server to end the session.
    pub(crate) fn stop(&self) {
        self.remote.stop();
    }

    /// Waits for the end of the session.
    pub(crate) fn ended(self) -> Ended {
        self.thread.join().unwrap()
    }
}

/// Returns both ends of a connection: the server's and the client's.
pub(crate) fn pair() -> (OwnedFd, Blocking) {
    let flags = SocketFlags::CLOEXEC;
    let (near, far) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
    let client = Blocking::from(far);
    client.set_read_timeout(Some(TIMEOUT)).unwrap();
    client.set_write_timeout(Some(TIMEOUT)).unwrap();
    (near, client)
}
