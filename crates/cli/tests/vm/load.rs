//! Work that a guest does in the background for as long as its test needs it. A load of a fixed
//! size is over too soon where the rest of a test is slow.

use crate::guest::Guest;

impl Guest {
    /// Runs the script `round` in the background, again and again. In it, `$round` counts from 1.
    /// The load ends by [`Guest::end_load`], or when a round fails.
    pub(crate) fn start_load(&mut self, round: &str) {
        self.succeed(&format!(
            "rm -f /tmp/enough /tmp/ended
             rounds() {{
                 round=0
                 until [ -e /tmp/enough ]; do
                     round=$((round + 1))
                     {{ {round}
                     }} || exit
                 done
             }}
             {{ (rounds) > /tmp/load 2>&1; echo $? > /tmp/ended; }} &"
        ));
    }

    /// Checks that no round has failed yet.
    #[track_caller]
    pub(crate) fn expect_load(&mut self) {
        self.succeed("[ ! -e /tmp/ended ] || { cat /tmp/load; exit 1; }");
    }

    /// Lets the load end its round, and returns what all rounds printed. Each must have succeeded.
    #[track_caller]
    pub(crate) fn end_load(&mut self) -> String {
        self.succeed(
            "touch /tmp/enough
             until [ -s /tmp/ended ]; do sleep 0.1; done
             cat /tmp/load
             exit $(cat /tmp/ended)",
        )
    }
}
