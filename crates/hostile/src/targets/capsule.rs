use super::{ACTIONS_MAX, pause};
use crate::input::Input;
use crate::line::{HOST_ID, HOST_NQN, Line, SERVICES};
use crate::world::{NQN, World, pass, run};
use crate::{entry, fit};
use base::Nanos;
use spec::ConnectData;
use zerocopy::IntoBytes;

/// The most queues open at a time.
const LINES_MAX: usize = 6;

/// Sends commands and data to queues without a controller, admin queues and I/O queues: Connects,
/// properties, disconnects, and lost connections.
pub fn capsule(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    run(input.byte().into(), async |world| {
        let mut lines = vec![Line::new(world)];
        for _ in 0..ACTIONS_MAX {
            if input.is_over() {
                break;
            }
            act(world, &mut lines, &mut input).await;
        }
        lines
    });
}

async fn act(world: &World, lines: &mut Vec<Line>, input: &mut Input<'_>) {
    let at = input.below(u32::try_from(lines.len()).expect("they are few")) as usize;
    let line = &lines[at];
    match input.below(11) {
        0 => connect(line, 0, input),
        1 => {
            let queue = if input.one_in(4) { input.half() } else { input.pick(&[1, 2]) };
            connect(line, queue, input);
        }
        2 => line.send_next(entry::property(input), &[]),
        3 => {
            let (command, data) = fit::admin(entry::admin(input), input);
            line.send_next(command, &data);
        }
        4 | 5 => {
            let (command, data) = fit::io(entry::io(input), input);
            line.send_next(command, &data);
            if let Some(second) = entry::second_of(&command, input) {
                let (second, data) = fit::io(second, input);
                line.send_next(second, &data);
            }
        }
        6 => {
            let any = entry::of_bytes(input.array());
            line.send(any, &input.bytes(64));
        }
        7 => pass(pause(input)).await,
        8 => world.hold_up(Nanos(u64::from(input.byte()))).await,
        9 if lines.len() < LINES_MAX => lines.push(Line::new(world)),
        _ => {
            lines[at] = Line::new(world);
        }
    }
    if !input.one_in(3) {
        pass(Nanos(1)).await;
    }
}

fn connect(line: &Line, queue: u16, input: &mut Input<'_>) {
    let service = if queue == 0 { input.pick(&SERVICES) } else { NQN };
    let controller = match input.below(6) {
        0..3 if queue == 0 => ConnectData::ANY_CONTROLLER,
        0..5 => input.pick(&[2, 3, 4, 5]),
        _ => input.half(),
    };
    let mut data = ConnectData::new(HOST_ID, HOST_NQN, service, controller).as_bytes().to_vec();
    if input.one_in(8) {
        let at = input.below(1_024) as usize;
        data[at] = input.byte();
    }
    if input.one_in(16) {
        data.truncate(input.below(1_024) as usize);
    }
    line.send_next(entry::connect(input, queue), &data);
}
