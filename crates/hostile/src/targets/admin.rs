use super::{ACTIONS_MAX, pause};
use crate::input::Input;
use crate::line::Line;
use crate::world::{NQN, World, pass, run};
use crate::{entry, fit};
use base::Nanos;
use controller::FlashFigures;
use spec::QualifiedName;

/// Sends every admin command to controllers of the device and of the discovery subsystem. I/O
/// commands run at the same time to be aborted, and actions cause events.
pub fn admin(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    run(input.byte().into(), async |world| {
        let (storage, id) = Line::admin(world, NQN).await;
        let io = Line::io(world, id, 1).await;
        let (discovery, _) = Line::admin(world, QualifiedName::DISCOVERY).await;
        let lines = [&storage, &storage, &storage, &discovery];
        for _ in 0..ACTIONS_MAX {
            if input.is_over() {
                break;
            }
            act(world, input.pick(&lines), &io, &mut input).await;
        }
        [storage, io, discovery]
    });
}

async fn act(world: &World, line: &Line, io: &Line, input: &mut Input<'_>) {
    match input.below(16) {
        0..10 => {
            let (command, data) = fit::admin(entry::admin(input), input);
            line.send_next(command, &data);
        }
        10 => line.send_next(entry::property(input), &[]),
        11 => {
            // The closed gate keeps the command running, so that it can be aborted.
            let closed = world.close_gate();
            let (command, data) = fit::io(entry::io(input), input);
            io.send_next(command, &data);
            let (command, data) = fit::admin(entry::admin(input), input);
            line.send_next(command, &data);
            pass(Nanos(1)).await;
            drop(closed);
        }
        12 => world.subsystem.namespace_changed(input.below(6) + 1),
        13 => {
            let figures = FlashFigures {
                spare_percent: input.byte(),
                used_percent: input.byte(),
                reads: input.number().into(),
                ..FlashFigures::NEW
            };
            *world.flash.lock().expect("no thread panics") = figures;
        }
        _ => pass(pause(input)).await,
    }
    if !input.one_in(3) {
        pass(Nanos(1)).await;
    }
}
