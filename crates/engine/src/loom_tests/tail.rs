//! The tail of an extent: a reactor stores a record and lands its page, while another looks the key
//! up, reads the record from the page on its way or from the medium, and waits for the landing.

use super::{Pinning, Scene, TABLE, VALUE_BYTES};
use crate::format::page_view::vouched_header;
use crate::format::record::{Header, InBatch, Kind, Sequence};
use crate::log::Visit;
use crate::write::pending::durable;
use crate::write::undo::Revocable;
use base::{Buf, Key};
use loom::thread;
use media::{ExtentId, Stream};
use reactor::check_by_loom;
use std::slice::from_ref;

fn key() -> Key {
    Key::new(b"key").unwrap()
}

/// Stores a value and closes its page, as `Attempt` does with the key's lane locked. Returns once
/// it is durable.
async fn store(scene: &Scene) {
    let (log, key) = (&scene.log, key());
    let hash = key.hash();
    let value = Buf::phantom(VALUE_BYTES, 1);
    let mut header = Header {
        sequence: Sequence::default(),
        kind: Kind::Value,
        table: TABLE,
        value_len: VALUE_BYTES,
        value_crc: 0,
        value_offset: 0,
        expires: None,
        batch: InBatch::default(),
        key: key.as_bytes(),
    };
    let appended = {
        let mut lanes = log.lanes.lock(hash);
        let mut writing = log.writing();
        let mut part = writing.part();
        let appended = log.append(&mut part, Stream::Host, &mut header, &value).unwrap();
        log.pad(&mut part, Stream::Host);
        lanes.of(hash).entries.insert(TABLE, hash, appended.address);
        appended
    };
    durable(&appended.pages).await.unwrap();
}

/// Reads the record of a visit: from memory when its page has landed, or from the page on its way.
async fn read(scene: &Scene, visit: &mut Visit<'_>) {
    let log = &scene.log;
    if let Some(unlanded) = visit.on_its_way.record.take() {
        assert_eq!((unlanded.header.key, unlanded.part.len()), (key(), VALUE_BYTES));
        durable(from_ref(&unlanded.pages)).await.unwrap();
        assert!(log.has_landed(visit.address), "a page settles before its waiters go on");
    }
    let memory = log.media.as_memory().unwrap();
    memory.with_page(log.page_id(visit.address), |page| {
        let header = vouched_header(&log.layout, page, log.layout.offset(visit.address)).unwrap();
        assert_eq!(header.key, key().as_bytes());
    });
}

#[test]
fn loom_reader_finds_a_record_on_its_way_or_on_the_medium() {
    check_by_loom(None, || {
        let scene = Scene::new(2, 0);
        let other = scene.clone();
        let storing = thread::spawn(move || other.run(1, store(&other)));
        scene.run(0, async {
            let mut found = 0;
            for _ in 0..2 {
                let mut visits = scene.visits(key().hash(), Pinning::AtOnce);
                assert!(visits.len() >= found, "a record that was found stays");
                found = visits.len();
                for visit in &mut visits {
                    read(&scene, visit).await;
                }
            }
        });
        storing.join().unwrap();
        assert_eq!(scene.visits(key().hash(), Pinning::AtOnce).len(), 1);
    });
}

#[test]
fn loom_task_that_waits_for_a_decision_is_woken() {
    check_by_loom(None, || {
        let scene = Scene::new(2, 0);
        let other = scene.clone();
        let storing = thread::spawn(move || other.run(1, store(&other)));
        scene.run(0, async {
            let seen = scene.log.watch_decisions();
            if seen == 0 {
                scene.log.decision_after(seen).await;
            }
            assert_eq!(scene.log.watch_decisions(), 1);
        });
        storing.join().unwrap();
    });
}

#[test]
fn loom_task_that_waits_for_the_last_revocable_record_is_woken() {
    check_by_loom(None, || {
        let scene = Scene::new(2, 0);
        let log = scene.log.writing().writer().log.reference(&scene.log);
        let revocable = Revocable::new(log, ExtentId(0), None);
        let other = scene.clone();
        let ending = thread::spawn(move || other.run(1, async { drop(revocable) }));
        scene.run(0, async {
            let seen = scene.log.watch_decisions();
            if scene.log.pins.has_revocable(ExtentId(0)) {
                scene.log.decision_after(seen).await;
            }
            assert!(!scene.log.pins.has_revocable(ExtentId(0)));
        });
        ending.join().unwrap();
    });
}
