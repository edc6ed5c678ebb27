//! Detects that another program shortens or removes the file of a served drive.

use base::Nanos;
use clock::Stage;
use disk::{File, Loss};
use std::process;
use std::sync::Arc;

/// Interval at which the size and the name of the file are checked.
const INTERVAL: Nanos = Nanos::from_secs(1);

/// Reports the first loss of `file` to `tell`, in a sentence without its path, and ends.
pub(super) async fn watch(file: Arc<File>, tell: impl Fn(String)) {
    loop {
        clock::sleep(INTERVAL, Stage::Queue).await;
        if let Some(loss) = file.loss() {
            return tell(sentence(loss));
        }
    }
}

fn sentence(loss: Loss) -> String {
    let what_to_do = match loss {
        Loss::Shortened { .. } => {
            "stores fail, and pairs beyond its new end cannot be read: save what can be read, then \
             stop the server and restore a copy of the file"
                .to_owned()
        }
        Loss::Removed => format!(
            "its content is freed when the server ends: let clients pause, and copy it from \
             /proc/{}/fd first",
            process::id()
        ),
    };
    format!("the file {loss}; {what_to_do}")
}
