//! The first reply of a target that sleeps, beside an echo that blocks in the kernel.

use experiments::loopback::echo::{self, Values, Wait};
use experiments::loopback::exchange::{Exchange, Kind};
use experiments::loopback::load::{Grants, Load};
use experiments::loopback::target::{Kept, Target};
use experiments::median;
use std::net::TcpStream;
use std::time::Duration;

/// The pause between requests, after which a reactor sleeps.
const PAUSE: Duration = Duration::from_millis(5);

const REPLIES: usize = 50;

const ONE: Exchange = Exchange { kind: Kind::Retrieve, value_bytes: 64, depth: 1 };

pub(crate) fn report(rounds: usize) {
    let (mut echoes, mut targets) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let (address, server) = echo::start(Wait::Block, ONE.value_bytes, Values::One);
        let stream = TcpStream::connect(address).expect("the echo listens");
        let mut load = Load::new(stream, Grants::None, ONE.value_bytes);
        echoes.push(first_reply(&mut load));
        drop(load);
        server.join().expect("the echo ends with its client");

        let target = Target::start(Kept::InMemory, Kind::Retrieve);
        let connected = target.connect();
        let grants = Grants::Awaited { data_max: connected.data_max };
        let mut load = Load::new(connected.io, grants, ONE.value_bytes);
        load.set_keys(1);
        load.run(Exchange { kind: Kind::Store, ..ONE }, 1);
        targets.push(first_reply(&mut load));
        drop(load);
        drop(connected.admin);
        target.stop();
    }
    let (echo, target) = (median(&mut echoes), median(&mut targets));
    println!(
        "first reply after {PAUSE:?} of silence: echo {echo:.1} us, mem: {target:.1} us, \
         {:.1} us more; bar 30 us",
        target - echo
    );
}

/// Returns the median time of a first reply, in microseconds.
fn first_reply(load: &mut Load) -> f64 {
    let mut times: Vec<f64> = (0..REPLIES)
        .map(|_| {
            std::thread::sleep(PAUSE);
            load.run(ONE, 1) * 1e6
        })
        .collect();
    median(&mut times)
}
