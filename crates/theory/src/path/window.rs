//! Throughput as a function of window: SOBAS eqs (1)-(3).

use sweetspot_units::{Bytes, Duration, Rate};

use crate::Result;
use crate::error::require;

// SOBAS eq. (2): S = min(B_s, B_r).
/// The smaller of the two socket buffers, S: the largest window that the hosts allow.
pub fn socket_limit(send_buffer: Bytes, receive_buffer: Bytes) -> Bytes {
    send_buffer.min(receive_buffer)
}

// SOBAS eq. (1): W_s = min(W_c, W_r, B_s).
/// The maximum data in flight for the congestion window, the advertised window and the send buffer.
pub fn send_window(congestion: Bytes, advertised: Bytes, send_buffer: Bytes) -> Bytes {
    congestion.min(advertised).min(send_buffer)
}

// SOBAS eq. (3): R = W_s / T(W_s).
/// The throughput of `window` bytes per `rtt`, which is the RTT with this window in flight.
///
/// # Errors
/// If `rtt` is zero.
pub fn throughput(window: Bytes, rtt: Duration) -> Result<Rate> {
    require(rtt > Duration::ZERO, "RTT", rtt, "it must be above zero")?;
    Ok(window / rtt)
}

// SOBAS eq. (3) solved for W_s.
/// The window that carries `rate` over `rtt`.
pub fn needed(rate: Rate, rtt: Duration) -> Bytes {
    rate * rtt
}

#[cfg(test)]
mod tests {
    use super::*;

    const KB: u64 = 1000;

    #[test]
    fn the_smallest_of_three_limits_sets_the_send_window() {
        let (w, r, s) = (Bytes::new(300 * KB), Bytes::new(200 * KB), Bytes::new(250 * KB));
        assert_eq!(send_window(w, r, s), r);
        assert_eq!(send_window(Bytes::new(100 * KB), r, s), Bytes::new(100 * KB));
        assert_eq!(send_window(w, w, s), s);
        assert_eq!(socket_limit(s, r), r);
    }

    #[test]
    fn window_and_rate_convert_both_ways() {
        // 75 kB per 10 ms: 600,000 bit / 0.01 s = 60 Mbit/s.
        let rate = throughput(Bytes::new(75 * KB), Duration::from_millis(10)).unwrap();
        assert_eq!(rate, Rate::from_mbit_per_second(60));
        assert_eq!(needed(rate, Duration::from_millis(10)), Bytes::new(75 * KB));
    }

    #[test]
    fn an_rtt_of_zero_is_rejected() {
        assert!(throughput(Bytes::new(1), Duration::ZERO).is_err());
    }
}
