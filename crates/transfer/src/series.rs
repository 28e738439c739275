//! The time series of a transfer: what `--series` writes, line by line.

use serde::{Deserialize, Serialize};
use sweetspot_sizing::Event;
use sweetspot_units::Time;

/// A line of the time series (`--series`): a row every 50 ms, and events as they happen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SeriesRecord {
    /// A sample.
    Row(Row),
    /// Something that the controller did.
    Event(SeriesEvent),
}

/// A sample of a running transfer. What this end does not know is null.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Row {
    /// Seconds since the connection began.
    pub t_s: f64,
    /// Content so far, bytes: received, or at the sender acknowledged (a tenth of a per cent of
    /// which is TLS).
    pub bytes: u64,
    /// Content since the last row over the time since then, bits per second.
    pub goodput_bps: f64,
    /// The window that the receiver advertises: its own word, or what the sender last heard.
    pub window_bytes: Option<u64>,
    /// The latest round-trip time: a probe's, or the kernel's where probes do not pass, and at the
    /// sender.
    pub rtt_s: Option<f64>,
    /// Where the controller stands.
    pub phase: Option<String>,
    /// The rate at which the sender is asked to pace its payload.
    pub pacing_bps: Option<f64>,
    /// The sender's congestion window.
    pub cwnd_bytes: Option<u64>,
    /// Segments retransmitted so far.
    pub retransmitted: Option<u64>,
    /// Segments with payload sent so far, retransmissions included; the sender's row only.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub segments: Option<u64>,
    /// Retransmission timeouts so far; the sender's row only, on kernels that count them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub timeouts: Option<u64>,
}

/// An event of the controller.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SeriesEvent {
    /// Seconds since the connection began.
    pub t_s: f64,
    /// What happened, in one word.
    pub event: String,
    /// The window it is about.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub window_bytes: Option<u64>,
    /// The rate it is about.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rate_bps: Option<f64>,
    /// The round-trip time it is about.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rtt_s: Option<f64>,
    /// Why, in words, where the controller changed its state.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
}

impl SeriesEvent {
    /// The event as a line, with its time counted from `start`.
    pub fn new(event: &Event, start: Time) -> SeriesEvent {
        let (rate, rtt, window) = event.kind.quantities();
        SeriesEvent {
            t_s: event.at.since(start).as_secs_f64(),
            event: event.kind.name().to_owned(),
            window_bytes: window.map(|w| w.get()),
            rate_bps: rate.map(|r| r.as_f64()),
            rtt_s: rtt.map(|t| t.as_secs_f64()),
            reason: event.kind.reason().map(|reason| reason.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sweetspot_sizing::EventKind;
    use sweetspot_units::Bytes;

    #[test]
    fn rows_and_events_are_told_apart_when_read_back() {
        let kind = EventKind::Limited { window: Bytes::new(9) };
        let at = Time::from_nanos(2_000_000_000);
        let lines = [
            SeriesRecord::Row(Row { t_s: 1.0, bytes: 5, ..Row::default() }),
            SeriesRecord::Event(SeriesEvent::new(
                &Event { at, kind },
                Time::from_nanos(500_000_000),
            )),
        ];
        for line in lines {
            let text = serde_json::to_string(&line).unwrap();
            assert_eq!(serde_json::from_str::<SeriesRecord>(&text).unwrap(), line);
        }
    }
}
