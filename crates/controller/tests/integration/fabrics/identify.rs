//! Identify, of every structure that hosts ask for (Base 2.1 and KV 1.0d, Identify command).

use crate::fabrics::host::{BLOCK, CAPACITY, KV, NQN, ZONED, run};
use spec::{
    Cns, Command, CommandSet, IdentifyController, IdentifyNamespace, IndependentNamespace,
    IoCommandSets, KvNamespace, NamespaceDescriptor, NamespaceDescriptors, NamespaceList, Status,
};

/// An id that no namespace has.
const ABSENT: u32 = 4;

/// The first id that no namespace can have.
const NEVER: u32 = 1_025;

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().expect("there are 2"))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("there are 4"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("there are 8"))
}

#[test]
fn a_controller_says_what_hosts_of_fabrics_check() {
    run(async |world| {
        let (admin, id) = world.admin().await;
        // By the offsets of the specification, as Linux and SPDK read them.
        let bytes = admin.read(Command::identify(Cns::CONTROLLER, 0)).await;
        assert_eq!(bytes.len(), 4_096);
        assert_eq!(&bytes[4..24], b"KV-0001             ");
        assert_eq!(&bytes[24..64], b"Kvasir                                  ");
        assert_eq!(&bytes[64..72], b"1.2.3   ");
        assert_eq!(bytes[77], 9, "MDTS: 2 MiB");
        assert_eq!(u16_at(&bytes, 78), id, "CNTLID: as the Connect told");
        assert_eq!(u32_at(&bytes, 80), 0x0002_0100, "VER");
        assert_eq!(u32_at(&bytes, 92), 0x900, "OAES: namespaces, and the way to them");
        assert_eq!(u32_at(&bytes, 96) & 0x41, 0x41, "CTRATT: HIDS and TBKAS");
        assert_eq!(bytes[111], 1, "CNTRLTYPE");
        assert_eq!(bytes[259], 3, "AERL");
        assert_eq!(bytes[261] & 0b110, 0b110, "LPA: effects and offsets");
        assert_ne!(u16_at(&bytes, 320), 0, "KAS");
        assert_eq!((bytes[512], bytes[513]), (0x66, 0x44), "SQES and CQES");
        assert_eq!(u16_at(&bytes, 514), 1_024, "MAXCMD");
        assert_eq!((u32_at(&bytes, 516), u32_at(&bytes, 540)), (1_024, 1_024), "NN and MNAN");
        assert_eq!(u16_at(&bytes, 520), 0b1_1001_1101, "ONCS: Compare to Copy");
        assert_eq!(
            (u16_at(&bytes, 522), u16_at(&bytes, 532)),
            (1, 0),
            "FUSES, and ACWU of 1 block"
        );
        // Linux gives up the way to namespaces if one of these is missing.
        assert_ne!(bytes[76] & 1 << 3, 0, "CMIC: ANA");
        assert_eq!((bytes[342] > 0, bytes[343] & 1), (true, 1), "ANATT and ANACAP");
        assert_eq!((u32_at(&bytes, 344), u32_at(&bytes, 348)), (1, 1), "ANAGRPMAX and NANAGRPID");
        assert_eq!(u32_at(&bytes, 536) & 1, 1, "SGLS: without it Linux does not connect");
        assert_ne!(u32_at(&bytes, 536) & 1 << 20, 0, "SGLS: offsets");
        assert!(bytes[768..].starts_with(NQN.as_bytes()), "SUBNQN");
        assert_eq!(bytes[768 + NQN.len()], 0);
        assert_eq!(u32_at(&bytes, 1_792), (64 + 8_192) / 16, "IOCCSZ");
        assert_eq!(u32_at(&bytes, 1_796), 1, "IORCSZ");
        assert_eq!(u16_at(&bytes, 1_800), 0, "ICDOFF");
        assert_eq!(bytes[1_802], 0, "FCATT: dynamic controllers");
    });
}

#[test]
fn each_association_is_another_controller() {
    run(async |world| {
        let ((first, one), (second, other)) = (world.admin().await, world.admin().await);
        for (admin, id) in [(first, one), (second, other)] {
            let controller: IdentifyController =
                admin.structure(Command::identify(Cns::CONTROLLER, 0)).await;
            assert_eq!(controller.controller_id, id);
        }
    });
}

#[test]
fn namespaces_are_listed_after_the_one_that_is_named_and_by_command_set() {
    run(async |world| {
        let (admin, _) = world.admin().await;
        let of_set =
            |nsid, set| Command::identify(Cns::ACTIVE_NAMESPACES_OF_SET, nsid).with_csi(set);
        for (command, expected) in [
            (Command::identify(Cns::ACTIVE_NAMESPACES, 0), vec![KV, BLOCK, ZONED]),
            (Command::identify(Cns::ACTIVE_NAMESPACES, KV), vec![BLOCK, ZONED]),
            (Command::identify(Cns::ACTIVE_NAMESPACES, 0xffff_fffd), vec![]),
            (of_set(0, CommandSet::KEY_VALUE), vec![KV]),
            (of_set(0, CommandSet::NVM), vec![BLOCK]),
            (of_set(0, CommandSet::ZONED), vec![ZONED]),
            (of_set(ZONED, CommandSet::ZONED), vec![]),
        ] {
            let list: NamespaceList = admin.structure(command).await;
            assert_eq!(list.iter().collect::<Vec<_>>(), expected);
        }
        for nsid in [0xffff_fffe, 0xffff_ffff] {
            let list = Command::identify(Cns::ACTIVE_NAMESPACES, nsid);
            assert_eq!(admin.status(list).await, Status::INVALID_NAMESPACE);
        }
    });
}

#[test]
fn a_namespace_tells_its_command_set_or_linux_shows_none() {
    run(async |world| {
        let (admin, _) = world.admin().await;
        let describe = Command::identify(Cns::NAMESPACE_DESCRIPTORS, KV);
        let bytes = admin.read(describe).await;
        assert_eq!((&bytes[..4], &bytes[20..24]), (&[2, 16, 0, 0][..], &[3, 16, 0, 0][..]));
        assert_eq!(bytes[40..45], [4, 1, 0, 0, 1]);
        assert_eq!((bytes[30] >> 4, bytes[32] >> 6), (8, 0b10), "a UUID of the maker's own bits");
        assert_eq!(bytes[12] & 0b11, 0b10, "an NGUID that is locally administered");
        let blocks: IdentifyNamespace =
            admin.structure(Command::identify(Cns::NAMESPACE, KV)).await;
        assert_eq!(blocks.nguid, bytes[4..20]);
        let list: NamespaceDescriptors = admin.structure(describe).await;
        assert_eq!(list.command_set(), Some(CommandSet::KEY_VALUE));
        assert!(matches!(list.iter().nth(1), Some(NamespaceDescriptor::Uuid(_))));
        let (again, _) = world.admin().await;
        assert_eq!(again.structure::<NamespaceDescriptors>(describe).await, list);
        for (nsid, set) in [(BLOCK, CommandSet::NVM), (ZONED, CommandSet::ZONED)] {
            let describe = Command::identify(Cns::NAMESPACE_DESCRIPTORS, nsid);
            let other: NamespaceDescriptors = admin.structure(describe).await;
            assert_eq!(other.command_set(), Some(set));
            assert!(list.iter().zip(other.iter()).all(|(one, other)| one != other));
        }
        for nsid in [0, ABSENT, NEVER, u32::MAX] {
            let describe = Command::identify(Cns::NAMESPACE_DESCRIPTORS, nsid);
            assert_eq!(admin.status(describe).await, Status::INVALID_NAMESPACE);
        }
    });
}

#[test]
fn a_namespace_is_ready_or_linux_shows_none() {
    run(async |world| {
        let (admin, _) = world.admin().await;
        let bytes = admin.read(Command::identify(Cns::INDEPENDENT_NAMESPACE, KV)).await;
        assert_eq!(bytes[14] & 1, 1, "NSTAT: NRDY");
        let inactive: IndependentNamespace =
            admin.structure(Command::identify(Cns::INDEPENDENT_NAMESPACE, ABSENT)).await;
        assert!(!inactive.is_ready());
        for nsid in [0, NEVER, u32::MAX] {
            let identify = Command::identify(Cns::INDEPENDENT_NAMESPACE, nsid);
            assert_eq!(admin.status(identify).await, Status::INVALID_NAMESPACE);
        }
    });
}

#[test]
fn a_namespace_has_a_size_in_blocks_or_spdk_leaves_it_out() {
    run(async |world| {
        let (admin, _) = world.admin().await;
        let bytes = admin.read(Command::identify(Cns::NAMESPACE, KV)).await;
        assert_eq!(u64_at(&bytes, 0), CAPACITY / 512, "NSZE");
        assert_eq!(u64_at(&bytes, 8), CAPACITY / 512, "NCAP");
        assert_eq!((bytes[25], bytes[26]), (0, 0), "NLBAF and FLBAS: one format");
        assert_eq!(bytes[130], 9, "LBADS");
        let inactive: IdentifyNamespace =
            admin.structure(Command::identify(Cns::NAMESPACE, ABSENT)).await;
        assert_eq!(inactive, IdentifyNamespace::default());
        for nsid in [0, NEVER] {
            let identify = Command::identify(Cns::NAMESPACE, nsid);
            assert_eq!(admin.status(identify).await, Status::INVALID_NAMESPACE);
        }
    });
}

#[test]
fn a_block_namespace_tells_its_blocks_and_what_a_copy_may_have() {
    run(async |world| {
        let (admin, _) = world.admin().await;
        let bytes = admin.read(Command::identify(Cns::NAMESPACE, BLOCK)).await;
        assert_eq!([0, 8, 16].map(|at| u64_at(&bytes, at)), [100; 3], "NSZE, NCAP and NUSE");
        assert_eq!((bytes[25], bytes[26] & 0xf, bytes[130]), (0, 0, 12), "one format, of 4 KiB");
        assert_eq!((bytes[128], bytes[129]), (0, 0), "MS: no metadata");
        assert_eq!(bytes[33] & 0b1111, 0b1001, "DLFEAT: zeros, and Write Zeroes deallocates");
        assert_eq!(u64_at(&bytes, 48), 100 * 4_096, "NVMCAP");
        assert_eq!((u16_at(&bytes, 74), u32_at(&bytes, 76), bytes[80]), (512, 512, 255));
        assert_eq!(u32_at(&bytes, 92), 1, "ANAGRPID");
        let of_set = Command::identify(Cns::NAMESPACE_OF_SET, BLOCK);
        assert_eq!(admin.read(of_set.with_csi(CommandSet::NVM)).await, [0; 4_096]);
        // What a host needs to know before it creates a namespace.
        let bytes = admin.read(Command::identify(Cns::NAMESPACE, u32::MAX)).await;
        assert_eq!((bytes[25], bytes[130], u64_at(&bytes, 0)), (0, 12, 0));
    });
}

#[test]
fn a_zoned_namespace_tells_its_zones_or_linux_shows_none() {
    run(async |world| {
        let (admin, _) = world.admin().await;
        // Eight zones of 12 blocks that start 16 apart; 3 may be active, 2 of these open.
        let bytes = admin.read(Command::identify(Cns::NAMESPACE, ZONED)).await;
        assert_eq!([0, 8, 16].map(|at| u64_at(&bytes, at)), [128, 96, 96]);
        assert_eq!((bytes[26] & 0xf, bytes[130], bytes[33]), (0, 12, 0));
        let of_set = Command::identify(Cns::NAMESPACE_OF_SET, ZONED);
        let bytes = admin.read(of_set.with_csi(CommandSet::ZONED)).await;
        assert_eq!((u16_at(&bytes, 0), u16_at(&bytes, 2)), (0, 0), "ZOC and OZCS");
        assert_eq!((u32_at(&bytes, 4), u32_at(&bytes, 8)), (2, 1), "MAR and MOR, 0's based");
        assert_eq!((u64_at(&bytes, 2_816), bytes[2_824]), (16, 0), "ZSZE: a power of two; ZDES");
        assert!(bytes[2_832..].iter().all(|&byte| byte == 0));
    });
}

#[test]
fn a_key_value_namespace_tells_its_format() {
    run(async |world| {
        let (admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        assert_eq!(io.store(b"key", &[7; 1_000]).await, Status::SUCCESS);
        let identify = Command::identify(Cns::NAMESPACE_OF_SET, KV).with_csi(CommandSet::KEY_VALUE);
        let bytes = admin.read(identify).await;
        assert_eq!(u64_at(&bytes, 0), CAPACITY, "NSZE in bytes");
        assert_eq!(u64_at(&bytes, 16), world.device.store().live_pairs().bytes, "NUSE");
        assert!(u64_at(&bytes, 16) > 1_000);
        assert_eq!(bytes[25], 0, "NKVF is 0's based: one format");
        assert_eq!(u16_at(&bytes, 72), 16, "KVKML");
        assert_eq!(u32_at(&bytes, 76), 2 << 20, "KVVML");
        assert_eq!(u32_at(&bytes, 80), 0, "MNKS: no limit");
        assert!(bytes[88..].iter().all(|&byte| byte == 0));
        let format = Command::identify(Cns::FORMAT_OF_SET, KV).with_csi(CommandSet::KEY_VALUE);
        let format: KvNamespace = admin.structure(format).await;
        assert_eq!((format.size.get(), format.formats[0].key_bytes_max.get()), (0, 16));
    });
}

#[test]
fn command_sets_are_told_and_unknown_ones_are_invalid_fields() {
    run(async |world| {
        let (admin, _) = world.admin().await;
        for set in [CommandSet::NVM, CommandSet::KEY_VALUE, CommandSet::ZONED] {
            let identify = Command::identify(Cns::CONTROLLER_OF_SET, 0).with_csi(set);
            assert_eq!(admin.read(identify).await, [0; 4_096]);
        }
        // Invalid I/O Command Set in their place makes SPDK give the controller up.
        for (cns, set) in [
            (Cns::CONTROLLER_OF_SET, 3),
            (Cns::CONTROLLER_OF_SET, 0x1f),
            (Cns::NAMESPACE_OF_SET, 0),
            (Cns::NAMESPACE_OF_SET, 2),
            (Cns::NAMESPACE_OF_SET, 3),
            (Cns::ACTIVE_NAMESPACES_OF_SET, 3),
            (Cns::FORMAT_OF_SET, 3),
            (Cns(0x09), 0),
            (Cns(0x1f), 0),
        ] {
            let identify = Command::identify(cns, KV).with_csi(CommandSet(set));
            assert_eq!(admin.status(identify).await, Status::INVALID_FIELD, "{cns} {set}");
        }
        let sets: IoCommandSets = admin.structure(Command::identify(Cns::IO_COMMAND_SETS, 0)).await;
        assert_eq!(sets.len(), 1);
        for set in [CommandSet::NVM, CommandSet::KEY_VALUE, CommandSet::ZONED] {
            assert!(sets.contains(0, set));
        }
    });
}

#[test]
fn a_host_that_takes_less_than_a_structure_is_told_so() {
    run(async |world| {
        let (admin, _) = world.admin().await;
        let identify = Command::identify(Cns::CONTROLLER, 0);
        let response = admin.answer(identify, &[], 4_095).await;
        assert_eq!(response.entry.status(), Status::DATA_SGL_LENGTH_INVALID);
        assert_eq!(response.data.len(), 0);
    });
}
