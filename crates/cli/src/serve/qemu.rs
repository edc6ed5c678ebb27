//! The options by which QEMU attaches a device to a virtual machine.

use serde_json::json;

/// QEMU's options for the memory of a virtual machine that a device can reach: shared with other
/// processes. Users adapt the size.
const MEMORY: &str =
    "-m 2G -object memory-backend-memfd,id=mem,size=2G,share=on -machine memory-backend=mem";

/// Returns a line with the options for the device at the vfio-user socket `socket`, for a shell.
pub(super) fn line(socket: &str) -> String {
    let device =
        json!({"driver": "vfio-user-pci", "socket": {"path": socket, "type": "unix"}}).to_string();
    let device = device.replace('\'', r"'\''");
    format!("in QEMU 10.1 or later: {MEMORY} -device '{device}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The form in QEMU's manual (docs/system/devices/vfio-user.rst).
    #[test]
    fn line_is_pasted_into_a_shell() {
        let device =
            r#"-device '{"driver":"vfio-user-pci","socket":{"path":"/run/a.sock","type":"unix"}}'"#;
        assert!(line("/run/a.sock").ends_with(device), "{}", line("/run/a.sock"));
        let quoted = line("/run/it's \"a\".sock");
        assert!(
            quoted.ends_with(r#"{"path":"/run/it'\''s \"a\".sock","type":"unix"}}'"#),
            "{quoted}"
        );
    }
}
