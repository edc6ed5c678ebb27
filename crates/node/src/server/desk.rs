use super::census::{Census, Questions};
use super::places::Places;
use super::status::{Status, SubsystemStatus};
use base::Nanos;
use reactor::Remote;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, oneshot};
use tokio::time::timeout;

/// What is known of a server without asking its reactors.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) began: Instant,
    /// The names of the devices.
    pub(super) devices: Vec<String>,
    pub(super) subsystems: Vec<SubsystemStatus>,
    pub(super) places: Places,
    pub(super) remotes: Vec<Remote>,
}

/// How long a reactor may take to answer. One that is at work looks at its questions after 64
/// polls, which is far less than that.
const PATIENCE: Duration = Duration::from_secs(5);

/// How old an answer may be that is given once more: whoever asks again and again costs reactors
/// no more than this.
const FRESH: Duration = Duration::from_millis(100);

/// Asks the reactors of a server, for whoever comes: one at a time.
#[derive(Debug)]
pub(super) struct Desk {
    facts: Facts,
    questions: Questions,
    latest: Mutex<Option<(Instant, Arc<Status>)>>,
}

impl Desk {
    pub(super) fn new(facts: Facts, questions: Questions) -> Self {
        Self { facts, questions, latest: Mutex::default() }
    }

    /// What the server is doing. `None` when a reactor does not answer.
    pub(super) async fn status(&self) -> Option<Arc<Status>> {
        let mut latest = self.latest.lock().await;
        if let Some((at, status)) = &*latest
            && at.elapsed() < FRESH
        {
            return Some(status.clone());
        }
        let at = Instant::now();
        let uptime = Nanos(u64::try_from((at - self.facts.began).as_nanos()).ok()?);
        let censuses = timeout(PATIENCE, self.ask()).await.ok()??;
        let status = Arc::new(Status::of(&self.facts, uptime, &censuses));
        *latest = Some((at, status.clone()));
        Some(status)
    }

    /// All at once, so that they answer at about the same time.
    async fn ask(&self) -> Option<Vec<Census>> {
        let answers = self.questions.iter().map(|question| {
            let (say, answer) = oneshot::channel();
            // Nobody listens any more if that took too long.
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
