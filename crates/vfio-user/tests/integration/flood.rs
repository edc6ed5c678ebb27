//! A client that sends without pause.

use crate::raw_client::*;
use crate::server::pair;
use pcie::{PciFunction, Region};
use reactor::{Reactor, Remote, UnixStream, stopped};
use std::cell::Cell;
use std::io::Write;
use std::rc::Rc;
use vfio_user::{Ended, serve};

/// Messages that are there when the session begins.
const MESSAGES: u32 = 3_000;

/// A function whose first write asks the reactor to stop, as another thread may at any time.
struct Stopper {
    remote: Remote,
    writes: Rc<Cell<u32>>,
}

impl PciFunction for Stopper {
    fn bytes(&self, _: Region) -> u64 {
        4_096
    }

    fn vectors(&self) -> u16 {
        0
    }

    fn read(&self, _: Region, _: u64, _: &mut [u8]) {}

    fn write(&self, _: Region, _: u64, _: &[u8]) {
        self.writes.set(self.writes.get() + 1);
        self.remote.stop();
    }

    fn reset(&self) {}

    fn close(&self) {}
}

#[test]
fn a_client_that_sends_without_pause_does_not_keep_the_server_from_stopping() {
    let (near, mut client) = pair();
    client.write_all(&message(1, VERSION, 0x10, &[0; 4])).unwrap();
    let write = [&payload!(0_u64, 0_u32, 4_u32)[..], b"abcd"].concat();
    let many = message(2, REGION_WRITE, 0x10, &write).repeat(MESSAGES as usize);
    client.write_all(&many).unwrap();
    let (remote, writes) = (Remote::new().unwrap(), Rc::new(Cell::new(0)));
    let (function_remote, counted) = (remote.clone(), writes.clone());
    let root = async {
        let stream = Rc::new(UnixStream::new(near).unwrap());
        let stopping = stream.clone();
        clock::spawn(async move {
            stopped().await;
            stopping.shut_down();
        });
        let make = |_, _| -> Rc<dyn PciFunction> {
            Rc::new(Stopper { remote: function_remote, writes: counted })
        };
        serve(&stream, None, |_| (), make).await
    };
    let ended = Reactor::new(None).serve(&remote, root).unwrap().0;
    assert_eq!(ended, Ended::ShutDown);
    assert!((1..MESSAGES / 2).contains(&writes.get()), "{} writes", writes.get());
}
