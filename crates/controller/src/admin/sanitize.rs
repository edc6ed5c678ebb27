use crate::completion::{Executed, Outcome};
use crate::fabrics::{Association, Subsystem};
use clock::BusyStage;
use spec::{Command, IdentifyController, SanitizeAction, SanitizeOptions, Status};
use std::sync::Arc;

/// Capabilities of Sanitize (SANICAP). Wiping deallocates, so that NDAS cannot be supported.
pub(super) const CAPABILITIES: u32 = IdentifyController::BLOCK_ERASE
    | IdentifyController::NO_DEALLOCATE_INHIBITED
    | IdentifyController::NOT_MODIFIED_LATER;

/// Executes Sanitize (Base 2.1, Sanitize command). The command completes when the operation starts.
pub(super) fn execute(
    association: &Arc<Association>,
    subsystem: &Arc<Subsystem>,
    command: &Command,
) -> Executed {
    let options = command.sanitize_options();
    match options.action() {
        SanitizeAction::EXIT_FAILURE => subsystem.device.sanitizing.give_up()?,
        SanitizeAction::BLOCK_ERASE => begin(association, subsystem, options)?,
        _ => return Err(Status::INVALID_FIELD),
    }
    Ok(Outcome::done())
}

fn begin(
    association: &Arc<Association>,
    subsystem: &Arc<Subsystem>,
    options: SanitizeOptions,
) -> Result<(), Status> {
    let cannot = [SanitizeOptions::NO_DEALLOCATE, SanitizeOptions::VERIFY];
    if cannot.into_iter().any(|wish| options.contains(wish)) {
        return Err(Status::INVALID_FIELD);
    }
    subsystem.device.sanitizing.begin(options)?;
    for controller in subsystem.associations.all() {
        controller.events.forget_sanitized();
    }
    clock::spawn(sanitize(association.clone(), subsystem.clone()));
    Ok(())
}

/// Runs the operation: wipes every namespace, then reports the end to the controller.
async fn sanitize(association: Arc<Association>, subsystem: Arc<Subsystem>) {
    clock::set_busy_stage(BusyStage::Background);
    let sanitizing = &subsystem.device.sanitizing;
    let ids = subsystem.device.namespace_ids();
    let mut wiped = true;
    for (number, nsid) in ids.iter().enumerate() {
        let progress = u16::try_from(number * 65_536 / ids.len()).expect("it is not the end");
        sanitizing.progress(progress);
        // Waits for earlier commands in flight, so that they leave no data either.
        wiped &= subsystem.device.format_namespace(*nsid).await.is_ok();
    }
    sanitizing.end(wiped);
    association.events.notice_sanitized(association.admin_queue().as_deref());
}
