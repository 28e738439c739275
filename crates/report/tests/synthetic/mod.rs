//! A computed outcome that resembles a real one: five transfers of 200 MB over 100 Mbit/s, 100 ms
//! and 125 kB of buffer, with typical shapes of windows, RTTs and queues.

use sweetspot_path::{PathSpec, Random};
use sweetspot_report::{
    Certificate, DemoOutcome, FileFacts, PathFacts, SeriesEvent, VariantOutcome,
};
use sweetspot_statistics::Sorted;
use sweetspot_units::{Bytes, Duration};

const SIZE: f64 = 200e6;
/// The path's payload capacity in bytes per second: 100 Mbit/s x 1448/1500 / 8.
const CARRIES: f64 = 12.067e6;
const BDP: f64 = 1.25e6;
const BUFFER: f64 = 125e3;

/// The window of one transfer: a function from seconds to bytes.
type Shape = fn(f64) -> f64;

/// The whole outcome.
pub fn outcome() -> DemoOutcome {
    let path: PathSpec = "rate=100Mbit/s rtt=100ms buffer=125kB".parse().expect("a valid path");
    DemoOutcome {
        version: "0.1.0".into(),
        command: "sweetspot demo --path \"rate=100Mbit/s rtt=100ms buffer=125kB\"".into(),
        date: "2026-11-20T10:00:00Z".into(),
        machine: "AMD EPYC, 2 CPUs".into(),
        kernel: "Linux 6.18.44".into(),
        path: PathFacts::of(&path),
        file: FileFacts { size: Bytes::from_f64(SIZE), seed: Some(1) },
        variants: vec![
            variant("kernel", "cubic", cubic, 184),
            variant("kernel", "bbr", |t| BDP * (1.08 + 0.1 * (t * 6.0).sin()) * ramp(t, 1.2), 5709),
            distrusted(variant(
                "bdp",
                "cubic",
                |t| BDP * 0.8 * (0.7 + 0.3 * (t / 7.0).fract()),
                62,
            )),
            variant("sobas:paper", "cubic", |t| BDP * 1.02 * ramp(t, 5.0), 40),
            variant("sobas", "cubic", |t| BDP * 1.01 * ramp(t, 1.5), 0),
        ],
    }
}

/// Rises from zero to one within `after` seconds.
fn ramp(t: f64, after: f64) -> f64 {
    (t / after).min(1.0).powf(1.5)
}

/// A sawtooth that begins with a slow-start overshoot.
fn cubic(t: f64) -> f64 {
    let since = (t / 8.0).fract() * 8.0;
    if t < 1.0 { BDP * 1.4 * t } else { BDP * (0.45 + 0.00136 * (since * since * since)) }
}

fn variant(sizing: &str, congestion: &str, in_flight: Shape, retransmitted: u64) -> VariantOutcome {
    let mut c = VariantOutcome::new(sizing, congestion);
    let mut random = Random::new(7);
    let (mut t, mut received, step) = (0.0, 0.0, 0.02);
    while received < SIZE {
        t += step;
        let flight = in_flight(t).min(BDP + BUFFER);
        let queue = (flight - BDP).max(0.0) + BUFFER * 0.06 * random.unit();
        received = (received + (flight / BDP).min(1.0) * CARRIES * step).min(SIZE);
        let window = if sizing == "kernel" { 6.3e6 * ramp(t, 1.5) } else { in_flight(t) };
        let now = Duration::from_secs_f64(t);
        c.series.t.push(now);
        c.series.received.push(Bytes::from_f64(received));
        c.series.window.push(Some(Bytes::from_f64(window)));
        c.series.rtt.push(Some(Duration::from_secs_f64(0.1 + queue / 12.5e6)));
        c.series.queue.t.push(now);
        c.series.queue.bytes.push(Bytes::from_f64(queue));
    }
    c.series.fill_goodput();
    if sizing.starts_with("sobas") {
        c.series.events = vec![
            mark(0.31, "capacity estimated: 99.2 Mbit/s, 100.4 ms"),
            mark(1.62, "saturated: 95.1 Mbit/s, 101 ms"),
            mark(1.62, "limited to 1.26 MB"),
        ];
    }
    summarise(&mut c, t, retransmitted);
    c
}

fn mark(seconds: f64, what: &str) -> SeriesEvent {
    SeriesEvent { t: Duration::from_secs_f64(seconds), what: what.into() }
}

fn summarise(c: &mut VariantOutcome, seconds: f64, retransmitted: u64) {
    let duration = Duration::from_secs_f64(seconds);
    let rtts: Sorted = c.series.rtts().iter().map(|rtt| rtt.as_secs_f64()).collect();
    c.duration = Some(duration);
    c.goodput = Some(Bytes::from_f64(SIZE) / duration);
    c.share_of_capacity = Some(SIZE / seconds / CARRIES);
    c.segments = Some(138_122 + retransmitted);
    c.retransmitted_segments = Some(retransmitted);
    c.bottleneck_drops = Some(retransmitted);
    c.rtt_median = rtts.quantile(0.5).map(Duration::from_secs_f64);
    c.rtt_p99 = rtts.quantile(0.99).map(Duration::from_secs_f64);
    let nine_tenths = sweetspot_units::Rate::from_f64(CARRIES * 8.0 * 0.9);
    c.time_to_90_percent = c.series.time_to(nine_tenths);
    c.sender_cpu = Some(Duration::from_millis(380));
    c.receiver_cpu = Some(Duration::from_millis(540));
    c.hash_ok = true;
    c.certificate = Some(Certificate {
        trust: true,
        reasons: Vec::new(),
        lateness_p50: Duration::from_micros(12),
        lateness_p99: Duration::from_micros(88),
        lateness_max: Duration::from_micros(930),
        drops: vec![("up: buffer full".into(), retransmitted)],
        text: "late by p50 12 us, p99 88 us, max 930 us\ntrust".into(),
        emulator: serde_json::Value::Null,
    });
}

fn distrusted(mut c: VariantOutcome) -> VariantOutcome {
    if let Some(certificate) = &mut c.certificate {
        certificate.trust = false;
        certificate.reasons =
            vec!["99 of 100 packets must leave within 200 us of their time, here 4.1 ms".into()];
    }
    c
}
