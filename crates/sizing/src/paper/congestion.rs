use crate::Probe;

/// "Whether any of the last 1000 periodic probes have been lost in the forward path"
/// (section VII-A): 20 s at one probe every 20 ms.
const CHECKED_PROBES: u64 = 1000;

/// The paper's congestion check: losses among the last probes on the forward path.
#[derive(Debug, Default)]
pub(crate) struct CongestionCheck {
    probes: u64,
    last_loss: Option<u64>,
}

impl CongestionCheck {
    /// A probe's answer arrived; the gaps in the sequence show which earlier answers were lost.
    pub(crate) fn handle_probe(&mut self, probe: &Probe) {
        self.probes += 1 + probe.forward_lost;
        if probe.forward_lost > 0 {
            self.last_loss = Some(self.probes);
        }
    }

    /// Whether any of the last 1000 probes was lost.
    pub(crate) fn is_congested(&self) -> bool {
        self.last_loss.is_some_and(|at| self.probes - at < CHECKED_PROBES)
    }
}
