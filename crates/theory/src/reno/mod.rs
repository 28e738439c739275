//! TCP's throughput on a path that loses packets.

pub mod bounded;
pub mod classify;
pub mod l_model;
pub mod morris;
pub mod pftk;
pub mod response;
pub mod s_model;

use sweetspot_units::{Bytes, Duration, Probability};

use crate::Result;
use crate::error::require;

/// Checks the domain of loss, RTT and segment size, which is the same for every formula of this
/// module.
pub(crate) fn require_lossy(mss: Bytes, rtt: Duration, loss: Probability) -> Result<()> {
    require(mss > Bytes::ZERO, "MSS", mss, "it must be 1 B or more")?;
    require(rtt > Duration::ZERO, "RTT", rtt, "it must be above zero")?;
    let wanted = "above 0 and below 1; without loss the window limits, not the loss";
    require(loss.get() > 0.0 && loss.get() < 1.0, "loss", loss, wanted)
}
