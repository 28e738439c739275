//! Rules of thumb for a router's buffer, from before and after the capacity ratio.

use sweetspot_units::{Bytes, Duration, Probability, Rate};

use crate::Result;
use crate::error::require;
use crate::packets::Packets;
use crate::reno::morris;
use crate::reno::response::CUBIC_BETA;

/// A congestion control, as the size of a buffer depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CongestionResponse {
    /// Halves its window (RFC 5681).
    Reno,
    /// Keeps 0.7 of its window (RFC 9438 §4.6).
    Cubic,
    /// Probes with 5/4 of its measured rate for one RTT (BBR version 1).
    Bbr,
}

// Villamizar and Song, "High Performance TCP in ANSNET", CCR 24(5), 1994.
/// C T: enough to keep the link busy while one Reno flow recovers.
///
/// # Errors
/// If a quantity is zero.
pub fn bandwidth_delay(capacity: Rate, rtt: Duration) -> Result<Bytes> {
    require(capacity > Rate::ZERO, "capacity", capacity, "it must be above zero")?;
    require(rtt > Duration::ZERO, "RTT", rtt, "it must be above zero")?;
    Ok(capacity * rtt)
}

// Appenzeller, Keslassy, McKeown, "Sizing Router Buffers", SIGCOMM 2004: C T / sqrt(n).
/// C T / sqrt(n): enough for nearly full utilisation by `flows` unsynchronised long flows. It considers only utilisation, not
/// loss or per-flow throughput.
///
/// # Errors
/// If a quantity is zero.
pub fn square_root(capacity: Rate, rtt: Duration, flows: u64) -> Result<Bytes> {
    require(flows > 0, "flows", flows, "it must be 1 or more")?;
    Ok(bandwidth_delay(capacity, rtt)?.scaled(1.0 / libm::sqrt(flows as f64)))
}

// Spang, Arslan, McKeown, "Updating the Theory of Buffer Sizing", Performance 2021 (arXiv 2109.11693): the link stays busy if
// the data in flight after the reduction still fill the pipe. A window control that keeps beta of its window needs beta (C T +
// B) >= C T, so B >= (1/beta - 1) C T. BBR needs the data added by one RTT of probing, (5/4 - 1) C T.
/// The buffer with which a single flow of `control` keeps the link full, as a share of C T: 1 for Reno, 3/7 for Cubic, 1/4 for
/// BBR; the paper's "60 to 75 % smaller".
pub fn share_of_bdp(control: CongestionResponse) -> f64 {
    match control {
        CongestionResponse::Reno => 1.0,
        CongestionResponse::Cubic => 1.0 / CUBIC_BETA - 1.0,
        CongestionResponse::Bbr => 0.25,
    }
}

// The same paper: the square-root rule also holds for these congestion controls.
/// The buffer that keeps a link full with `flows` flows of `control`, which are unsynchronised if there are several. The rule
/// fails for unfair flows and for some settings of ECN.
///
/// # Errors
/// If a quantity is zero.
pub fn updated(
    capacity: Rate,
    rtt: Duration,
    flows: u64,
    control: CongestionResponse,
) -> Result<Bytes> {
    Ok(square_root(capacity, rtt, flows)?.scaled(share_of_bdp(control)))
}

// Enachescu, Ganjali, Goel, McKeown, Roughgarden, "Part III: Routers with Very Small Buffers", CCR 35(3), 2005, and Stanford
// TR05-HPNG-060606: a buffer of the order of log W, "fewer than twenty" packets, if sources pace and about a fifth of the link
// may stay unused.
/// The tiny buffer, in packets: for paced flows, or access links much slower than this one.
pub const TINY: u64 = 20;

// Morris, "Scalable TCP Congestion Control", INFOCOM 2000: pipe and buffer together hold w = 0.87 / sqrt(l) packets of each flow.
/// Flow-proportional queueing: the buffer with which `flows` persistent flows lose `loss`, so that none is stuck in timeouts.
/// It grows with the number of flows, and is zero if the pipe alone holds enough.
///
/// # Errors
/// If a quantity is zero.
pub fn flow_proportional(
    capacity: Rate,
    rtt: Duration,
    flows: u64,
    packet: Bytes,
    loss: Probability,
) -> Result<Bytes> {
    require(flows > 0, "flows", flows, "it must be 1 or more")?;
    let storage: Packets = morris::mean_window(loss)?;
    let all = packet.scaled(storage.get() * flows as f64);
    Ok(all.saturating_sub(bandwidth_delay(capacity, rtt)?))
}

/// Constraints on a buffer: full utilisation, a maximum loss and, if feasible, a maximum queueing delay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Constraints {
    /// The maximum loss rate.
    pub loss: Probability,
    /// The maximum queueing delay.
    pub delay: Duration,
}

/// The buffer under [`Constraints`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Constrained {
    /// The smallest buffer that meets all constraints.
    Buffer(Bytes),
    /// The smallest buffer for utilisation and loss has a longer queueing delay than allowed.
    DelayInfeasible {
        /// The smallest buffer for utilisation and loss.
        needed: Bytes,
        /// The largest buffer that the delay allows.
        allowed: Bytes,
    },
}

// Dhamdhere, Jiang, Dovrolis, "Buffer Sizing for Congested Internet Links", INFOCOM 2005: the larger of the buffers for
// utilisation and for loss, unless it exceeds the buffer for delay, C d. For unsynchronised flows the square-root rule replaces
// their utilisation term; their loss term is Morris's.
/// The smallest buffer that keeps the link busy with `flows` persistent flows under `constraints`.
///
/// # Errors
/// If a quantity is zero.
pub fn constrained(
    capacity: Rate,
    rtt: Duration,
    flows: u64,
    packet: Bytes,
    constraints: &Constraints,
) -> Result<Constrained> {
    let busy = square_root(capacity, rtt, flows)?;
    let lossless = flow_proportional(capacity, rtt, flows, packet, constraints.loss)?;
    let (needed, allowed) = (busy.max(lossless), capacity * constraints.delay);
    Ok(if needed <= allowed {
        Constrained::Buffer(needed)
    } else {
        Constrained::DelayInfeasible { needed, allowed }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: Bytes = Bytes::new(1500);

    #[test]
    fn a_thousand_flows_at_one_percent_loss_need_8_7_packets_each() {
        // 0.87 / sqrt(0.01) = 8.7 packets of 1500 B: 13.05 MB, and the pipe holds 7.5 MB of them. With 500 flows, the pipe
        // holds more than the 6.525 MB needed.
        let loss = Probability::new(0.01).unwrap();
        let of = |flows| flow_proportional(gbit(), RTT, flows, PACKET, loss);
        assert_eq!(of(1000), Ok(Bytes::new(5_550_000)));
        assert_eq!(of(500), Ok(Bytes::ZERO));
        assert!(of(0).is_err());
    }

    #[test]
    fn the_largest_requirement_decides_unless_the_delay_limit_forbids_it() {
        // C d: 125 MB/s x 50 ms = 6.25 MB. 1000 flows: 5.55 MB for loss, 237 kB for utilisation. 100 flows: 750 kB for
        // utilisation. A delay of 20 ms allows 2.5 MB.
        let loss = Probability::new(0.01).unwrap();
        let of = |flows, millis| {
            let constraints = Constraints { loss, delay: Duration::from_millis(millis) };
            constrained(gbit(), RTT, flows, PACKET, &constraints).unwrap()
        };
        assert_eq!(of(1000, 50), Constrained::Buffer(Bytes::new(5_550_000)));
        assert_eq!(of(100, 50), Constrained::Buffer(Bytes::new(750_000)));
        let (needed, allowed) = (Bytes::new(5_550_000), Bytes::new(2_500_000));
        assert_eq!(of(1000, 20), Constrained::DelayInfeasible { needed, allowed });
    }

    const RTT: Duration = Duration::from_millis(60);

    fn gbit() -> Rate {
        Rate::from_mbit_per_second(1000)
    }

    #[test]
    fn the_classic_rules_match_a_hand_calculation() {
        // 1 Gbit/s * 60 ms = 7.5 MB; / sqrt(100) = 750 kB.
        assert_eq!(bandwidth_delay(gbit(), RTT), Ok(Bytes::new(7_500_000)));
        assert_eq!(square_root(gbit(), RTT, 100), Ok(Bytes::new(750_000)));
    }

    #[test]
    fn newer_congestion_controls_need_less_buffer() {
        // 0.3 / 0.7 = 3/7 of 7.5 MB = 3,214,286; a quarter = 1,875,000.
        assert_eq!(updated(gbit(), RTT, 1, CongestionResponse::Reno), Ok(Bytes::new(7_500_000)));
        assert_eq!(updated(gbit(), RTT, 1, CongestionResponse::Cubic), Ok(Bytes::new(3_214_286)));
        assert_eq!(updated(gbit(), RTT, 1, CongestionResponse::Bbr), Ok(Bytes::new(1_875_000)));
    }

    #[test]
    fn one_flow_needs_the_bdp_and_four_flows_need_half() {
        assert_eq!(square_root(gbit(), RTT, 1), bandwidth_delay(gbit(), RTT));
        assert_eq!(square_root(gbit(), RTT, 4), Ok(Bytes::new(3_750_000)));
    }

    #[test]
    fn impossible_links_are_rejected() {
        assert!(bandwidth_delay(Rate::ZERO, RTT).is_err());
        assert!(bandwidth_delay(gbit(), Duration::ZERO).is_err());
        assert!(square_root(gbit(), RTT, 0).is_err());
    }
}
