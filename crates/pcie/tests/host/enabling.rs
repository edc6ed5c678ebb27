use crate::ram::place;
use crate::world::{BLOCK, KV, run};
use pcie::{PciFunction, Region};
use spec::{
    Capabilities, Cns, Command, Configuration, ControllerStatus, Feature, FormatOptions,
    IdentifyController, Property, Shutdown, ShutdownStatus, Status, Version,
};
use zerocopy::FromBytes;

#[test]
fn a_host_reads_what_the_controller_is() {
    run(1, async |world| {
        let driver = world.attach();
        let halves = [driver.read(0), driver.read(4)].map(u64::from);
        let capabilities = Capabilities(halves[1] << 32 | halves[0]);
        assert_eq!(capabilities.queue_entries(), 1_023, "clients count on 1,024");
        assert!(capabilities.contains(Capabilities::CONTIGUOUS_QUEUES));
        assert!(capabilities.contains(Capabilities::COMMAND_SETS), "Linux wants it for KV");
        assert!(capabilities.contains(Capabilities::NVM_COMMAND_SET), "SeaBIOS knows no other");
        assert_eq!(halves[1] & 0xf, 0, "doorbells every 4 bytes");
        assert_eq!(driver.property(Property::VS), Version::V2_1.0);
        assert_eq!(driver.status(), ControllerStatus(0));
        // A read of 8 bytes is that of both halves.
        let mut whole = [0; 8];
        driver.function.read(Region::Bar0, 0, &mut whole);
        assert_eq!(u64::from_le_bytes(whole), capabilities.0);
        // And bytes may be read alone: VS is 2.1.0.
        let mut byte = [0];
        driver.function.read(Region::Bar0, 0x09, &mut byte);
        assert_eq!(byte, [1]);
    });
}

#[test]
fn seabios_and_then_linux_enable_the_controller() {
    run(2, async |world| {
        let driver = world.attach();
        // SeaBIOS: the NVM command set only, and no page is kept when Linux begins.
        let [submission, completion] = [driver.ram.allocate(1), driver.ram.allocate(1)];
        driver.set_admin_queues(submission, completion, 32);
        assert_eq!(driver.property(Property::AQA), 0x001f_001f);
        driver.configure(Configuration(0x0046_0001));
        assert_eq!(driver.status(), ControllerStatus::READY);
        driver.configure(Configuration(0));
        assert_eq!(driver.status(), ControllerStatus(0));
        driver.ram.unmap(submission, 1);
        driver.ram.unmap(completion, 1);
        driver.enable();
        let data = driver.ram.allocate(1);
        let identify = Command::identify(Cns::CONTROLLER, 0).with_prp([data, 0]);
        assert_eq!(driver.admin(identify).await.status(), Status::SUCCESS);
        let found = driver.ram.get(data, 4_096);
        let found = IdentifyController::read_from_bytes(&found).unwrap();
        assert_eq!(found.vendor_id.get(), 0x4b56, "as in configuration space");
        assert_eq!(found.command_capsule_size.get(), 0, "it is of fabrics only");
        assert_eq!(found.optional_admin_commands.get() & 1 << 8, 1 << 8, "Doorbell Buffer Config");
    });
}

#[test]
fn a_reset_ends_commands_without_a_trace() {
    run(3, async |world| {
        let driver = world.host(16).await;
        let data = place(&driver.ram, 0, &[7; 4_096]);
        let closed = world.gate.close();
        driver.submit(1, Command::write(BLOCK, 3, 1).with_prp([data, 0]));
        driver.submit(0, Command::async_event_request());
        driver.settle().await;
        driver.configure(Configuration(0));
        assert_eq!(driver.status(), ControllerStatus(0));
        let (writes, raised) = (driver.ram.writes(), driver.raised.total());
        drop(closed);
        driver.settle().await;
        assert_eq!(driver.ram.writes(), writes, "nothing is written to memory");
        assert_eq!(driver.raised.total(), raised);
        // The command ran to its end, and the next driver finds what it wrote.
        driver.enable();
        driver.create_queue(1, 16).await;
        let back = driver.ram.allocate(1);
        let read = Command::read(BLOCK, 3, 1).with_prp([back, 0]);
        assert_eq!(driver.execute(1, read).await.status(), Status::SUCCESS);
        assert_eq!(driver.ram.get(back, 4_096), vec![7; 4_096]);
    });
}

#[test]
fn all_resets_give_a_new_controller() {
    run(4, async |world| {
        let driver = world.host(16).await;
        for reset in [0, 1, 2, 3] {
            // Command: memory space and bus master.
            driver.function.write(Region::Config, 0x04, &[0x06]);
            match reset {
                0 => driver.function.reset(),
                // Function level reset: Device Control is at 58h, its bit 15 in the second byte.
                1 => driver.function.write(Region::Config, 0x58, &[0, 0x80]),
                2 => driver.write(Property::NSSR.0.into(), Property::RESET_SUBSYSTEM),
                _ => driver.configure(Configuration(0)),
            }
            assert!(!driver.status().is_ready());
            assert_eq!(driver.property(Property::CC), 0);
            let is_of_function = reset < 2;
            assert_eq!(driver.property(Property::AQA) == 0, is_of_function, "reset {reset}");
            let mut command = [0];
            driver.function.read(Region::Config, 0x04, &mut command);
            assert_eq!(command == [0], is_of_function, "reset {reset}");
            driver.enable();
            driver.create_queue(1, 16).await;
            let exist = Command::exist(KV, b"none");
            let status = driver.execute(1, exist).await.status();
            assert_eq!(status, Status::KEY_DOES_NOT_EXIST);
        }
    });
}

#[test]
fn a_reset_of_the_subsystem_ends_the_queues_of_other_hosts() {
    run(5, async |world| {
        let (first, second) = (world.host(16).await, world.host(16).await);
        first.write(Property::NSSR.0.into(), Property::RESET_SUBSYSTEM);
        assert!(!second.status().is_ready());
        assert!(second.status().is_subsystem_reset());
        let writes = second.ram.writes();
        second.submit(1, Command::exist(KV, b"none"));
        second.settle().await;
        assert_eq!(second.ram.writes(), writes);
        second.enable();
        second.create_queue(1, 16).await;
        second.execute(1, Command::exist(KV, b"none")).await;
    });
}

#[test]
fn a_reset_of_the_subsystem_ends_admin_commands_of_other_hosts() {
    run(12, async |world| {
        let (first, second) = (world.host(16).await, world.host(16).await);
        let closed = world.gate.close();
        first.submit(1, Command::exist(KV, b"none"));
        first.settle().await;
        // Format NVM waits until the namespace executes no command.
        let options = FormatOptions {
            format: 0,
            protection: 0,
            secure_erase: FormatOptions::NO_SECURE_ERASE,
        };
        second.submit(0, Command::format_namespace(KV, options));
        second.settle().await;
        first.write(Property::NSSR.0.into(), Property::RESET_SUBSYSTEM);
        let before = (second.ram.writes(), second.raised.total());
        drop(closed);
        second.settle().await;
        assert_eq!((second.ram.writes(), second.raised.total()), before);
        second.enable();
        second.admin(Command::keep_alive()).await;
    });
}

#[test]
fn a_shutdown_completes() {
    run(6, async |world| {
        let driver = world.host(16).await;
        assert_eq!(driver.admin(Command::delete_io_sq(1)).await.status(), Status::SUCCESS);
        assert_eq!(driver.admin(Command::delete_io_cq(1)).await.status(), Status::SUCCESS);
        let enabled = Configuration::ENABLE_ALL_COMMAND_SETS;
        driver.configure(enabled.with_shutdown(Shutdown::Normal));
        assert_eq!(driver.status().shutdown(), ShutdownStatus::Complete);
        driver.configure(Configuration(0));
        driver.enable();
    });
}

#[test]
fn admin_queues_that_cannot_be_are_fatal() {
    run(7, async |world| {
        let driver = world.attach();
        let page = driver.ram.allocate(1);
        for (submission, completion, entries) in [(page + 8, page, 32), (page, page + 8, 32)] {
            driver.set_admin_queues(submission, completion, entries);
            driver.configure(Configuration::ENABLE_ALL_COMMAND_SETS);
            assert!(driver.status().is_fatal());
            driver.configure(Configuration(0));
            assert!(!driver.status().is_fatal());
        }
        driver.set_admin_queues(page, page, 1);
        driver.configure(Configuration::ENABLE_ALL_COMMAND_SETS);
        assert!(driver.status().is_fatal(), "a queue has 2 entries at least");
        driver.configure(Configuration(0));
        driver.enable();
    });
}

#[test]
fn registers_of_an_enabled_controller_stay() {
    run(8, async |world| {
        let driver = world.host(16).await;
        let before = driver.property(Property::AQA);
        driver.write(Property::AQA.0.into(), 0x0003_0003);
        driver.write(Property::CAP.0.into(), 0);
        driver.write(Property::CSTS.0.into(), 0);
        // Only whole dwords are written.
        driver.function.write(Region::Bar0, Property::CC.0.into(), &[0, 0]);
        driver.function.write(Region::Bar0, 0x15, &[0, 0, 0, 0]);
        assert_eq!(driver.property(Property::AQA), before);
        assert!(driver.status().is_ready());
        let features =
            Command::get_features(Feature::NUMBER_OF_QUEUES, 0, spec::FeatureSelect::Current);
        assert_eq!(driver.admin(features).await.result(), 0x003f_003f);
    });
}

#[test]
fn a_closed_function_leaves_memory_and_controller() {
    run(9, async |world| {
        let driver = world.host(16).await;
        let closed = world.gate.close();
        let room = driver.ram.allocate(1);
        driver.submit(1, Command::read(BLOCK, 0, 1).with_prp([room, 0]));
        driver.settle().await;
        driver.function.close();
        let writes = driver.ram.writes();
        drop(closed);
        driver.settle().await;
        assert_eq!(driver.ram.writes(), writes);
        // 256 controllers are the limit: closed ones do not count.
        for _ in 0..300 {
            world.attach().function.close();
        }
    });
}

#[test]
fn features_of_interrupts_are_there_and_end_with_a_reset() {
    run(10, async |world| {
        let driver = world.host(16).await;
        let set = |feature, value| Command::set_features(feature, 0, value);
        // The value of a Get Features of a vector is in CDW11, as that of a Set Features.
        let get = |feature, value| {
            let mut bytes: [u8; 64] = zerocopy::transmute!(set(feature, value));
            bytes[0] = 0x0a;
            let command: Command = zerocopy::transmute!(bytes);
            command
        };
        let (all, one) = (Feature::INTERRUPT_COALESCING, Feature::INTERRUPT_VECTOR);
        for (command, result) in [
            (get(all, 0), 0),
            (set(all, 0x0a05), 0),
            (get(all, 0), 0x0a05),
            (get(one, 64), 64),
            (set(one, 0x1_0003), 0),
            (get(one, 3), 0x1_0003),
            (get(one, 2), 2),
        ] {
            let found = driver.admin(command).await;
            assert_eq!((found.status(), found.result()), (Status::SUCCESS, result), "{command:?}");
        }
        for command in [get(one, 65), set(one, 65)] {
            assert_eq!(driver.admin(command).await.status(), Status::INVALID_FIELD);
        }
        driver.configure(Configuration(0));
        driver.enable();
        assert_eq!(driver.admin(get(all, 0)).await.result(), 0);
        assert_eq!(driver.admin(get(one, 3)).await.result(), 3);
    });
}

#[test]
fn a_host_on_pcie_has_no_keep_alive_timer() {
    run(11, async |world| {
        let driver = world.host(16).await;
        let set = Command::set_features(Feature::KEEP_ALIVE_TIMER, 0, 5_000);
        assert_eq!(driver.admin(set).await.status(), Status::INVALID_FIELD);
        let data = driver.ram.allocate(1);
        driver.admin(Command::identify(Cns::CONTROLLER, 0).with_prp([data, 0])).await;
        assert_eq!(driver.ram.get(data + 320, 2), [0, 0], "KAS");
    });
}

#[test]
fn a_function_that_is_no_bus_master_touches_neither_memory_nor_interrupts() {
    run(9, async |world| {
        let driver = world.host(8).await;
        let closed = world.gate.close();
        driver.submit(1, Command::exist(KV, b"k"));
        driver.settle().await;
        driver.set_bus_master(false);
        let before = (driver.ram.writes(), driver.raised.total());
        drop(closed);
        driver.settle().await;
        // The completion has no place.
        assert!(driver.status().is_fatal());
        assert_eq!((driver.ram.writes(), driver.raised.total()), before);
        // Enabled again without it, the controller fetches nothing.
        driver.configure(Configuration(0));
        driver.enable();
        driver.set_bus_master(false);
        driver.submit(0, Command::keep_alive());
        driver.settle().await;
        assert!(driver.status().is_fatal());
        driver.configure(Configuration(0));
        driver.enable();
        driver.admin(Command::keep_alive()).await;
        // A function level reset clears it.
        driver.function.reset();
        let mut command = [0];
        driver.function.read(Region::Config, 0x04, &mut command);
        assert_eq!(command, [0]);
    });
}
