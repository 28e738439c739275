//! The sawtooth of a congestion-limited Reno flow alone on its path: SOBAS eqs (10)-(16).

use sweetspot_units::{Bytes, Duration, Probability};

use super::Path;
use crate::Result;
use crate::error::{probability, require};
use crate::packets::Packets;

/// One period of the sawtooth, from the loss of one packet to the loss of the next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sawtooth {
    /// The window at which the buffer overflows.
    pub peak: Packets,
    /// The window after halving.
    pub trough: Packets,
    /// Round trips in one period.
    pub rounds: f64,
    /// Packets sent in one period.
    pub packets: Packets,
    /// One packet in `packets` is lost.
    pub loss: Probability,
    /// Duration of a period.
    pub period: Duration,
    /// Mean RTT over the rounds of a period.
    pub mean_rtt: Duration,
    /// Backlog at the tight link just before the loss: the whole buffer.
    pub largest_backlog: Bytes,
    /// Backlog just after the window was halved.
    pub smallest_backlog: Bytes,
    /// Backlog averaged over time.
    pub mean_backlog: Bytes,
}

/// The sawtooth on `path` with packets of `packet` bytes.
///
/// Assumes one loss per period, recovered by fast retransmit, and growth by one packet per RTT.
///
/// # Errors
/// If C T_m + B_t is less than 4 packets: three duplicate ACKs cannot arrive, and the
/// approximations of eq. (12) need many packets.
pub fn sawtooth(path: &Path, packet: Bytes) -> Result<Sawtooth> {
    let pipe = Packets::of(path.bdp(), packet)?.get();
    let buffer = Packets::of(path.buffer(), packet)?.get();
    let peak = pipe + buffer;
    require(
        peak >= 4.0,
        "C T_m + B_t =",
        format!("{peak:.1} packets"),
        "4 or more, so that a loss can be seen by three duplicate ACKs",
    )?;

    // Eq. (12): m = (C T_m + B_t) / 2.
    let rounds = peak / 2.0;
    // Eq. (13): N_V = 3/8 (C T_m + B_t)^2.
    let packets = 0.375 * peak * peak;
    // Eq. (14): p = 1 / N_V; peak >= 4 keeps it below 1/6.
    let loss = probability("loss", 1.0 / packets)?;

    // Time is counted in packets: each takes `service` seconds at C.
    let service = packet.as_f64() * 8.0 / path.capacity().as_f64();
    let over_buffered = buffer >= pipe;
    let period = if over_buffered {
        // Eq. (16): T_V = 3/8 (C T_m + B_t)^2 / C.
        0.375 * peak * peak
    } else {
        // §Appendix I 3-b: T_V = ((C T_m)^2 + C T_m B_t + B_t^2) / 2C.
        (pipe * pipe + pipe * buffer + buffer * buffer) / 2.0
    };

    // The appendix's Q(k+i) averaged over time: a round with window w > C T_m lasts w/C and has the backlog w - C T_m. The
    // mean is therefore the integral of (w - C T_m) w divided by the integral of w.
    let mean_backlog = if over_buffered {
        7.0 / 9.0 * peak - pipe
    } else {
        let cubes = (peak * peak * peak - pipe * pipe * pipe) / 3.0;
        let squares = pipe * (peak * peak - pipe * pipe) / 2.0;
        (cubes - squares) / period
    };

    let bytes = |n: f64| packet.scaled(n.max(0.0));
    Ok(Sawtooth {
        peak: Packets::new(peak)?,
        trough: Packets::new(peak / 2.0)?,
        rounds,
        packets: Packets::new(packets)?,
        loss,
        period: Duration::from_secs_f64(period * service),
        mean_rtt: Duration::from_secs_f64(period * service / rounds),
        largest_backlog: path.buffer(),
        smallest_backlog: bytes(peak / 2.0 - pipe),
        mean_backlog: bytes(mean_backlog),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::saturation;
    use sweetspot_units::Rate;

    const PACKET: Bytes = Bytes::new(1000);

    fn papers(buffer_packets: u64) -> (Path, Sawtooth) {
        let rtt = Duration::from_millis(100);
        let path = Path::new(Rate::from_mbit_per_second(50), rtt, PACKET * buffer_packets).unwrap();
        (path, sawtooth(&path, PACKET).unwrap())
    }

    #[test]
    fn the_over_buffered_sawtooth_matches_a_hand_calculation() {
        // CTm = 625, B = 1250: peak 1875, 937.5 rounds, N = 3/8 * 1875^2 = 1,318,359.4 packets,
        // T_V = N / C = 1318359.4 * 160 us = 210.94 s, mean backlog 7/9 * 1875 - 625 = 833.3.
        let (_, s) = papers(1250);
        assert_eq!(s.peak.get(), 1875.0);
        assert_eq!(s.rounds, 937.5);
        assert!((s.packets.get() - 1_318_359.4).abs() < 0.1);
        assert!((s.loss.get() - 7.585e-7).abs() < 1e-10);
        assert!((s.period.as_secs_f64() - 210.9375).abs() < 1e-6);
        assert_eq!(s.mean_backlog, Bytes::new(833_333));
        assert_eq!(s.smallest_backlog, Bytes::new(312_500));
    }

    #[test]
    fn packets_per_period_give_the_throughput_of_equation_17() {
        for buffer in [0, 100, 313, 625, 1250] {
            let (path, s) = papers(buffer);
            let rate = s.packets.get() * 8000.0 / s.period.as_secs_f64();
            let expected = saturation::congestion_limited(&path).as_f64();
            assert!((rate / expected - 1.0).abs() < 1e-8, "{buffer}: {rate} {expected}");
        }
    }

    #[test]
    fn the_backlog_is_continuous_at_a_buffer_of_one_bdp() {
        // At B = CTm = D: 14/9 D - D = 5/9 D = 347.2 packets, and (7/3 - 3/2) / (3/2) D likewise.
        let (_, below) = papers(624);
        let (_, at) = papers(625);
        assert_eq!(at.mean_backlog, Bytes::new(347_222));
        assert!((below.mean_backlog.as_f64() - at.mean_backlog.as_f64()).abs() < 1500.0);
    }

    #[test]
    fn the_loss_rate_falls_with_the_square_of_bdp_plus_buffer() {
        // 1250 packets instead of 625: a quarter of the losses.
        let (_, small) = papers(0);
        let (_, large) = papers(625);
        assert!((small.loss.get() / large.loss.get() - 4.0).abs() < 1e-9);
    }

    #[test]
    fn a_path_of_a_few_packets_is_not_covered() {
        let path = Path::new(Rate::from_mbit_per_second(1), Duration::from_millis(1), PACKET);
        assert!(sawtooth(&path.unwrap(), PACKET).is_err());
        assert!(sawtooth(&papers(1).0, Bytes::ZERO).is_err());
    }
}
