use sweetspot_units::Bytes;

use crate::KnownPath;

/// The parameters of a controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControllerConfig {
    /// Maximum segment size: payload bytes in a full packet. On a live connection this is the MSS that its receiver
    /// advertised (`tcpi_advmss`). A smaller one gives windows below a whole segment, for which a sender waits by its timers:
    /// on loopback, with segments of 65,483 bytes, `drs` receives 0.06 Gbit/s with 1448 and otherwise 8.
    pub mss: Bytes,
    /// Bytes of a full packet on the wire.
    pub packet: Bytes,
    /// The largest window that the host lets a connection advertise.
    pub max_window: Bytes,
    /// Bytes that the transfer will move, if known beforehand.
    pub size: Option<Bytes>,
    /// The path, if known beforehand.
    pub path: Option<KnownPath>,
}
