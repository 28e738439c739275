use sweetspot_units::Bytes;

use crate::KnownPath;

/// The parameters of a controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControllerConfig {
    /// Maximum segment size: payload bytes in a full packet. On a live connection this is the MSS that its receiver
    /// advertised (`tcpi_advmss`). If it is too small, a window may hold less than one segment, and the sender waits for its
    /// timers. On loopback with segments of 65,483 bytes, `drs` receives 0.06 Gbit/s if this is 1448, and 8 Gbit/s with the
    /// real MSS.
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
