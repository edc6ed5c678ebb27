use crate::client::{Asked, Client, keys_of};
use crate::history::Open;
use crate::remote_plan::{HOT_KEYS, Plan, pick};
use base::{Buf, Rng};
use controller::{Completion, Submission};
use node::Device;
use spec::Command;
use std::collections::BTreeSet;

/// Room for all keys.
const LIST_BYTES: u32 = 64 << 10;

/// What a host asked by a command, of those that work on the same keys.
pub(crate) enum HostCommand {
    Pair(Asked),
    /// A List command, whose answer says which hot keys exist.
    List {
        asked: Vec<(usize, Open)>,
        is_every: bool,
    },
}

impl HostCommand {
    /// Draws a command of `plan`, or now and then a List command.
    pub(crate) fn draw(plan: &Plan, client: &Client, rng: &mut Rng) -> (Self, Submission) {
        if rng.below(30) == 0 {
            return Self::draw_list(client, rng);
        }
        let (subject, request) = plan.request(rng);
        let (asked, submission) = client.ask(subject, request);
        (Self::Pair(asked), submission)
    }

    /// Draws a List command for all keys, or for as many as fit a short buffer from any one on.
    fn draw_list(client: &Client, rng: &mut Rng) -> (Self, Submission) {
        let keys = &client.keys;
        let start = &keys[pick(keys.len() as u64, rng)];
        let is_every = rng.below(2) == 0;
        let start = if is_every { &[][..] } else { start.as_bytes() };
        let room = if is_every { LIST_BYTES } else { 300 };
        let command = Command::list(Device::NAMESPACE, start, room);
        let asked = client.ask_which(0..HOT_KEYS);
        let data = Buf::phantom(0, 0);
        (Self::List { asked, is_every }, Submission { command, long_key: None, data })
    }

    /// Notes the answer of the device.
    ///
    /// # Panics
    /// If a List command returns a key twice.
    pub(crate) fn note(self, client: &Client, completion: &Completion) {
        match self {
            Self::Pair(asked) => client.note(asked, completion),
            Self::List { asked, is_every } => {
                let keys = keys_of(completion);
                let listed: BTreeSet<Vec<u8>> = keys.iter().cloned().collect();
                assert_eq!(listed.len(), keys.len(), "a key is listed twice: {keys:?}");
                client.note_which(&asked, &listed, is_every);
            }
        }
    }
}
