use super::facts::Facts;
use super::reactor_counters::{Questions, ReactorCounters};
use super::status::Status;
use super::status_builder::status_of;
use super::tenant_status::fairness;
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

/// The shortest time for which the fairness of tenants is computed.
const WINDOW: Duration = Duration::from_secs(1);

/// Collects the reactors' counters for HTTP clients, one request at a time.
#[derive(Debug)]
pub(super) struct StatusService {
    facts: Facts,
    questions: Questions,
    answers: Mutex<Answers>,
}

/// Earlier answers.
#[derive(Debug, Default)]
struct Answers {
    latest: Option<(Instant, Arc<Status>)>,
    /// The one at which the window began for which the fairness of tenants is computed next.
    window: Option<(Instant, Arc<Status>)>,
}

impl StatusService {
    pub(super) fn new(facts: Facts, questions: Questions) -> Self {
        Self { facts, questions, answers: Mutex::default() }
    }

    /// Returns the status of the server, or `None` if a reactor does not answer.
    pub(super) async fn status(&self) -> Option<Arc<Status>> {
        let mut answers = self.answers.lock().await;
        if let Some((at, status)) = &answers.latest
            && at.elapsed() < FRESH
        {
            return Some(status.clone());
        }
        let at = Instant::now();
        let uptime = Nanos(u64::try_from((at - self.facts.began).as_nanos()).ok()?);
        let censuses = timeout(TIMEOUT, self.ask()).await.ok()??;
        let mut status = status_of(&self.facts, uptime, &censuses);
        let before = answers.window.as_ref().map_or(&[][..], |(_, before)| &before.tenants);
        status.fairness = fairness(before, &status.tenants);
        let answer = (at, Arc::new(status));
        if answers.window.as_ref().is_none_or(|(began, _)| at - *began >= WINDOW) {
            answers.window = Some(answer.clone());
        }
        answers.latest = Some(answer.clone());
        Some(answer.1)
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
