/// The order in which a task takes resources. A task waits only for a rank above the highest that
/// it holds, so no two tasks can wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Rank {
    /// Waiting for another task's work; allowed only to a task that holds nothing.
    Free,
    /// The gate of a collector that blocks the whole controller.
    Gate,
    /// The lock of a span of logical blocks.
    Blocks,
    /// Space on the medium, room in a buffer.
    Credit,
    /// The latch of a key.
    Latch,
    /// A page of an index that another task reads from the medium.
    Page,
    /// A page register of a die.
    Register,
    /// The cells of a die.
    Array,
    /// The bus that dies share.
    Channel,
    /// A firmware request handler.
    Handler,
    /// The link to the host.
    Link,
    /// A processor core.
    Core,
}

impl Rank {
    #[inline]
    pub(crate) const fn bit(self) -> u16 {
        1 << self as u8
    }

    /// True when a task that holds the ranks in `held` may wait for this one.
    #[inline]
    pub(crate) const fn may_follow(self, held: u16) -> bool {
        held < self.bit()
    }
}

#[cfg(test)]
mod tests {
    use super::Rank;

    #[test]
    fn only_a_higher_rank_may_follow() {
        assert!(Rank::Free.may_follow(0));
        assert!(!Rank::Free.may_follow(Rank::Latch.bit()));
        assert!(Rank::Channel.may_follow(Rank::Register.bit() | Rank::Latch.bit()));
        assert!(!Rank::Latch.may_follow(Rank::Latch.bit()));
        assert!(Rank::Page.may_follow(Rank::Credit.bit() | Rank::Latch.bit()));
        assert!(!Rank::Page.may_follow(Rank::Page.bit()), "a page reader waits for no other page");
        assert!(Rank::Register.may_follow(Rank::Page.bit()));
        assert!(!Rank::Register.may_follow(Rank::Latch.bit() | Rank::Channel.bit()));
    }
}
