use sweetspot_units::{Bytes, Duration, Rate};

/// The rate at which a sender paces for a control that does not pace by itself. It is a little more
/// than a window of `cwnd` packets of `packet` bytes per smoothed round trip, so that the window
/// stays the limit (Linux `tcp_update_pacing_rate`: `tcp_pacing_ss_ratio` 200 % while the window
/// is below half of ssthresh, `tcp_pacing_ca_ratio` 120 % from there on).
pub fn window_pacing_rate(cwnd: f64, ssthresh: f64, srtt: Duration, packet: Bytes) -> Rate {
    let ratio = if cwnd < ssthresh / 2.0 { 2.0 } else { 1.2 };
    packet.scaled(ratio * cwnd) / srtt
}
