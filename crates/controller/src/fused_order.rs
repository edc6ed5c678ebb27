use spec::{Command, Fuse};

/// Pairs the two commands of a fused operation, which are next to each other in their submission
/// queue (Base 2.1, Fused Operations).
///
/// The Compare of a Compare and Write is held until the next command of the queue comes. If that is
/// no second command, the Compare is refused then.
#[derive(Debug)]
pub struct FusedOrder<T> {
    first: Option<T>,
}

/// What to do with a command that came.
#[derive(Debug, PartialEq, Eq)]
pub enum Ordered<T> {
    /// It is held: its second command has not come.
    Waits,
    /// Start it. If it is fused, its other command is missing.
    Alone(T),
    /// Start both as one operation: the first command and the second.
    Fused(T, T),
}

impl<T> FusedOrder<T> {
    /// Whether a first command is held.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        self.first.is_some()
    }

    /// Takes back the first command that is held, if there is one and `is_it` says so.
    pub fn withdraw(&mut self, is_it: impl FnOnce(&T) -> bool) -> Option<T> {
        self.first.take_if(|first| is_it(first))
    }

    /// Takes the next command of the queue, as `it`. Returns a first command that is missing its
    /// second, if one was held, and what to do with `it`.
    pub fn take(&mut self, command: &Command, it: T) -> (Option<T>, Ordered<T>) {
        match (self.first.take(), command.fuse()) {
            (Some(first), Fuse::Second) => (None, Ordered::Fused(first, it)),
            (waited, _) if command.begins_compare_and_write() => {
                self.first = Some(it);
                (waited, Ordered::Waits)
            }
            (waited, _) => (waited, Ordered::Alone(it)),
        }
    }
}

impl<T> Default for FusedOrder<T> {
    fn default() -> Self {
        Self { first: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spec::Fuse::{First, Normal, Reserved, Second};

    /// What becomes of commands with these parts, all of them on one queue.
    fn order(commands: &[Command]) -> Vec<(Option<usize>, Ordered<usize>)> {
        let mut order = FusedOrder::default();
        commands.iter().enumerate().map(|(at, command)| order.take(command, at)).collect()
    }

    fn compare(fuse: Fuse) -> Command {
        Command::compare(1, 0, 1).with_fuse(fuse)
    }

    fn write(fuse: Fuse) -> Command {
        Command::write(1, 0, 1).with_fuse(fuse)
    }

    #[test]
    fn two_commands_side_by_side_are_one_operation() {
        let [first, second] = [compare(First), write(Second)];
        let found = order(&[first, second, write(Normal), first, second]);
        let expected = [
            (None, Ordered::Waits),
            (None, Ordered::Fused(0, 1)),
            (None, Ordered::Alone(2)),
            (None, Ordered::Waits),
            (None, Ordered::Fused(3, 4)),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_command_whose_other_one_is_missing_is_alone() {
        let [first, second] = [compare(First), write(Second)];
        // Before a normal command, before another first one, behind a normal one.
        let found = order(&[first, write(Normal), first, first, second, second]);
        let expected = [
            (None, Ordered::Waits),
            (Some(0), Ordered::Alone(1)),
            (None, Ordered::Waits),
            (Some(2), Ordered::Waits),
            (None, Ordered::Fused(3, 4)),
            (None, Ordered::Alone(5)),
        ];
        assert_eq!(found, expected);
        assert_eq!(order(&[compare(Reserved)]), [(None, Ordered::Alone(0))]);
        assert_eq!(order(&[write(First), write(Second)])[0], (None, Ordered::Alone(0)));
    }

    #[test]
    fn a_withdrawn_first_command_leaves_its_second_alone() {
        let mut order = FusedOrder::default();
        assert_eq!(order.withdraw(|_: &u8| true), None);
        order.take(&compare(First), 1);
        assert_eq!(order.withdraw(|it| *it == 2), None);
        assert_eq!(order.withdraw(|it| *it == 1), Some(1));
        assert_eq!(order.take(&write(Second), 2), (None, Ordered::Alone(2)));
    }

    #[test]
    fn a_second_command_of_any_kind_belongs_to_the_first() {
        let found = order(&[compare(First), compare(Second)]);
        assert_eq!(found[1], (None, Ordered::Fused(0, 1)));
    }
}
