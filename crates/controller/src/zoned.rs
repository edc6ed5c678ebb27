//! The Zoned Namespace command set, on zones of logical blocks, as far as it is more than `nvm`.

use crate::completion::{Executed, Outcome};
use crate::controller::Controller;
use crate::copy::Copy;
use crate::logical_blocks::{LogicalBlocks, status_of_zone_write};
use crate::nvm::{flush, written, zeros};
use crate::span::{Span, TRANSFER_BYTES_MAX};
use crate::submission::Submission;
use base::{Buf, BufMut};
use clock::Class;
use ftl::{ZoneAction, ZoneInfo, Zones, ZonesShape};
use smallvec::smallvec;
use spec::{
    Command, Opcode, Status, ZONE_DESCRIPTOR_BYTES, ZoneDescriptor, ZoneReportWriter,
    ZoneSendAction, ZoneState,
};
use std::sync::Arc;

impl Controller {
    pub(crate) async fn execute_zoned(
        &self,
        zones: &Arc<Zones>,
        submission: Submission,
    ) -> Executed {
        let Submission { command, data, .. } = submission;
        // What is rare is boxed, so that a command is small.
        match command.opcode() {
            Opcode::READ => self.read(zones, &command).await,
            Opcode::WRITE => self.write(zones, &command, data).await,
            Opcode::COMPARE => Box::pin(self.compare(zones, &command, &data)).await,
            Opcode::VERIFY => Box::pin(self.verify(zones, &command)).await,
            Opcode::WRITE_ZEROES => Box::pin(self.zero_zone(zones, &command)).await,
            Opcode::DATASET_MANAGEMENT => {
                Box::pin(self.manage_dataset(zones, &command, &data)).await
            }
            Opcode::ZONE_APPEND => self.append(zones, &command, data).await,
            Opcode::ZONE_MANAGEMENT_SEND => Box::pin(self.send_to_zones(zones, &command)).await,
            Opcode::ZONE_MANAGEMENT_RECEIVE => Box::pin(self.report_zones(zones, &command)).await,
            Opcode::COPY => Box::pin(self.copy_to_zone(zones, &command, &data)).await,
            Opcode::FLUSH => flush(zones).await,
            _ => Err(Status::INVALID_OPCODE),
        }
    }

    /// Write Zeroes: in one go, so that zones take all of them or none.
    async fn zero_zone(&self, zones: &Arc<Zones>, command: &Command) -> Executed {
        let shape = zones.shape();
        let span = Span::of(command).within(shape.blocks())?;
        if let Some(delays) = &self.delays {
            delays.write("write zeroes").await;
        }
        zones.write_from(span.first, zeros(shape.block_bytes, span.count)).await?;
        written(zones, command).await
    }

    /// Zone Append: the result is where the data came to lie.
    async fn append(&self, zones: &Arc<Zones>, command: &Command, data: Buf) -> Executed {
        let shape = zones.shape();
        zone_from(&shape, command)?;
        let bytes = Span::of(command).fetch(shape.block_bytes, &data)?;
        if let Some(delays) = &self.delays {
            delays.fetch(bytes).await;
            delays.write("append").await;
        }
        let appended = zones.append(command.lba(), smallvec![data], Class::HostWrite).await;
        let result = appended.map_err(status_of_zone_write)?;
        Ok(Outcome { result, ..written(zones, command).await? })
    }

    async fn send_to_zones(&self, zones: &Arc<Zones>, command: &Command) -> Executed {
        let asked = command.zone_send_action().ok_or(Status::INVALID_FIELD)?;
        let zone =
            if command.is_select_all() { None } else { Some(zone_from(&zones.shape(), command)?) };
        if let Some(delays) = &self.delays {
            delays.write("zone send").await;
        }
        let action = match asked {
            ZoneSendAction::Close => ZoneAction::Close,
            ZoneSendAction::Finish => ZoneAction::Finish,
            ZoneSendAction::Open => ZoneAction::Open,
            ZoneSendAction::Reset => ZoneAction::Reset,
            ZoneSendAction::Offline => return take_offline(zones, zone),
        };
        let changed = match zone {
            Some(zone) => zones.change(zone, action).await,
            None => zones.change_all(action).await,
        };
        changed.map(|()| Outcome::done()).map_err(status_of_zone_write)
    }

    /// Zone Management Receive: the zones that are asked about, from the one that has the command's
    /// block on, as many as fit the host's buffer.
    async fn report_zones(&self, zones: &Arc<Zones>, command: &Command) -> Executed {
        let shape = zones.shape();
        let wanted = command.reported_zones().ok_or(Status::INVALID_FIELD)?;
        let room = match u32::try_from(command.report_bytes()) {
            Ok(room) if room <= TRANSFER_BYTES_MAX => room,
            _ => return Err(Status::INVALID_FIELD),
        };
        let first = zone_of(&shape, command.lba())?;
        let all = (shape.zones - first) as usize;
        let bytes = (room as usize).min((1 + all) * ZONE_DESCRIPTOR_BYTES);
        let mut buffer = BufMut::unpooled(bytes);
        let mut writer = ZoneReportWriter::new(buffer.as_mut()).ok_or(Status::INVALID_FIELD)?;
        if let Some(delays) = &self.delays {
            delays.write("zone report").await;
        }
        let (mut matching, mut written) = (0, 0);
        for zone in first..shape.zones {
            let zone = descriptor(zones.report(zone).map_err(status_of_zone_write)?);
            if wanted.include(zone.state()) {
                matching += 1;
                written += u64::from(writer.push(&zone));
            }
        }
        let len = writer.finish(if command.is_partial_report() { written } else { matching });
        let len = u32::try_from(len).map_err(|_| Status::INTERNAL_ERROR)?;
        let data = buffer.freeze().slice(0..len);
        if let Some(delays) = &self.delays {
            delays.deliver(len).await;
        }
        Ok(Outcome::with_data(data))
    }

    /// Copy: only the ranges cross the link.
    async fn copy_to_zone(&self, zones: &Arc<Zones>, command: &Command, data: &Buf) -> Executed {
        let shape = zones.shape();
        let copy = Copy::decode(command, data, shape.block_bytes, shape.blocks())?;
        if let Some(delays) = &self.delays {
            delays.fetch(data.len()).await;
            delays.write("copy").await;
        }
        let copied = zones.copy(&copy.sources, copy.target, Class::HostWrite).await;
        copied.map_err(status_of_zone_write)?;
        written(zones, command).await
    }
}

/// The zone that has block `lba`.
fn zone_of(shape: &ZonesShape, lba: u64) -> Result<u32, Status> {
    match u32::try_from(lba / shape.zone_blocks) {
        Ok(zone) if zone < shape.zones => Ok(zone),
        _ => Err(Status::LBA_OUT_OF_RANGE),
    }
}

/// The zone whose first block the command names.
fn zone_from(shape: &ZonesShape, command: &Command) -> Result<u32, Status> {
    let zone = zone_of(shape, command.lba())?;
    let is_start = command.lba().is_multiple_of(shape.zone_blocks);
    if is_start { Ok(zone) } else { Err(Status::INVALID_FIELD) }
}

fn descriptor(zone: ZoneInfo) -> ZoneDescriptor {
    let state = match zone.state {
        ftl::ZoneState::Empty => ZoneState::EMPTY,
        ftl::ZoneState::ImplicitlyOpen => ZoneState::IMPLICITLY_OPEN,
        ftl::ZoneState::ExplicitlyOpen => ZoneState::EXPLICITLY_OPEN,
        ftl::ZoneState::Closed => ZoneState::CLOSED,
        ftl::ZoneState::Full => ZoneState::FULL,
        ftl::ZoneState::ReadOnly => ZoneState::READ_ONLY,
        ftl::ZoneState::Offline => ZoneState::OFFLINE,
    };
    ZoneDescriptor::new(state, zone.start, zone.capacity, zone.write_pointer)
}

/// A host may take only zones offline that are read only, and those stay readable here: what is
/// asked of all zones is asked of none, and of one zone it is done only where it is done already.
fn take_offline(zones: &Zones, zone: Option<u32>) -> Executed {
    let Some(zone) = zone else { return Ok(Outcome::done()) };
    match zones.report(zone).map_err(status_of_zone_write)?.state {
        ftl::ZoneState::Offline => Ok(Outcome::done()),
        _ => Err(Status::INVALID_ZONE_STATE_TRANSITION),
    }
}
