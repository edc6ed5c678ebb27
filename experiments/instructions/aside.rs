/// Runs work of the load. Callgrind does not count what happens inside of this function.
#[inline(never)]
pub(crate) fn aside<T>(work: impl FnOnce() -> T) -> T {
    // The optimiser moves nothing out of a black box.
    std::hint::black_box(work())
}
