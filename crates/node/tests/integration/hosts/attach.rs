//! What Linux sends between the first byte of a connection and the first look at namespaces.

use crate::hosts::answer::Answer;
use crate::hosts::entry::{ALL, CAP, CC, CRTO, CSTS, Entry, VS};
use crate::hosts::line::{Ids, Line};
use crate::hosts::linux::Linux;
use crate::hosts::world::World;
use base::Nanos;
use clock::Stage;

/// /etc/nvme/hostid and /etc/nvme/hostnqn.
pub(crate) const HOST_ID: [u8; 16] =
    *b"\x8d\x1b\x2c\x3e\x40\x51\x42\x63\x84\x75\x06\x17\x28\x39\x4a\x5b";
pub(crate) const HOST_NQN: &str =
    "nqn.2014-08.org.nvmexpress:uuid:8d1b2c3e-4051-4263-8475-061728394a5b";

/// The id of Linux's request for events: no request has this tag.
const EVENT_ID: u16 = 31;

/// Half of what may pass without a sign of life; a quarter when any command is one (TBKAS).
const IDLE: Nanos = Nanos::from_millis(1_250);

/// A Linux that is connected to a subsystem.
pub(crate) struct Host {
    pub(crate) linux: Linux,
    nqn: &'static str,
    pub(crate) admin: Line,
    pub(crate) queues: Vec<Line>,
    pub(crate) controller_id: u16,
    /// Bytes that a command moves at most, by MDTS.
    pub(crate) transfer_max: u64,
}

/// The data of a Connect (Base 2.1, Connect command): Host Identifier, Controller ID, and names.
pub(crate) fn connect_data(controller_id: u16, nqn: &str) -> Vec<u8> {
    let mut data = vec![0; 1_024];
    data[..16].copy_from_slice(&HOST_ID);
    data[16..18].copy_from_slice(&controller_id.to_le_bytes());
    data[256..256 + nqn.len()].copy_from_slice(nqn.as_bytes());
    data[512..512 + HOST_NQN.len()].copy_from_slice(HOST_NQN.as_bytes());
    data
}

/// Returns when the target has let go of every connection.
pub(crate) async fn settle(world: &World) {
    clock::sleep(Nanos::from_secs(1), Stage::Queue).await;
    assert_eq!(world.connections(), 0, "all connections are closed");
}

impl Host {
    /// Connects the admin queue and enables the controller.
    pub(crate) async fn attach(
        world: &World,
        linux: Linux,
        nqn: &'static str,
        keep_alive_ms: u32,
    ) -> Self {
        let admin = Line::open(world, linux.name, Ids::Generations, linux.digests).await;
        let mut host =
            Self { linux, nqn, admin, queues: Vec::new(), controller_id: 0, transfer_max: 0 };
        let connect = host.flow(Entry::connect(0, 31, keep_alive_ms)).moves(1_024);
        let data = connect_data(0xffff, nqn);
        let connected = host.admin.give("Connect of the admin queue", connect, &data).await.ok();
        let connected = connected.needs(
            "ATHRREQ",
            |answer| answer.result >> 16 == 0,
            "It has no key, and does not connect",
        );
        host.controller_id = u16::try_from(connected.result).expect("no authentication");
        host.enable().await;
        host.identify().await;
        host
    }

    /// The Connect as `nvme connect` was asked for it.
    fn flow(&self, connect: Entry) -> Entry {
        if self.linux.has_flow_control { connect } else { connect.without_flow_control() }
    }

    async fn enable(&mut self) {
        let Self { admin, linux, .. } = self;
        let cap = admin.ask("Property Get CAP", Entry::property_get(CAP)).await.ok();
        let cap = cap
            .needs(
                "CAP.CSS bit 6",
                |answer| answer.result >> 43 & 1 == 1,
                "It asks for the NVM command set alone, and shows no namespace of another one",
            )
            .needs(
                "CAP.MPSMIN",
                |answer| (answer.result >> 48) % 16 == 0,
                "Pages of 4 KiB are too small for the controller, and it does not connect",
            )
            .needs(
                "CAP.MQES",
                |answer| answer.result & 0xffff >= 127,
                "It makes its queues of 128 entries smaller",
            );
        admin.ask("Property Set CC", Entry::property_set(CC, 0x0046_0060)).await.ok();
        if linux.reads_configuration_back {
            let cc = admin.ask("Property Get CC", Entry::property_get(CC)).await.ok();
            assert_eq!(cc.result, 0x0046_0060, "CC");
        }
        let again = admin.ask("Property Get CAP", Entry::property_get(CAP)).await.ok();
        assert_eq!(again.result, cap.result, "CAP");
        // CAP.CRMS, bit 59: the time in CRTO counts and not that in CAP.
        if cap.result >> 59 & 1 == 1 {
            let crto = admin.ask("Property Get CRTO", Entry::property_get(CRTO)).await.ok();
            crto.needs(
                "CRTO.CRWMT",
                |answer| answer.result & 0xffff >= cap.result >> 24 & 0xff,
                "It says that the time is wrong, and takes that of CAP",
            );
        }
        admin.ask("Property Set CC.EN", Entry::property_set(CC, 0x0046_0061)).await.ok();
        let csts = admin.ask("Property Get CSTS", Entry::property_get(CSTS)).await.ok();
        csts.needs("CSTS.RDY", |answer| answer.result == 1, "It polls until the time is over");
        let version = admin.ask("Property Get VS", Entry::property_get(VS)).await.ok();
        version.needs(
            "VS",
            |answer| answer.result >= 0x0001_0100,
            "Before 1.1 it asks for no list of namespaces, and tries one after the other",
        );
    }

    async fn identify(&mut self) {
        let (id, nqn) = (self.controller_id, self.nqn);
        let answer = self.admin.ask("Identify controller", Entry::identify(0x01, 0)).await.whole();
        let answer = answer
            .needs(
                "CNTLID",
                |answer| answer.u16(78) == id,
                "\"Mismatching cntlid\", and it does not connect",
            )
            .needs(
                "KAS",
                |answer| answer.u16(320) != 0,
                "\"keep-alive support is mandatory for fabrics\", and it does not connect",
            )
            .needs(
                "SGLS",
                |answer| answer.u32(536) & 0b11 != 0,
                "\"Mandatory sgls are not supported\", and it does not connect",
            )
            .needs(
                "SUBNQN",
                |answer| {
                    let name = &answer.data[768..768 + nqn.len()];
                    name == nqn.as_bytes() && answer.data[768 + nqn.len()] == 0
                },
                "It does not know the subsystem by its name",
            );
        if self.is_discovery() {
            answer.needs(
                "CNTRLTYPE",
                |answer| answer.data[111] == 2,
                "\"is not a discovery controller\", and it does not connect",
            );
            return;
        }
        let answer = fabrics_fields(answer);
        self.transfer_max = 4_096 << answer.data[77];
        self.admin.ask("effects of CSI 0", Entry::effects(0)).await.whole();
        // Of the size that MNAN namespaces need: a header of 16 bytes, a group of 32, ids of 4.
        let access = Entry::log_page(0x0c, ALL, 16 + 32 + 4 * 1_024);
        let access = self.admin.ask("ANA log", access).await.ok();
        access.needs(
            "the state of group 1",
            |answer| answer.data[8] == 1 && answer.u32(16) == 1 && answer.data[32] == 1,
            "It finds no way to the namespaces",
        );
        // A kernel with hwmon reads the temperature, and tolerates a controller without one.
        self.admin.ask("SMART log", Entry::log_page(0x02, ALL, 512)).await.whole();
    }

    fn is_discovery(&self) -> bool {
        self.nqn == crate::hosts::discovery::NQN
    }

    /// Connects I/O queues, each on a connection of its own, and asks to be told of events.
    pub(crate) async fn connect_queues(&mut self, world: &World, count: u16) {
        let both = u32::from(count - 1) << 16 | u32::from(count - 1);
        let answer = self.admin.ask("Number of Queues", Entry::set_features(0x07, both)).await.ok();
        answer.needs(
            "the queues that it gets",
            |answer| answer.result & 0xffff >= (count - 1).into(),
            "It makes fewer queues than there are processors",
        );
        for queue in 1..=count {
            let linux = self.linux;
            let mut line = Line::open(world, linux.name, Ids::Generations, linux.digests).await;
            let connect = self.flow(Entry::connect(queue, 127, 0)).moves(1_024);
            let data = connect_data(self.controller_id, self.nqn);
            let answer = line.give("Connect of an I/O queue", connect, &data).await.ok();
            assert_eq!(answer.result, u64::from(self.controller_id), "the controller of the queue");
            self.queues.push(line);
        }
        self.want_events(0x900).await;
    }

    /// Asks for the events that OAES has, and leaves a request for one standing.
    pub(crate) async fn want_events(&mut self, events: u32) {
        let Self { admin, .. } = self;
        admin.ask("Async Event Configuration", Entry::set_features(0x0b, events)).await.ok();
        let request = Entry::async_event_request();
        admin.start_as(EVENT_ID, "Async Event Request", request, &[]).await;
    }

    /// Nothing to do for twice as long as the host may be silent: Keep Alive is all that it sends.
    pub(crate) async fn idle(&mut self) {
        for _ in 0..8 {
            clock::sleep(IDLE, Stage::Queue).await;
            self.admin.ask("Keep Alive", Entry::keep_alive()).await.ok();
        }
    }

    /// `nvme disconnect`.
    pub(crate) async fn detach(mut self, world: &World) {
        self.queues.clear();
        let shutdown = Entry::property_set(CC, 0x0046_4061);
        self.admin.ask("Property Set CC.SHN", shutdown).await.ok();
        let csts = self.admin.ask("Property Get CSTS", Entry::property_get(CSTS)).await.ok();
        csts.needs(
            "CSTS.SHST",
            |answer| answer.result >> 2 & 0b11 == 0b10,
            "It polls for as long as RTD3E says, and gives up",
        );
        assert!(
            self.admin.waits(EVENT_ID),
            "nothing has happened that is worth an event, and Linux expects no end of the request"
        );
        drop(self);
        settle(world).await;
    }
}

/// What Identify must say of an I/O controller.
fn fabrics_fields(answer: Answer) -> Answer {
    answer
        .needs(
            "CNTRLTYPE",
            |answer| answer.data[111] == 1,
            "An administrative controller gets no I/O queues",
        )
        .needs(
            "IOCCSZ",
            |answer| answer.u32(1_792) == (64 + 8_192) / 16,
            "Below 4 it does not connect; here it sends values to 8 KiB in the capsule",
        )
        .needs("IORCSZ", |answer| answer.u32(1_796) >= 1, "It does not connect")
        .needs("ICDOFF", |answer| answer.u16(1_800) == 0, "It does not connect")
        .needs("MAXCMD", |answer| answer.u16(514) >= 128, "It warns, or makes its queues smaller")
        .needs(
            "MDTS",
            |answer| answer.data[77] == 9,
            "Of passthrough commands it refuses those that move more, values of 2 MiB here",
        )
        .needs(
            "LPA bit 1",
            |answer| answer.data[261] & 0b10 != 0,
            "It does not ask for the effects of CSI 0",
        )
        .needs(
            "CTRATT.TBKAS",
            |answer| answer.u32(96) & 1 << 6 != 0,
            "It sends Keep Alive although other commands pass",
        )
        .needs(
            "ANA: CMIC, MNAN, ANACAP, ANAGRPMAX and NANAGRPID",
            |answer| {
                let [nn, mnan] = [answer.u32(516), answer.u32(540)];
                answer.data[76] & 1 << 3 != 0
                    && (1..=nn).contains(&mnan)
                    && answer.data[343] & 1 != 0
                    && (answer.u32(344), answer.u32(348)) == (1, 1)
            },
            "It does not connect, or takes namespaces of the same id for different ones",
        )
        .needs("OAES", |answer| answer.u32(92) == 0x900, "It asks for no events")
}
