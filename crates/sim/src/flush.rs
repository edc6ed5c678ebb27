use crate::power::Power;
use engine::Error;
use node::Device;

/// Makes durable what `device` has answered, and says whether all of it is. Where blocks have gone
/// bad a page may find no other block; then whoever still waits for what it holds is told.
pub(crate) async fn flush(device: &Device, power: &Power) -> bool {
    let flushed = device.flush().await;
    power.on().await;
    match flushed {
        Ok(()) => true,
        Err(Error::Unrecovered) if device.cells().retired_blocks() > 0 => false,
        Err(error) => panic!("what was stored can be made durable: {error}"),
    }
}
