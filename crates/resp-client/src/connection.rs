use crate::arg::Arg;
use crate::error::Error;
use crate::replies::Replies;
use crate::reply::Reply;
use crate::uri::Uri;
use base::{BufPool, Nanos};
use clock::{Notify, Stage};
use net::Stream;
use resp::{Outbox, Sent};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};
use std::sync::Arc;

/// The most bytes of freed buffers of one size kept for later values.
const POOL_CLASS_BYTES_MAX: usize = 64 << 20;

/// The client's identity, and its timeout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The user's name; `None` for the server's default user.
    pub user: Option<String>,
    /// The user's password, if one is needed.
    pub password: Option<String>,
    /// The database.
    pub database: u32,
    /// The timeout of a server that owes an answer and is silent. A waiting task learns of it after
    /// at most twice that.
    pub timeout: Nanos,
}

impl Settings {
    /// Returns the settings of `uri`, with a timeout of 30 s: a server may be saving, or cleaning.
    pub fn of(uri: &Uri) -> Self {
        let Uri { user, password, database, .. } = uri.clone();
        Self { user, password, database, timeout: Nanos::from_secs(30) }
    }
}

/// Receives the answer to a request, or the reason why there is none.
type Then = Box<dyn FnOnce(Result<Reply, Error>)>;

/// A connection to a server. Clones share it; dropping the last one ends it.
pub struct Connection<S: Stream>(Rc<Handle<S>>);

struct Handle<S: Stream>(Rc<Shared<S>>);

/// The state that a connection's tasks share with its callers.
struct Shared<S: Stream> {
    stream: S,
    outbox: RefCell<Outbox>,
    /// Rung when there is data to write, or the connection has ended.
    to_write: Notify,
    /// Receivers of the answers, in the order of the requests.
    asked: RefCell<VecDeque<Then>>,
    /// The time of the server's last answer, or of a later request sent while it owed none.
    heard: Cell<Nanos>,
    ended: RefCell<Option<Error>>,
}

impl<S: Stream> Connection<S> {
    /// Opens `stream` with `settings`.
    pub async fn open(stream: S, settings: &Settings) -> Result<Self, Error> {
        assert!(settings.timeout > Nanos::ZERO, "an answer takes some time");
        let shared = Rc::new(Shared {
            stream,
            outbox: RefCell::new(Outbox::new(Arc::default())),
            to_write: Notify::new(),
            asked: RefCell::default(),
            heard: Cell::new(clock::host_now()),
            ended: RefCell::default(),
        });
        let connection = Self(Rc::new(Handle(shared.clone())));
        clock::spawn(watch(Rc::downgrade(&shared), settings.timeout));
        clock::spawn(write(shared.clone()));
        clock::spawn(read(shared));
        connection.introduce(settings).await?;
        Ok(connection)
    }

    async fn introduce(&self, settings: &Settings) -> Result<(), Error> {
        let Settings { user, password, database, .. } = settings;
        let user = user.as_deref();
        if let Some(password) = password {
            let name = user.into_iter().map(Arg::from);
            let args: Vec<_> = [Arg::from("AUTH")].into_iter().chain(name).collect();
            self.demand("AUTH", &[&args[..], &[Arg::from(password.as_str())]].concat()).await?;
        }
        if *database > 0 {
            let database = database.to_string();
            self.demand("SELECT", &["SELECT".into(), database.as_str().into()]).await?;
        }
        // A server that requires a password refuses here, before the first other request.
        self.demand("PING", &["PING".into()]).await
    }

    async fn demand(&self, request: &'static str, args: &[Arg<'_>]) -> Result<(), Error> {
        match self.ask(args).await? {
            Reply::Error(said) => Err(Error::Refused { request, said }),
            _ => Ok(()),
        }
    }

    /// Queues a request. Calls `then` once, with the answer or the reason why there is none.
    pub fn begin(&self, args: &[Arg<'_>], then: impl FnOnce(Result<Reply, Error>) + 'static) {
        let shared = &*self.0.0;
        let ended = shared.ended.borrow().clone();
        if let Some(error) = ended {
            return then(Err(error));
        }
        let mut outbox = shared.outbox.borrow_mut();
        outbox.push_len(b'*', args.len());
        for arg in args {
            match arg {
                Arg::Bytes(bytes) => outbox.push_bulk(bytes),
                Arg::Value(value) => outbox.push_bulk_of((*value).clone()),
            }
        }
        let mut asked = shared.asked.borrow_mut();
        if asked.is_empty() {
            shared.heard.set(clock::host_now());
        }
        asked.push_back(Box::new(then));
        shared.to_write.notify();
    }

    /// Sends a request and waits for the answer.
    pub async fn ask(&self, args: &[Arg<'_>]) -> Result<Reply, Error> {
        let answers = self.ask_all([args]).await?;
        Ok(answers.into_iter().next().expect("one request has one answer"))
    }

    /// Sends `requests` without waiting in between, and returns their answers in order.
    pub async fn ask_all<'a>(
        &self,
        requests: impl IntoIterator<Item = &'a [Arg<'a>]>,
    ) -> Result<Vec<Reply>, Error> {
        let answers = Rc::new(Answers::default());
        let mut count = 0;
        for request in requests {
            count += 1;
            let answers = answers.clone();
            self.begin(request, move |answer| answers.put(answer));
        }
        while answers.come.borrow().len() < count {
            answers.notify.wait().await;
        }
        answers.come.take().into_iter().collect()
    }

    /// Returns why it ended, if it has.
    pub fn failure(&self) -> Option<Error> {
        self.0.0.ended.borrow().clone()
    }

    /// Ends the connection. Outstanding requests get an error.
    pub fn close(&self) {
        self.0.0.end(&Error::Closed);
    }
}

/// Answers that one task waits for.
#[derive(Default)]
struct Answers {
    come: RefCell<Vec<Result<Reply, Error>>>,
    notify: Notify,
}

impl Answers {
    fn put(&self, answer: Result<Reply, Error>) {
        self.come.borrow_mut().push(answer);
        self.notify.notify();
    }
}

impl<S: Stream> Clone for Connection<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<S: Stream> std::fmt::Debug for Connection<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Connection that owes {} answers", self.0.0.asked.borrow().len())
    }
}

impl<S: Stream> Drop for Handle<S> {
    fn drop(&mut self) {
        // Without a schedule its tasks are gone, so no task waits for an answer.
        if clock::is_installed() && !std::thread::panicking() {
            self.0.end(&Error::Closed);
        }
    }
}

impl<S: Stream> Shared<S> {
    /// Ends the connection for `error`, unless it has ended.
    fn end(&self, error: &Error) {
        if self.ended.borrow().is_some() {
            return;
        }
        *self.ended.borrow_mut() = Some(error.clone());
        self.stream.shut_down();
        self.to_write.notify();
        for then in self.asked.take() {
            then(Err(error.clone()));
        }
    }

    /// Passes on all answers received.
    fn give_out(&self, replies: &mut Replies) -> Result<(), Error> {
        while let Some(reply) = replies.next()? {
            let then = self.asked.borrow_mut().pop_front().ok_or(Error::Unasked)?;
            self.heard.set(clock::host_now());
            then(Ok(reply));
        }
        Ok(())
    }
}

/// Receives answers until the connection ends.
async fn read<S: Stream>(shared: Rc<Shared<S>>) {
    let mut replies = Replies::new(BufPool::new(POOL_CLASS_BYTES_MAX));
    let error = loop {
        match replies.read(&shared.stream) {
            Err(_) => break Error::Broken,
            Ok(Some(0)) => break Error::Ended,
            Ok(None) => shared.stream.readable().await,
            Ok(Some(_)) => {
                if let Err(error) = shared.give_out(&mut replies) {
                    break error;
                }
            }
        }
    };
    shared.end(&error);
}

/// Sends queued requests until the connection ends.
async fn write<S: Stream>(shared: Rc<Shared<S>>) {
    while shared.ended.borrow().is_none() {
        let sent = shared.outbox.borrow_mut().send(&shared.stream);
        match sent {
            // The reader finds the reason: the server may have sent it.
            Err(_) => return,
            Ok(Sent::Full) => shared.stream.writable().await,
            Ok(Sent::All) => shared.to_write.wait().await,
        }
    }
}

/// Polls whether the server has owed an answer and been silent for `timeout`.
async fn watch<S: Stream>(shared: Weak<Shared<S>>, timeout: Nanos) {
    loop {
        clock::sleep(timeout, Stage::Queue).await;
        let Some(shared) = shared.upgrade() else { return };
        if shared.ended.borrow().is_some() {
            return;
        }
        let silent = clock::host_now().saturating_sub(shared.heard.get());
        if !shared.asked.borrow().is_empty() && silent >= timeout {
            return shared.end(&Error::Silent(timeout));
        }
    }
}
