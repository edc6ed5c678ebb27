use clock::Span;
use std::cell::Cell;
use std::fmt;

thread_local! {
    static IS_ON: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread tells what happens, one line an event.
pub(crate) fn is_on() -> bool {
    IS_ON.get()
}

/// Turns the trace of this thread on or off.
pub(crate) fn set(is_on: bool) {
    IS_ON.set(is_on);
}

/// Tells of an event, with the time on the device's clock if there is one.
pub(crate) fn event(what: fmt::Arguments<'_>) {
    if !is_on() {
        return;
    }
    if clock::is_installed() {
        println!("{:>14} ns  {what}", clock::now().0);
    } else {
        println!("{:>14}     {what}", "");
    }
}

/// What tells of each time that a part of the device was at work.
pub(crate) fn sink() -> clock::TraceSink {
    Box::new(|span: &Span| {
        let Span { resource, unit, work, class, from, to, .. } = *span;
        println!("{:>14} ns  {work} for {class:?} since {} ns, on {resource}.{unit}", to.0, from.0);
    })
}
