//! What a trace calls the work of the request handler.

use crate::commands::host::{BLOCK, KV, ZONED, filled, nothing, run_on};
use base::{Buf, Nanos};
use clock::Span;
use controller::FirmwareCosts;
use reactor::Reactor;
use spec::{BlockRange, Command, CopyRange, ReportedZones, Status, StoreOptions, ZoneSendAction};
use std::cell::RefCell;
use std::rc::Rc;
use zerocopy::IntoBytes;

#[test]
fn a_handler_is_said_to_do_what_the_command_asks() {
    let block_range = || Buf::copy_from(BlockRange::new(0, 1).as_bytes());
    let copy_range = || Buf::copy_from(CopyRange::new(0, 1).as_bytes());
    let report = Command::report_zones(ZONED, 0, ReportedZones::All, 64);
    let commands = [
        (Command::store(KV, b"k", 0, StoreOptions::NONE), nothing(), "store"),
        (Command::read(BLOCK, 0, 1), nothing(), "read"),
        (Command::write(BLOCK, 0, 1), filled(1, 1), "write"),
        (Command::write_zeroes(BLOCK, 0, 1), nothing(), "write zeroes"),
        (Command::deallocate(BLOCK, 1), block_range(), "dataset"),
        (Command::copy(BLOCK, 0, 1), copy_range(), "copy"),
        (Command::write(ZONED, 0, 1), filled(1, 1), "write"),
        (Command::zone_append(ZONED, 0, 1), filled(1, 1), "append"),
        (Command::read(ZONED, 0, 1), nothing(), "read"),
        (Command::copy(ZONED, 2, 1), copy_range(), "copy"),
        (Command::zone_management_send(ZONED, 0, ZoneSendAction::Reset), nothing(), "zone send"),
        (report, nothing(), "zone report"),
    ];
    let expected = commands.each_ref().map(|(_, _, work)| *work);
    let works: Rc<RefCell<Vec<&str>>> = Rc::default();
    let sink = works.clone();
    let mut reactor = Reactor::new(None);
    reactor.set_trace(Some(Box::new(move |span: &Span| {
        if span.work != "link" {
            sink.borrow_mut().push(span.work);
        }
    })));
    let costs = FirmwareCosts { t_read: Nanos(10), t_write: Nanos(20), ..FirmwareCosts::default() };
    run_on(&mut reactor, costs, async |host| {
        for (command, data, work) in commands {
            assert_eq!(host.answer(command, data).await.status, Status::SUCCESS, "{work}");
        }
    });
    assert_eq!(*works.borrow(), expected);
}
