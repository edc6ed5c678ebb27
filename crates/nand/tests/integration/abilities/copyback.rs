use crate::abilities::rig::{
    PAGE, PLAIN, PROGRAM, READ, ends, fill_planes, on, page, ppa, ppa_of, program, read,
};
use base::{Buf, Nanos};
use clock::{Class, Stage, now, stages};
use media::Page;
use nand::{Model, Planes, Timing};

#[test]
fn a_copy_takes_a_sense_and_a_program_and_brings_all_of_the_page() {
    for model in [Model::Staged, Model::Scalar] {
        on(Timing { model, ..PLAIN }, async |nand| {
            let data = [Buf::copy_from(b"data"), Buf::phantom(16_000, 9)];
            let original = Page::new(b"spare", data);
            let (from, to) = (ppa(1, 0), ppa(5, 0));
            nand.program(from, original, Some([1; 24]), Class::HostWrite).await.unwrap();
            let before = nand.counters();
            let (start, array) = (now(), stages()[Stage::Array]);
            nand.copyback(from, to, Some([2; 24]), Class::Gc).await.unwrap();
            assert_eq!(now() - start, READ + PROGRAM);
            assert_eq!(stages()[Stage::Array] - array, READ + PROGRAM);
            let mut counters = nand.counters();
            assert_eq!(counters.copybacks, 1);
            counters.copybacks = 0;
            assert_eq!(counters, before, "a copy is no read and no program");
            let copy = nand.read(to, &|_| 0, Class::HostRead).await.unwrap();
            assert_eq!((copy.spare(), copy.data_bytes()), (&b"spare"[..], 16_004));
            assert_eq!(copy.segments()[1].checksum(), 9);
            assert_eq!(nand.read_tag(to, Class::HostRead).await.unwrap(), Some([2; 24]));
        });
    }
}

#[test]
fn a_copy_leaves_the_channel_to_others() {
    on(PLAIN, async |nand| {
        fill_planes(&nand).await;
        let copier = nand.clone();
        clock::spawn(async move {
            copier.copyback(ppa(0, 0), ppa(4, 0), Some([0; 24]), Class::Gc).await.unwrap();
        });
        let other = program(&nand, Nanos::ZERO, ppa_of(1, 0, 0), Class::HostWrite);
        assert_eq!(ends([other]).await, [PAGE + PROGRAM], "of the other die of the channel");
    });
}

#[test]
fn a_copy_has_its_plane_and_no_other_where_planes_are_independent() {
    on(Timing { planes: Planes::Independent, ..PLAIN }, async |nand| {
        fill_planes(&nand).await;
        let copier = nand.clone();
        clock::spawn(async move {
            copier.copyback(ppa(0, 0), ppa(4, 0), Some([0; 24]), Class::Gc).await.unwrap();
        });
        let steps = [0, 1].map(|block| read(&nand, Nanos(1), ppa(block, 0), Class::HostRead));
        let formula = [READ + PROGRAM + READ + PAGE, Nanos(1) + READ + PAGE];
        assert_eq!(ends(steps).await, formula);
    });
}

#[test]
#[should_panic(expected = "lie in different planes")]
fn a_copy_to_another_plane_panics() {
    on(PLAIN, async |nand| {
        fill_planes(&nand).await;
        nand.copyback(ppa(0, 0), ppa(5, 0), Some([0; 24]), Class::Gc).await.unwrap();
    });
}

#[test]
#[should_panic(expected = "has no room for its spare bytes")]
fn a_copy_that_leaves_no_room_for_the_tag_panics() {
    on(PLAIN, async |nand| {
        nand.program(ppa(0, 0), page(), Some([0; 24]), Class::HostWrite).await.unwrap();
        let full = Page::new(&[0; 1_024], []);
        nand.program(ppa(0, 1), full, None, Class::HostWrite).await.unwrap();
        nand.copyback(ppa(0, 1), ppa(4, 0), Some([0; 24]), Class::Gc).await.unwrap();
    });
}
