//! Settings of a side's network namespace. The host's settings are never changed.

use sweetspot_emulator::Side;

use crate::LabError;
use crate::error::Doing;

/// Sets `net.ipv4.NAME` on `side`. Does nothing if the kernel does not have the setting.
pub fn set(side: &Side, name: &str, value: &str) -> Result<(), LabError> {
    let write = || match std::fs::write(format!("/proc/sys/net/ipv4/{name}"), value) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    };
    side.run(write).and_then(|done| done).doing("set up a namespace's TCP")
}
