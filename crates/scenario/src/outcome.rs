use serde::{Deserialize, Serialize};

/// An engine's result: the stable JSON object that `sweetspot run --json` prints.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The scenario's title.
    pub scenario: String,
    /// The engine's name.
    pub engine: String,
    /// The seed.
    pub seed: u64,
    /// The version of Sweetspot.
    pub version: String,
    /// Each transfer, in the order of the file.
    pub transfers: Vec<TransferOutcome>,
    /// The entries of cross traffic, summed over both directions if none is given.
    pub cross: Vec<CrossOutcome>,
    /// The narrow link, in the direction of the data.
    pub bottleneck: BottleneckOutcome,
    /// The formulas behind the numbers, if closed forms gave them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub derivation: Option<Derivation>,
    /// The kernel's memory of the transfers' sockets, if a kernel ran them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket_memory: Option<SocketMemoryOutcome>,
    /// Events processed by the engine.
    pub events: u64,
    /// Packets that the routers' links sent, in both directions.
    pub packets_forwarded: u64,
    /// Wall-clock time of the run, seconds, set by the engine's caller. Only this member differs between two runs with the same
    /// seed.
    pub wall_s: f64,
}

/// The kernel memory of the transfers' sockets: sums over the sockets, means over the measured interval. As ss(8)'s `skmem`, it
/// includes bookkeeping.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SocketMemoryOutcome {
    /// The receivers' buffer limits (`SO_RCVBUF`, `rb`), bytes.
    pub receive_buffer_bytes: f64,
    /// The receivers' buffered data (`r`), bytes.
    pub received_bytes: f64,
    /// The senders' buffer limits (`SO_SNDBUF`, `tb`), bytes.
    pub send_buffer_bytes: f64,
    /// The senders' unsent or unacknowledged data (`w`), bytes.
    pub queued_bytes: f64,
}

/// One transfer, over the measured interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TransferOutcome {
    /// Payload acknowledged, bit/s: over the measured time, or over its [`time_under_way`] if the transfer has a size.
    pub goodput_bps: f64,
    /// Mean round-trip time of its packets, seconds.
    pub rtt_mean_s: f64,
    /// The 99th percentile of the RTT, seconds, within 1 %.
    pub rtt_p99_s: f64,
    /// Packets lost divided by packets sent.
    pub loss_rate: f64,
    /// Packets retransmitted.
    pub retransmitted_packets: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// The window advertised at the end, bytes of payload.
    pub window_final_bytes: u64,
    /// Time from its start to the last ACK, seconds; `None` if it has no end or did not complete in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_s: Option<f64>,
    /// How the window was sized, as in the scenario.
    pub sizing: String,
    /// Events of the sizing controller since the start.
    pub events: Vec<ControllerEvent>,
}

/// The part of the measured time, seconds, during which a transfer with a size runs: from its start until its completion, if it
/// completes. Times are seconds since the start of the run, except for `completion_s`, which is relative to `began`.
pub fn time_under_way((from, to): (f64, f64), began: f64, completion_s: Option<f64>) -> f64 {
    let ended = completion_s.map_or(to, |took| (began + took).min(to));
    (ended - began.max(from)).max(0.0)
}

/// One entry of cross traffic, over the measured interval.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CrossOutcome {
    /// Its kind, as in the scenario.
    pub kind: String,
    /// Payload acknowledged (TCP) or received (UDP), bit/s, in both directions together.
    pub goodput_bps: f64,
    /// The part of `goodput_bps` in the forward direction (the measured transfers' data), bit/s; `None` in outcomes of versions
    /// that did not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forward_goodput_bps: Option<f64>,
    /// The part of `goodput_bps` in the reverse direction, bit/s; zero if the reverse path is clean, `None` in outcomes of
    /// versions that did not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reverse_goodput_bps: Option<f64>,
    /// Packets lost divided by packets sent.
    pub loss_rate: f64,
    /// Packets retransmitted.
    pub retransmitted_packets: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Transfers that finished; `None` if traffic of this kind never does.
    pub completed: Option<u64>,
    /// Their mean duration, seconds; `None` if none finished.
    pub completion_mean_s: Option<f64>,
}

/// The narrow link.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BottleneckOutcome {
    /// Utilisation over the measured interval, ACKs included.
    pub utilisation: f64,
    /// Utilisation over the last third of the time before the first transfer; zero if that starts at once.
    pub utilisation_before: f64,
    /// Packets dropped divided by packets that arrived.
    pub loss_rate: f64,
    /// Packets waiting, averaged over time, without the one being sent.
    pub queue_mean_packets: f64,
    /// The maximum number of waiting packets.
    pub queue_max_packets: u64,
    /// Mean queueing delay over time, seconds.
    pub queue_delay_mean_s: f64,
}

/// The formulas behind an outcome of closed forms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Derivation {
    /// The formulas, in the order of their use.
    pub formulas: Vec<AppliedFormula>,
    /// The assumptions of the formulas.
    pub assumptions: Vec<String>,
}

/// A formula with numbers inserted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AppliedFormula {
    /// The quantity that it gives.
    pub what: String,
    /// The formula in symbols.
    pub rule: String,
    /// The formula with numbers, and its result.
    pub numbers: String,
    /// Paper and equation.
    pub source: String,
}

/// An event of a controller.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ControllerEvent {
    /// Time, seconds since the start of the run.
    pub at_s: f64,
    /// Name of the event.
    pub kind: String,
    /// The window that it set, bytes; `None` if it set none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_bytes: Option<u64>,
    /// The rate that it measured, bit/s; `None` if none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<f64>,
    /// The RTT at that rate, seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_s: Option<f64>,
    /// The reason in words, if the controller changed its state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The congestion control that it requested of the sender; `own` is the sender's own. `None` if it requested none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion_to: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn law_a_transfers_active_time_is_clipped_to_the_measured_period() {
        let measured = (10.0, 40.0);
        // Within the measured time, across its start, across its end, without an end, and outside.
        assert_eq!(time_under_way(measured, 12.0, Some(3.0)), 3.0);
        assert_eq!(time_under_way(measured, 8.0, Some(3.0)), 1.0);
        assert_eq!(time_under_way(measured, 38.0, Some(3.0)), 2.0);
        assert_eq!(time_under_way(measured, 12.0, None), 28.0);
        assert_eq!(time_under_way(measured, 2.0, Some(3.0)), 0.0);
        assert_eq!(time_under_way(measured, f64::INFINITY, None), 0.0);
    }
}
