//! A receive window in sequence space instead of memory: J. Heffner, "High Bandwidth TCP
//! Queuing" (2002), §6.

use sweetspot_units::Bytes;

// Heffner §6.6: rcv_space - rcv_alloc + ofo_alloc.
/// The window to advertise: the buffer's target minus the in-order data that the application has not read. Out-of-order data do
/// not reduce it, so a single loss does not close the window.
///
/// `in_buffer`: all data that the receiver holds, including `out_of_order`.
pub fn window(space: Bytes, in_buffer: Bytes, out_of_order: Bytes) -> Bytes {
    space.saturating_sub(in_buffer.saturating_sub(out_of_order))
}

// Heffner §6.6: "may not retract a previously advertised window".
/// The window to advertise if an earlier advertisement still promises `promised` bytes.
pub fn never_retracted(window: Bytes, promised: Bytes) -> Bytes {
    window.max(promised)
}

// Heffner §6.5: 4 MSS at the start; once per RTT the bytes received plus 4 MSS, but at least half of the previous value.
/// The buffer's target after an RTT in which `received` bytes arrived.
pub fn next_space(space: Bytes, received: Bytes, mss: Bytes) -> Bytes {
    received.saturating_add(mss * 4).max(Bytes::new(space.get() / 2))
}

// Derived from Heffner §4.2.1 and §6.5. Let a and u be the arrivals and the unread data of a round trip, minus the data that
// the application reads in one. The next round trip brings the window advertised now, a' = k a - u, and leaves u' = u + a' = k
// a unread. The matrix [[k, -1], [k, 0]] has the determinant k and the trace k, so for k < 4 its eigenvalues are complex with
// the modulus sqrt(k).
/// The factor per round trip by which a slow reader's window departs from its steady state. The receiver advertises `times` the
/// arrivals of the last round trip, minus the unread data. The window settles only if the factor is below one. `None` for 4 or
/// more: the window then departs without oscillating.
pub fn slow_reader_growth(times: f64) -> Option<f64> {
    (times > 0.0 && times < 4.0).then(|| libm::sqrt(times))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: Bytes = Bytes::new(1460);

    #[test]
    fn unread_data_reduces_the_window_but_out_of_order_data_does_not() {
        let space = Bytes::new(100_000);
        assert_eq!(window(space, Bytes::new(30_000), Bytes::ZERO), Bytes::new(70_000));
        // 30,000 bytes are held, all behind one lost packet: the window is not reduced.
        assert_eq!(window(space, Bytes::new(30_000), Bytes::new(30_000)), space);
        assert_eq!(window(space, Bytes::new(130_000), Bytes::new(10_000)), Bytes::ZERO);
    }

    #[test]
    fn the_target_follows_arrivals_and_falls_by_at_most_half() {
        // 50,000 received: + 4 * 1460 = 55,840. Nothing received: max(5,840, 50,000).
        let space = Bytes::new(100_000);
        assert_eq!(next_space(space, Bytes::new(50_000), MSS), Bytes::new(55_840));
        assert_eq!(next_space(space, Bytes::ZERO, MSS), Bytes::new(50_000));
    }

    #[test]
    fn a_slow_readers_window_diverges_at_the_predicted_growth_rate() {
        // The map of section 4.2.1 itself, from a disturbance of one: after 80 round trips the norm is the modulus to the 80th,
        // within the ratio of the ellipse's axes.
        for times in [0.5, 1.0, 2.0, 3.0] {
            let (mut arrivals, mut unread) = (1.0, 0.0);
            let mut sizes = Vec::new();
            for _ in 0..80 {
                arrivals = times * arrivals - unread;
                unread += arrivals;
                sizes.push(f64::hypot(arrivals, unread));
            }
            let growth = (sizes[79] / sizes[39]).powf(1.0 / 40.0);
            let expected = slow_reader_growth(times).unwrap();
            assert!((growth / expected - 1.0).abs() < 0.05, "{times}: {growth} {expected}");
        }
        assert_eq!(slow_reader_growth(4.0), None);
    }

    #[test]
    fn an_advertised_window_is_never_retracted() {
        let promised = Bytes::new(60_000);
        assert_eq!(never_retracted(Bytes::new(40_000), promised), promised);
        assert_eq!(never_retracted(Bytes::new(80_000), promised), Bytes::new(80_000));
    }
}
