//! A measurement as JSON; docs/formats.md describes it.

use serde_json::{Value, json};
use sweetspot_measure::{DirectionReport, Discipline};
use sweetspot_transfer::Measured;
use sweetspot_units::Duration;

use super::outlook::Outlook;

pub fn document(measured: &Measured, outlook: &Outlook) -> Value {
    let report = &measured.report;
    let tcp = &measured.tcp;
    json!({
        "peer": measured.peer.to_string(),
        "version": env!("CARGO_PKG_VERSION"),
        "took_s": measured.took.as_secs_f64(),
        "round_trip": {
            "base_s": report.round_trip.base,
            "median_s": report.round_trip.median,
            "variation_s": report.round_trip.variation,
        },
        "changed_s": report.changed.map(|(first, last)| [first.as_secs_f64(), last.as_secs_f64()]),
        "directions": report.directions.iter().map(direction).collect::<Vec<_>>(),
        "tcp": {
            "path_mtu_bytes": tcp.path_mtu.get(),
            "segment_bytes": tcp.segment.get(),
            "window_scale": tcp.window_scale.map(|(send, receive)| [send, receive]),
            "sack": tcp.sack,
            "timestamps": tcp.timestamps,
            "ecn": tcp.ecn,
        },
        "intrusion": report.intrusion,
        "left_out": report.left_out,
        "outlook": outlook,
    })
}

fn direction(report: &DirectionReport) -> Value {
    let discipline = match &report.discipline {
        Ok(Discipline::Policer { burst }) => {
            json!({ "value": "policer", "burst_bytes": burst.get() })
        }
        Ok(other) => json!({ "value": other }),
        Err(why) => json!({ "unknown": why.to_string() }),
    };
    json!({
        "direction": report.direction,
        "capacity_bps": report.capacity,
        "burst_bytes": report.burst.map(|burst| burst.get()),
        "pair_mode_bps": report.pair_mode.map(|rate| rate.bits_per_second()),
        "coalesced": report.coalesced,
        "available_bps": report.available,
        "buffer_bytes": report.buffer.bytes,
        "buffer_s": report.buffer.delay,
        "discipline": discipline,
        "loss": report.loss.rate,
        "loss_burst_packets": report.loss.burst,
        "loss_packets_sent": report.loss.sent,
        "loss_packets_lost": report.loss.lost,
        "reordering": report.reordering,
        "jitter_s": report.jitter,
        "load": report.load.as_ref().map(|load| json!({
            "congestion": load.congestion,
            "goodput_bps": load.goodput,
            "round_trip_s": load.round_trip,
            "round_trips_per_minute": load.responsiveness,
            "grade": load.grade,
            "increase_s": load.increase.map(Duration::as_secs_f64),
            "increase_low_s": load.increase_interval().map(|(low, _)| low.as_secs_f64()),
            "increase_high_s": load.increase_interval().map(|(_, high)| high.as_secs_f64()),
            "retransmitted": load.retransmitted,
        })),
        "left_out": report.left_out,
    })
}
