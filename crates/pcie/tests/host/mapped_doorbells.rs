use crate::world::{KV, run_real};
use pcie::DoorbellPage;
use spec::{
    AdminOpcode, Cns, Command, Configuration, IdentifyController, LogPage, Shutdown, Status,
};
use zerocopy::FromBytes;

#[test]
fn a_mapped_page_has_the_doorbells_of_all_queues() {
    for seed in 0..10 {
        run_real(seed, async |world| {
            let driver = world.attach_mapped();
            driver.enable();
            driver.create_queue(1, 4).await;
            driver.create_queue(2, 64).await;
            for number in 0..200 {
                let queue = 1 + number % 2;
                let found = driver.execute(queue, Command::exist(KV, b"k")).await;
                assert_eq!(found.status(), Status::KEY_DOES_NOT_EXIST);
            }
            assert_eq!(driver.doorbells.get(), 0, "none was written to the function itself");
            assert!(driver.status().is_ready());
        });
    }
}

#[test]
fn completions_wait_for_a_mapped_head() {
    run_real(1, async |world| {
        let driver = world.attach_mapped();
        driver.enable();
        driver.create_queue(1, 4).await;
        for _ in 0..3 {
            driver.submit(1, Command::exist(KV, b"k"));
        }
        driver.settle().await;
        driver.submit(1, Command::exist(KV, b"k"));
        driver.settle().await;
        assert_eq!(std::iter::from_fn(|| driver.try_next(1)).count(), 3);
        driver.ring_head(1);
        driver.settle().await;
        assert!(driver.try_next(1).is_some());
    });
}

#[test]
fn a_new_queue_does_not_begin_with_the_doorbells_of_an_earlier_one() {
    run_real(2, async |world| {
        let driver = world.attach_mapped();
        for _ in 0..3 {
            driver.enable();
            driver.create_queue(1, 64).await;
            for _ in 0..7 {
                driver.execute(1, Command::exist(KV, b"k")).await;
            }
            assert_eq!(driver.admin(Command::delete_io_sq(1)).await.status(), Status::SUCCESS);
            assert_eq!(driver.admin(Command::delete_io_cq(1)).await.status(), Status::SUCCESS);
            driver.create_queue(1, 8).await;
            driver.function.look();
            driver.settle().await;
            assert!(driver.try_next(1).is_none(), "nothing was submitted to the new queue");
            driver.execute(1, Command::exist(KV, b"k")).await;
            driver.configure(Configuration(0));
        }
    });
}

#[test]
fn a_mapped_doorbell_out_of_range_fails_the_controller() {
    run_real(3, async |world| {
        let driver = world.attach_mapped();
        driver.enable();
        driver.create_queue(1, 8).await;
        driver.mapped.as_ref().expect("it is mapped").store(8, 8);
        assert!(!driver.function.look());
        driver.settle().await;
        assert!(driver.status().is_fatal());
        driver.configure(Configuration(0));
        driver.enable();
        driver.admin(Command::keep_alive()).await;
    });
}

#[test]
fn a_doorbell_written_to_the_function_is_one_of_the_page() {
    run_real(4, async |world| {
        let driver = world.attach_mapped();
        driver.enable();
        driver.create_queue(1, 8).await;
        driver.push(1, Command::exist(KV, b"k").with_command_id(5));
        driver.write(0x1008, 1);
        assert_eq!(driver.next(1).await.command_id(), 5);
        // Doorbells of queues that do not exist.
        driver.write(0x1ffc, 7);
        driver.write(0x1010, u32::MAX);
        driver.settle().await;
        assert!(driver.status().is_ready());
    });
}

#[test]
fn shadow_doorbells_are_not_offered_beside_mapped_ones() {
    run_real(5, async |world| {
        for (driver, is_offered) in [(world.attach(), true), (world.attach_mapped(), false)] {
            driver.enable();
            let page = driver.ram.allocate(1);
            let identify = Command::identify(Cns::CONTROLLER, 0).with_prp([page, 0]);
            assert_eq!(driver.admin(identify).await.status(), Status::SUCCESS);
            let bytes = driver.ram.get(page, 4_096);
            let identify = IdentifyController::read_from_bytes(&bytes).expect("it has 4,096 bytes");
            let commands = identify.optional_admin_commands.get();
            assert_eq!(commands & IdentifyController::DOORBELL_BUFFER != 0, is_offered);
            let effects =
                Command::get_log_page(LogPage::COMMAND_EFFECTS, 0, 4_096).with_prp([page, 0]);
            assert_eq!(driver.admin(effects).await.status(), Status::SUCCESS);
            let at = page + u64::from(AdminOpcode::DOORBELL_BUFFER_CONFIG.0) * 4;
            assert_eq!(driver.ram.get(at, 1)[0] & 1 == 1, is_offered);
            let (values, indexes) = (driver.ram.allocate(1), driver.ram.allocate(1));
            let config = Command::doorbell_buffer_config(values, indexes);
            let status = if is_offered { Status::SUCCESS } else { Status::INVALID_OPCODE };
            assert_eq!(driver.admin(config).await.status(), status);
        }
    });
}

#[test]
fn a_host_with_mapped_doorbells_cannot_be_asked_for_others_while_it_has_a_controller() {
    run_real(6, async |world| {
        let shadow = world.host(8).await;
        assert!(shadow.function.can_arm());
        let driver = world.attach_mapped();
        assert!(driver.function.can_arm(), "it enables the controller by a write");
        driver.enable();
        assert!(!driver.function.can_arm());
        driver.configure(Configuration::ENABLE_ALL_COMMAND_SETS.with_shutdown(Shutdown::Normal));
        driver.settle().await;
        assert!(driver.function.can_arm());
        driver.configure(Configuration(0));
        driver.enable();
        assert!(!driver.function.can_arm());
    });
}
