//! The experiment of S. Gordon, "Impact of Bandwidth Delay Product on TCP Throughput" (2012), on
//! this machine's kernel: Fast Ethernet, 10 ms, five receive buffers, Reno, offloads off, the
//! receive buffer's autotuning off.

mod document;
mod measure;

pub use document::Environment;

use serde::{Deserialize, Serialize};
use sweetspot_linux::{host, sysctl};
use sweetspot_theory::TheoryError;
use sweetspot_theory::host::advertised_window::{Era, ScalingRatio};
use sweetspot_theory::host::frame::Framing;
use sweetspot_theory::host::window_scale::WindowScale;
use sweetspot_theory::path::window;
use sweetspot_units::{Bytes, Duration, Rate};

use sweetspot_lab::Doing;
use sweetspot_lab::{Certificate, LabError};

/// The rate of Fast Ethernet.
const LINK: Rate = Rate::from_mbit_per_second(100);
/// netem's 5 ms on both computers, as an RTT.
const RTT: Duration = Duration::from_millis(10);
/// An Ethernet MTU.
const MTU: Bytes = Bytes::new(1500);
/// The kernel memory of a packet of this size: a buffer of 2048 B plus the 256 B of its sk_buff (SKB_TRUESIZE,
/// include/linux/skbuff.h, rounded up to the allocator's size).
const PACKET_MEMORY: Bytes = Bytes::new(2304);

/// The blog's settings and results: `iperf -w` in kB, its expected window in kB, its expected and measured rates in Mbit/s, and
/// its accuracy in per cent.
pub const PUBLISHED: [Published; 5] = [
    Published { asked_kb: 50, window_kb: 75.0, expected: 60.0, measured: 54.1, accuracy: 90 },
    Published { asked_kb: 75, window_kb: 112.5, expected: 90.0, measured: 82.3, accuracy: 91 },
    Published { asked_kb: 83, window_kb: 125.0, expected: 100.0, measured: 91.1, accuracy: 91 },
    Published { asked_kb: 100, window_kb: 150.0, expected: 100.0, measured: 94.0, accuracy: 94 },
    Published { asked_kb: 125, window_kb: 187.5, expected: 100.0, measured: 94.1, accuracy: 94 },
];

/// A row of the blog's second table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Published {
    /// The argument of `iperf -w`, kB.
    pub asked_kb: u64,
    /// Maximum advertised window that the blog expected, kB.
    pub window_kb: f64,
    /// Expected throughput, Mbit/s.
    pub expected: f64,
    /// Measured throughput, Mbit/s.
    pub measured: f64,
    /// Measured over expected, per cent.
    pub accuracy: u64,
}

/// The experiment's result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Blog {
    /// The kernel's release.
    pub kernel: String,
    /// Measurement time per buffer, seconds.
    pub seconds_each: f64,
    /// The link's rate, bit/s, counting every byte on the Ethernet.
    pub link_bps: f64,
    /// The round-trip propagation, seconds.
    pub rtt_s: f64,
    /// One row per receive buffer.
    pub rows: Vec<BlogRow>,
}

/// Expectation and measurement for one receive buffer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BlogRow {
    /// The requested SO_RCVBUF, bytes: `iperf -w`.
    pub asked_bytes: u64,
    /// The granted buffer, bytes.
    pub buffer_bytes: u64,
    /// The window that this kernel derives from the buffer, bytes.
    pub window_expected_bytes: u64,
    /// The largest window that was advertised, bytes.
    pub window_advertised_bytes: u64,
    /// The expected window per RTT, or the link's rate if that is lower, bit/s: the blog's "expected throughput".
    pub expected_bps: f64,
    /// The same with more known effects: the window's RTT includes a packet's serialisation, and headers use part of the link,
    /// bit/s.
    pub expected_with_headers_bps: f64,
    /// Payload received over the time since the first SYN, bit/s.
    pub measured_bps: f64,
    /// Measured rate relative to the blog's expected rate.
    pub accuracy: f64,
    /// The min RTT seen by the sender's kernel, seconds.
    pub rtt_min_s: f64,
    /// Retransmitted segments.
    pub retransmitted: u64,
    /// The emulator's certificate.
    pub certificate: Certificate,
}

/// The expectation for one receive buffer.
struct Expectation {
    window: Bytes,
    rate: Rate,
    with_headers: Rate,
}

impl Expectation {
    fn of(requested: Bytes, era: Era, rmem_max: Bytes) -> Result<Expectation, TheoryError> {
        let payload = Framing::COMMON.payload(MTU)?;
        let ratio = ScalingRatio::measured(payload, PACKET_MEMORY)?;
        // The handshake chose a window scale for the window that the buffer allowed at the time.
        let first = era.window_of_so_rcvbuf(requested, rmem_max, None)?;
        let max = WindowScale::of_linux(rmem_max, rmem_max, Some(first)).largest_window();
        let window = era.window_of_so_rcvbuf(requested, rmem_max, Some(ratio))?.min(max);
        let serialisation = Framing::COMMON.on_the_wire(payload)? / LINK;
        Ok(Expectation {
            window,
            rate: window::throughput(window, RTT)?.min(LINK),
            with_headers: window::throughput(window, RTT + serialisation)?
                .min(Framing::COMMON.goodput(LINK, MTU)?),
        })
    }
}

/// Measures each of the blog's five receive buffers for `each`, and passes every row to `progress`. Must run inside
/// [`isolated`](sweetspot_lab::isolated).
pub fn blog(each: Duration, progress: &mut dyn FnMut(&BlogRow)) -> Result<Blog, LabError> {
    let kernel = host::kernel_release().unwrap_or_default();
    let (major, minor) = version(&kernel)?;
    let era = Era::of_kernel(major, minor);
    let rmem_max = sysctl::rmem_max().doing("read net.core.rmem_max")?;
    let mut rows = Vec::new();
    for published in &PUBLISHED {
        let requested = Bytes::new(published.asked_kb * 1000);
        let expected = Expectation::of(requested, era, rmem_max)
            .map_err(|error| LabError::Inside(format!("lab: {error}")))?;
        let row = measure::row(requested, &expected, each)?;
        progress(&row);
        rows.push(row);
    }
    Ok(Blog {
        kernel,
        seconds_each: each.as_secs_f64(),
        link_bps: LINK.as_f64(),
        rtt_s: RTT.as_secs_f64(),
        rows,
    })
}

/// The major and minor version of `release`.
fn version(release: &str) -> Result<(u32, u32), LabError> {
    host::version_of(release).ok_or_else(|| {
        LabError::Inside(format!("lab: the rule for windows of kernel \"{release}\" is unknown"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distribution_kernel_releases_are_parsed() {
        assert_eq!(version("6.18.44-fc-v669").ok(), Some((6, 18)));
        assert_eq!(version("5.15.0-105-generic").ok(), Some((5, 15)));
        assert!(version("").is_err() && version("next").is_err());
    }

    #[test]
    fn expected_windows_and_rates_match_a_manual_calculation() {
        let expected = |era| Expectation::of(Bytes::new(50_000), era, Bytes::MAX).unwrap();
        // The blog's kernel: 75 % of 100 kB, 75 kB per 10 ms = 60 Mbit/s.
        let then = expected(Era::ThreeQuarters);
        assert_eq!((then.window, then.rate), (Bytes::new(75_000), Rate::from_mbit_per_second(60)));
        // From 6.8 on: 1448 * 256 / 2304 = 160; 160/256 of 100 kB = 62.5 kB.
        let now = expected(Era::Ratio);
        assert_eq!((now.window, now.rate), (Bytes::new(62_500), Rate::from_mbit_per_second(50)));
        // 1538 B at 100 Mbit/s take 123 us: 62,500 * 8 / 10.12304 ms = 49.39 Mbit/s.
        assert!((now.with_headers.as_f64() - 49.392e6).abs() < 1e3, "{}", now.with_headers);
    }

    #[test]
    fn the_expected_rate_never_exceeds_the_link() {
        let wide = Expectation::of(Bytes::new(125_000), Era::Ratio, Bytes::MAX).unwrap();
        // 250 kB of memory: a window of 125,000 B in the handshake, which selects a scale of log2 - 15 = 1, so at most 65,535 *
        // 2, although 160/256 would give 156,250; 104.9 Mbit/s by the formula.
        assert_eq!((wide.window, wide.rate), (Bytes::new(131_070), LINK));
        // 1448 / 1538 of the link.
        assert!((wide.with_headers.as_f64() - 94.148e6).abs() < 1e3, "{}", wide.with_headers);
    }
}
