use super::{ACTIONS_MAX, pause};
use crate::device::{BLOCK, KV};
use crate::input::Input;
use crate::line::Line;
use crate::world::{NQN, World, pass, run};
use crate::{entry, fit};
use base::{Buf, Key, Nanos};
use controller::{QueuePair, Submission};
use spec::{Command, Transfer};
use std::collections::BTreeMap;

/// Sends every I/O command to namespaces of keys, of blocks and of zones, by queues of a fabric and
/// by queue pairs.
pub fn io(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    run(input.byte().into(), async |world| {
        let (admin, id) = Line::admin(world, NQN).await;
        let lines = [Line::io(world, id, 1).await, Line::io(world, id, 2).await];
        let mut pair = Pair { queue: world.device.queue_pair(), asked: BTreeMap::new() };
        for _ in 0..ACTIONS_MAX {
            if input.is_over() {
                break;
            }
            act(world, &lines, &mut pair, &mut input).await;
        }
        pair.check().await;
        (admin, lines)
    });
}

async fn act(world: &World, lines: &[Line; 2], pair: &mut Pair, input: &mut Input<'_>) {
    let line = &lines[input.below(2) as usize];
    match input.below(12) {
        0..5 => {
            let (command, data) = fit::io(entry::io(input), input);
            line.send_next(command, &data);
            if let Some(second) = entry::second_of(&command, input) {
                let (second, data) = fit::io(second, input);
                line.send_next(second, &data);
            }
        }
        5..10 => pair.submit(input),
        10 => world.hold_up(Nanos(u64::from(input.byte()))).await,
        _ => pass(pause(input)).await,
    }
    if !input.one_in(3) {
        pass(Nanos(1)).await;
    }
}

/// A queue pair with its outstanding commands.
struct Pair {
    queue: QueuePair,
    asked: BTreeMap<u64, Command>,
}

impl Pair {
    fn submit(&mut self, input: &mut Input<'_>) {
        let command = entry::io(input);
        self.submit_this(command, input);
        if let Some(second) = entry::second_of(&command, input) {
            self.submit_this(second, input);
        }
    }

    fn submit_this(&mut self, command: Command, input: &mut Input<'_>) {
        let command = if (4..=6).contains(&command.nsid()) {
            entry::with_nsid(&command, KV)
        } else {
            command
        };
        let mut len = entry::data_len(&command);
        if input.one_in(8) {
            len = len.saturating_add(input.below(600)).saturating_sub(input.below(600));
        }
        let brings = command.transfer() == Transfer::ToController;
        let data = match input.below(8) {
            0 => Buf::phantom(len, input.byte().into()),
            _ if brings => Buf::copy_from(&entry::data(&command, len, input)),
            _ => Buf::phantom(0, 0),
        };
        let long = Key::new(&vec![input.byte(); usize::from(command.key_length())]).ok();
        let long_key = long.filter(|_| input.one_in(4));
        let id = self.queue.submit(Submission { command, long_key, data });
        let before = self.asked.insert(id, command);
        assert!(before.is_none(), "numbers of commands are new");
        self.take();
    }

    /// Takes the completions.
    fn take(&mut self) {
        while let Some(answered) = self.queue.try_next() {
            let asked = self.asked.remove(&answered.id);
            let command = asked.unwrap_or_else(|| panic!("{} was not asked", answered.id));
            let moves = command.transfer() == Transfer::ToHost || command.nsid() == 0;
            let len = answered.data.len();
            assert!(len == 0 || moves, "{command:?} returns {len} bytes");
            assert!(len == 0 || answered.status.is_success(), "{command:?} fails with data");
            let room = entry::data_len(&command);
            assert!(room == 0 || len <= room, "{len} bytes for {command:?}");
        }
    }

    /// Waits until all commands have completed.
    async fn check(mut self) {
        // The first part of a fused operation waits for the next command.
        let command = Command::flush(BLOCK);
        let data = Buf::phantom(0, 0);
        let id = self.queue.submit(Submission { command, long_key: None, data });
        self.asked.insert(id, command);
        pass(Nanos::from_secs(1)).await;
        self.take();
        assert_eq!(self.queue.outstanding(), 0, "each command ends");
        assert!(self.asked.is_empty(), "no completion for {:?}", self.asked);
    }
}
