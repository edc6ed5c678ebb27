use crate::abilities::rig::{
    ERASE, PAGE, PLAIN, READ, ends, erase, fill_planes, on, ppa, read, times,
};
use base::Nanos;
use clock::Class;
use nand::{Model, Order, Planes, Registers, Timing};

/// Returns when a host's read is done that arrives at `at`, behind four erases of its plane.
fn read_behind_erases(timing: Timing, at: Nanos) -> Nanos {
    on(timing, async |nand| {
        fill_planes(&nand).await;
        let erases = (1..5).map(|n| erase(&nand, Nanos::ZERO, 4 * n, Class::Gc));
        let host = read(&nand, at, ppa(0, 0), Class::HostRead);
        *ends(erases.chain([host])).await.last().expect("the read")
    })
}

#[test]
fn a_read_passes_collection_that_waits_but_not_what_is_under_way() {
    for at in [Nanos(1), Nanos::from_micros(3_000)] {
        let formula = ERASE + READ + PAGE;
        for planes in [Planes::Alone, Planes::Together, Planes::Independent] {
            let timing = Timing { planes, ..PLAIN };
            assert_eq!(read_behind_erases(timing, at), formula, "{planes:?}");
        }
        let with_read_registers =
            Timing { planes: Planes::Together, registers: Registers::Double, ..PLAIN };
        assert_eq!(read_behind_erases(with_read_registers, at), formula);
        let scalar = read_behind_erases(Timing { model: Model::Scalar, ..PLAIN }, at);
        assert_ne!(scalar, formula);
        assert_eq!(scalar, times(4, ERASE) + READ + PAGE, "it has no classes");
    }
}

#[test]
fn in_order_of_arrival_a_read_waits_for_all_before_it() {
    let timing = Timing { order: Order::Arrival, ..PLAIN };
    let end = read_behind_erases(timing, Nanos(1));
    assert_eq!(end, times(4, ERASE) + READ + PAGE);
}
