use crate::power::Power;
use crate::target::Target;
use engine::Error;

/// Makes durable what `target` has answered, and says whether all of it is. Where blocks have gone
/// bad a page may find no other block, and a disk may fail to write or flush; then writers that
/// wait for the page get an error.
pub(crate) async fn flush(target: &dyn Target, power: &Power) -> bool {
    let flushed = target.flush().await;
    power.on().await;
    match flushed {
        Ok(()) => true,
        Err(Error::Unrecovered | Error::Unwritten | Error::CapacityExceeded)
            if target.may_fail_to_flush() =>
        {
            false
        }
        Err(error) => panic!("what was stored can be made durable: {error}"),
    }
}
