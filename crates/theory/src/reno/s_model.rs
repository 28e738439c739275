//! Flows that are mostly in slow start: the S-model of Prasad, Dovrolis and Thottan, §IV.

use sweetspot_units::{Bytes, Duration, Probability, Rate};

use crate::Result;
use crate::error::require;

/// A transfer of limited size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShortFlow {
    size: Bytes,
    mss: Bytes,
    /// RTTs that each retransmission costs: 1 if SACK recovers it (router-buffer §IV).
    rtts_per_loss: f64,
}

impl ShortFlow {
    /// A transfer of `size` s in segments of `mss`; each loss costs one RTT.
    ///
    /// # Errors
    /// If `size` or `mss` is zero.
    pub fn new(size: Bytes, mss: Bytes) -> Result<ShortFlow> {
        require(size > Bytes::ZERO, "flow size", size, "it must be 1 B or more")?;
        require(mss > Bytes::ZERO, "MSS", mss, "it must be 1 B or more")?;
        Ok(ShortFlow { size, mss, rtts_per_loss: 1.0 })
    }

    /// The same flow, with `rtts` (the paper's v) per loss.
    ///
    /// # Errors
    /// If `rtts` is negative or not finite.
    pub fn with_rtts_per_loss(self, rtts: f64) -> Result<ShortFlow> {
        require(rtts.is_finite() && rtts >= 0.0, "RTTs per loss", rtts, "zero or more")?;
        Ok(ShortFlow { rtts_per_loss: rtts, ..self })
    }

    /// The size s.
    pub fn size(&self) -> Bytes {
        self.size
    }

    /// The segment size.
    pub fn mss(&self) -> Bytes {
        self.mss
    }

    /// v: the RTTs that each retransmission costs.
    pub fn rtts_per_loss(&self) -> f64 {
        self.rtts_per_loss
    }

    /// M(s): the number of segments, rounded up.
    pub fn segments(&self) -> u64 {
        self.size.get().div_ceil(self.mss.get())
    }

    // Router-buffer eq. (1): D(s) = 1 + ceil(log2(M(s)/2)).
    /// D(s): the RTTs that slow start takes from a window of two segments, including connection
    /// setup. A single segment takes as long as two; eq. (1) itself would give zero.
    pub fn slow_start_rtts(&self) -> u64 {
        // ceil(log2(M/2)) is the smallest r with 2^(r+1) >= M.
        let pairs = self.segments().div_ceil(2);
        1 + u64::from(pairs.next_power_of_two().trailing_zeros())
    }

    // Router-buffer eq. (2): R_S = s / (T [D(s) + v p M(s)]).
    /// Average throughput if each packet is lost with probability `loss`.
    ///
    /// # Errors
    /// If `rtt` is zero or `loss` is 1.
    pub fn throughput(&self, rtt: Duration, loss: Probability) -> Result<Rate> {
        require(rtt > Duration::ZERO, "RTT", rtt, "it must be above zero")?;
        require(loss.get() < 1.0, "loss", loss, "below 1, or nothing arrives")?;
        let lost = self.rtts_per_loss * loss.get() * self.segments() as f64;
        let rtts = self.slow_start_rtts() as f64 + lost;
        Ok(Rate::from_f64(self.size.as_f64() * 8.0 / (rtt.as_secs_f64() * rtts)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(segments: u64) -> ShortFlow {
        ShortFlow::new(Bytes::new(1500 * segments), Bytes::new(1500)).unwrap()
    }

    #[test]
    fn slow_start_doubles_each_rtt() {
        // 1 + ceil(log2(M/2)): M = 2 -> 1, 3 -> 1 + ceil(0.58) = 2, 4 -> 2, 5 -> 3, 30 -> 1 + 4,
        // 32 -> 5, 33 -> 6.
        let rtts = [2, 3, 4, 5, 30, 32, 33].map(|m| flow(m).slow_start_rtts());
        assert_eq!(rtts, [1, 2, 2, 3, 5, 5, 6]);
    }

    #[test]
    fn thirty_packets_match_a_hand_calculation() {
        // 45 kB at 60 ms: D = 5, 360,000 bit / 0.3 s = 1.2 Mbit/s; with p = 0.1 another 3 RTTs:
        // 360,000 / 0.48 = 0.75 Mbit/s.
        let t = Duration::from_millis(60);
        assert_eq!(flow(30).throughput(t, Probability::ZERO).unwrap(), Rate::from_f64(1.2e6));
        let p = Probability::new(0.1).unwrap();
        assert_eq!(flow(30).throughput(t, p).unwrap(), Rate::from_f64(0.75e6));
        let slow = flow(30).with_rtts_per_loss(2.0).unwrap();
        // 5 + 2 * 3 = 11 RTTs of 60 ms.
        assert_eq!(slow.throughput(t, p).unwrap(), Rate::from_f64(360_000.0 / 0.66));
    }

    #[test]
    fn a_partial_segment_counts_as_one() {
        let f = ShortFlow::new(Bytes::new(1501), Bytes::new(1500)).unwrap();
        assert_eq!(f.segments(), 2);
    }

    #[test]
    fn larger_flows_are_faster_in_slow_start() {
        let t = Duration::from_millis(60);
        let rate = |m| flow(m).throughput(t, Probability::ZERO).unwrap();
        assert!(rate(2) < rate(8) && rate(8) < rate(64) && rate(64) < rate(1024));
    }

    #[test]
    fn empty_flows_and_total_loss_are_rejected() {
        assert!(ShortFlow::new(Bytes::ZERO, Bytes::new(1500)).is_err());
        assert!(ShortFlow::new(Bytes::new(1), Bytes::ZERO).is_err());
        assert!(flow(1).with_rtts_per_loss(f64::NAN).is_err());
        let all = Probability::new(1.0).unwrap();
        assert!(flow(1).throughput(Duration::from_millis(1), all).is_err());
        assert!(flow(1).throughput(Duration::ZERO, Probability::ZERO).is_err());
    }
}
