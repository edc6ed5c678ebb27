//! Asynchronous events (Base 2.1, Asynchronous Event Request command).

use crate::fabrics::host::{KV, Line, run};
use base::Nanos;
use controller::FlashFigures;
use spec::{Command, Feature, LogPage, NamespaceList, SmartLog, Status};

/// Event type, information and log page, as DW0 has them.
const NAMESPACES_CHANGED: u64 = 0x0004_0002;
const TEMPERATURE: u64 = 0x0002_0101;
const SPARE: u64 = 0x0002_0201;

async fn wants(admin: &Line, events: u32) {
    let set = Command::set_features(Feature::ASYNC_EVENTS, 0, events);
    assert_eq!(admin.status(set).await, Status::SUCCESS);
}

fn request(admin: &Line) -> u16 {
    admin.send(Command::async_event_request(), &[], 0)
}

/// The request that was answered, and with what.
async fn event(admin: &Line) -> (u16, u64) {
    let response = admin.next().await.expect("the connection is there");
    assert_eq!(response.entry.status(), Status::SUCCESS);
    (response.entry.command_id(), response.entry.result())
}

async fn nothing(admin: &Line) {
    assert_eq!(admin.status(Command::keep_alive()).await, Status::SUCCESS);
    assert_eq!(admin.waiting(), 0);
}

fn changed(retains: bool) -> Command {
    let get = Command::get_log_page(LogPage::CHANGED_NAMESPACES, u32::MAX, 4_096);
    if retains { get.with_retained_event() } else { get }
}

#[test]
fn a_change_is_told_once_until_its_log_page_was_read() {
    run(async |world| {
        let (admin, _) = world.admin().await;
        wants(&admin, 0x100).await;
        let (first, second) = (request(&admin), request(&admin));
        nothing(&admin).await;
        world.subsystem.namespace_changed(KV);
        assert_eq!(event(&admin).await, (first, NAMESPACES_CHANGED));
        world.subsystem.namespace_changed(3);
        nothing(&admin).await;
        let list: NamespaceList = admin.structure(changed(true)).await;
        assert_eq!(list.iter().collect::<Vec<_>>(), [KV, 3], "with RAE the host is not done");
        world.subsystem.namespace_changed(KV);
        nothing(&admin).await;
        let list: NamespaceList = admin.structure(changed(false)).await;
        assert_eq!(list.iter().count(), 2);
        nothing(&admin).await;
        let list: NamespaceList = admin.structure(changed(false)).await;
        assert_eq!(list, NamespaceList::default());
        world.subsystem.namespace_changed(KV);
        assert_eq!(event(&admin).await, (second, NAMESPACES_CHANGED));
    });
}

#[test]
fn an_event_waits_for_a_request_and_is_told_to_those_who_want_it() {
    run(async |world| {
        let ((wanting, _), (other, _)) = (world.admin().await, world.admin().await);
        wants(&wanting, 0x100).await;
        request(&other);
        world.subsystem.namespace_changed(KV);
        let id = request(&wanting);
        assert_eq!(event(&wanting).await, (id, NAMESPACES_CHANGED));
        nothing(&other).await;
        let list: NamespaceList = other.structure(changed(false)).await;
        assert_eq!(list.iter().count(), 1, "the log page works with the event disabled");
    });
}

#[test]
fn more_namespaces_than_a_list_has_are_too_many() {
    run(async |world| {
        let (admin, _) = world.admin().await;
        (1..=1_024).for_each(|nsid| world.subsystem.namespace_changed(nsid));
        let list: NamespaceList = admin.structure(changed(true)).await;
        assert_eq!(list.iter().count(), 1_024);
        (1_025..3_000).for_each(|nsid| world.subsystem.namespace_changed(nsid));
        assert!(admin.structure::<NamespaceList>(changed(false)).await.is_too_many());
    });
}

#[test]
fn four_requests_wait_at_a_time() {
    run(async |world| {
        let (admin, _) = world.admin().await;
        wants(&admin, 0x100).await;
        let ids = [(); 4].map(|()| request(&admin));
        let fifth = admin.status(Command::async_event_request()).await;
        assert_eq!(fifth, Status::ASYNC_EVENT_LIMIT_EXCEEDED);
        world.subsystem.namespace_changed(KV);
        assert_eq!(event(&admin).await.0, ids[0]);
        request(&admin);
        nothing(&admin).await;
    });
}

/// Sets a feature, and returns the event that this caused.
async fn event_of(admin: &Line, set: Command) -> (u16, u64) {
    let id = admin.send(set, &[], 0);
    let told = event(admin).await;
    assert_eq!(event(admin).await, (id, 0));
    told
}

#[test]
fn a_temperature_past_its_threshold_is_told() {
    run(async |world| {
        let (admin, _) = world.admin().await;
        let id = request(&admin);
        let set = |value| Command::set_features(Feature::TEMPERATURE_THRESHOLD, 0, value);
        assert_eq!(admin.status(set(300)).await, Status::SUCCESS);
        nothing(&admin).await;
        let want = Command::set_features(Feature::ASYNC_EVENTS, 0, 1 << 1);
        assert_eq!(event_of(&admin, want).await, (id, TEMPERATURE));
        let smart = Command::get_log_page(LogPage::SMART, u32::MAX, 512);
        let page: SmartLog = admin.structure(smart).await;
        assert_eq!(page.critical_warning, 1 << 1);
        let id = request(&admin);
        nothing(&admin).await;
        assert_eq!(admin.status(set(400)).await, Status::SUCCESS);
        // The lower threshold: it is colder than 330 K.
        assert_eq!(event_of(&admin, set(1 << 20 | 0x14a)).await, (id, TEMPERATURE));
    });
}

#[test]
fn spare_that_runs_low_is_told_to_a_host_that_is_there() {
    run(async |world| {
        let (admin, _) = world.admin_of(crate::fabrics::host::NQN, 5_000).await;
        wants(&admin, 0x1f).await;
        let id = request(&admin);
        nothing(&admin).await;
        world.flash.set(FlashFigures { spare_percent: 3, ..FlashFigures::NEW });
        crate::fabrics::host::pass(Nanos::from_millis(1_001)).await;
        assert_eq!(event(&admin).await, (id, SPARE));
    });
}
