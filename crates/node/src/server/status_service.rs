use super::facts::Facts;
use super::reactor_counters::{Questions, ReactorCounters};
use super::status::Status;
use super::status_builder::status_of;
use base::Nanos;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, oneshot};
use tokio::time::timeout;

/// Timeout of a reactor's answer. A busy reactor checks for requests every 64 polls, which takes
/// far less.
const TIMEOUT: Duration = Duration::from_secs(5);

/// How long an answer is cached: a client that polls faster costs the reactors no extra work.
const FRESH: Duration = Duration::from_millis(100);

/// Collects the reactors' counters for HTTP clients, one request at a time.
#[derive(Debug)]
pub(super) struct StatusService {
    facts: Facts,
    questions: Questions,
    latest: Mutex<Option<(Instant, Arc<Status>)>>,
}

impl StatusService {
    pub(super) fn new(facts: Facts, questions: Questions) -> Self {
        Self { facts, questions, latest: Mutex::default() }
    }

    /// Returns the status of the server, or `None` if a reactor does not answer.
    pub(super) async fn status(&self) -> Option<Arc<Status>> {
        let mut latest = self.latest.lock().await;
        if let Some((at, status)) = &*latest
            && at.elapsed() < FRESH
        {
            return Some(status.clone());
        }
        let at = Instant::now();
        let uptime = Nanos(u64::try_from((at - self.facts.began).as_nanos()).ok()?);
        let censuses = timeout(TIMEOUT, self.ask()).await.ok()??;
        let status = Arc::new(status_of(&self.facts, uptime, &censuses));
        *latest = Some((at, status.clone()));
        Some(status)
    }

    /// Requests the censuses of all reactors at once, so that they are of about the same time.
    async fn ask(&self) -> Option<Vec<ReactorCounters>> {
        let answers = self.questions.iter().map(|question| {
            let (say, answer) = oneshot::channel();
            // The receiver is dropped if the answer took too long.
            question.put_up(Box::new(move |census| drop(say.send(census))));
            answer
        });
        let mut censuses = Vec::new();
        for answer in answers.collect::<Vec<_>>() {
            censuses.push(answer.await.ok()?);
        }
        Some(censuses)
    }
}
