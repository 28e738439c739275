//! The six bandwidth-delay products: SOBAS §II.

use sweetspot_units::{Bytes, Duration, Rate};

use super::saturation;
use super::sawtooth::sawtooth;
use super::{Path, window};
use crate::Result;
use crate::error::require;

/// The factors of the six definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathState {
    /// C, the capacity.
    pub capacity: Rate,
    /// T_m, the minimum RTT.
    pub minimum_rtt: Duration,
    /// A, the available bandwidth before the transfer starts.
    pub available: Rate,
    /// T_e, the RTT before the transfer starts.
    pub exogenous_rtt: Duration,
    /// BTC, the throughput of a congestion-limited transfer.
    pub bulk_transfer_capacity: Rate,
    /// T_a, the RTT after the transfer has started.
    pub average_rtt: Duration,
    /// The largest congestion window reached, max W_c.
    pub largest_window: Bytes,
    /// The size of a packet on the path.
    pub packet: Bytes,
}

/// The socket buffers that six readings of "bandwidth-delay product" recommend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SixBdps {
    /// C T_m.
    pub bdp1: Bytes,
    /// C T_e.
    pub bdp2: Bytes,
    /// A T_m.
    pub bdp3: Bytes,
    /// A T_e.
    pub bdp4: Bytes,
    /// BTC T_a: the mean congestion window.
    pub bdp5: Bytes,
    /// S_inf, just above the largest congestion window: the socket buffer never limits.
    pub bdp6: Bytes,
}

impl SixBdps {
    /// The six products in the paper's order.
    pub fn all(&self) -> [Bytes; 6] {
        [self.bdp1, self.bdp2, self.bdp3, self.bdp4, self.bdp5, self.bdp6]
    }
}

// SOBAS §II.
/// The six products of `state`.
///
/// # Errors
/// If T_e < T_m or A > C, which no path can have.
pub fn six_bdps(state: &PathState) -> Result<SixBdps> {
    let s = state;
    require(s.exogenous_rtt >= s.minimum_rtt, "T_e", s.exogenous_rtt, "at least T_m")?;
    require(s.available <= s.capacity, "available bandwidth", s.available, "at most the capacity")?;
    Ok(SixBdps {
        bdp1: window::needed(s.capacity, s.minimum_rtt),
        bdp2: window::needed(s.capacity, s.exogenous_rtt),
        bdp3: window::needed(s.available, s.minimum_rtt),
        bdp4: window::needed(s.available, s.exogenous_rtt),
        bdp5: window::needed(s.bulk_transfer_capacity, s.average_rtt),
        bdp6: s.largest_window.saturating_add(s.packet),
    })
}

/// The state of `path` without cross traffic and with one Reno flow of `packet`-sized packets:
/// A = C, T_e = T_m, BTC by eq. (17), T_a and max W_c from the sawtooth (eqs 11 and 15).
///
/// # Errors
/// If the path holds fewer than 4 packets; see [`sawtooth`].
pub fn alone(path: &Path, packet: Bytes) -> Result<PathState> {
    let tooth = sawtooth(path, packet)?;
    Ok(PathState {
        capacity: path.capacity(),
        minimum_rtt: path.minimum_rtt(),
        available: path.capacity(),
        exogenous_rtt: path.minimum_rtt(),
        bulk_transfer_capacity: saturation::congestion_limited(path),
        average_rtt: tooth.mean_rtt,
        // Eq. (11): W_c(k) = C T_m + B_t + 1.
        largest_window: saturation::sweet_spot(path).high.saturating_add(packet),
        packet,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: Bytes = Bytes::new(1000);

    fn papers(buffer_packets: u64) -> Path {
        let rtt = Duration::from_millis(100);
        Path::new(Rate::from_mbit_per_second(50), rtt, PACKET * buffer_packets).unwrap()
    }

    #[test]
    fn the_six_bdps_match_a_hand_calculation() {
        let mbit = Rate::from_mbit_per_second;
        let state = PathState {
            capacity: mbit(50),
            minimum_rtt: Duration::from_millis(100),
            available: mbit(15),
            exogenous_rtt: Duration::from_millis(102),
            bulk_transfer_capacity: mbit(20),
            average_rtt: Duration::from_millis(140),
            largest_window: Bytes::new(400_000),
            packet: PACKET,
        };
        // 50e6 * 0.1 / 8 = 625,000; * 0.102 = 637,500; 15e6 * 0.1 / 8 = 187,500; 191,250;
        // 20e6 * 0.14 / 8 = 350,000; 400,000 + 1,000.
        let wanted = [625_000, 637_500, 187_500, 191_250, 350_000, 401_000].map(Bytes::new);
        assert_eq!(six_bdps(&state).unwrap().all(), wanted);
    }

    #[test]
    fn bdp5_is_the_mean_congestion_window() {
        // N_V / m = 3/8 W^2 / (W/2) = 3/4 W, under- and over-buffered alike.
        for buffer in [0, 313, 625, 1250] {
            let state = alone(&papers(buffer), PACKET).unwrap();
            let mean = 750.0 * (625.0 + buffer as f64);
            let bdp5 = six_bdps(&state).unwrap().bdp5.as_f64();
            assert!((bdp5 / mean - 1.0).abs() < 1e-5, "{buffer}: {bdp5} {mean}");
        }
    }

    #[test]
    fn without_cross_traffic_the_first_four_are_equal() {
        let b = six_bdps(&alone(&papers(313), PACKET).unwrap()).unwrap();
        assert_eq!([b.bdp2, b.bdp3, b.bdp4], [b.bdp1; 3]);
        // The largest window is 625 + 313 + 1 packets; one packet more is never reached.
        assert_eq!(b.bdp6, PACKET * 940);
    }

    #[test]
    fn an_rtt_below_the_minimum_is_rejected() {
        let mut state = alone(&papers(313), PACKET).unwrap();
        state.exogenous_rtt = Duration::from_millis(99);
        assert!(six_bdps(&state).is_err());
    }
}
