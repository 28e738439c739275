//! The time series of a transfer: the lines of `--series`.

use serde::{Deserialize, Serialize};
use sweetspot_sizing::SizingEvent;
use sweetspot_units::Time;

/// A line of the time series (`--series`): a row every 50 ms, and the controller's events as they happen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SeriesRecord {
    /// A sample.
    Row(SeriesRow),
    /// An event of the controller.
    Event(SeriesEvent),
}

/// A sample of a running transfer. Values that this end does not know are null.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SeriesRow {
    /// Seconds since the connection began.
    pub t_s: f64,
    /// Content so far, bytes: received or, at the sender, acknowledged. The sender's count includes the TLS overhead of 0.1 %.
    pub bytes: u64,
    /// Goodput since the last row, bits per second.
    pub goodput_bps: f64,
    /// The advertised receive window, bytes: this end's own or, at the sender, the last one received.
    pub window_bytes: Option<u64>,
    /// The latest RTT since the last row, seconds. While the controller probes, it is a probe's RTT, or `None` without a new
    /// answer. Otherwise, and at the sender, it is the kernel's.
    pub rtt_s: Option<f64>,
    /// The controller's phase.
    pub phase: Option<String>,
    /// The pacing rate requested from the sender, for its payload, bits per second.
    pub pacing_bps: Option<f64>,
    /// The sender's congestion window, bytes.
    pub cwnd_bytes: Option<u64>,
    /// Retransmitted segments so far.
    pub retransmitted: Option<u64>,
    /// Segments with payload sent so far, including retransmissions; only in the sender's rows.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub segments: Option<u64>,
    /// Retransmission timeouts (RTOs) so far; only in the sender's rows, on kernels that count them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub timeouts: Option<u64>,
}

/// An event of the controller.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SeriesEvent {
    /// Seconds since the connection began.
    pub t_s: f64,
    /// The kind of event, in one word.
    pub event: String,
    /// The event's window, bytes.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub window_bytes: Option<u64>,
    /// The event's rate, bits per second.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rate_bps: Option<f64>,
    /// The event's RTT, seconds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rtt_s: Option<f64>,
    /// Why the controller changed its phase, if it did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
    /// The congestion control requested from the sender, if the event is about it; `own` is the sender's own.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub congestion_to: Option<String>,
}

impl SeriesEvent {
    /// The event as a line, with its time counted from `start`.
    pub fn new(event: &SizingEvent, start: Time) -> SeriesEvent {
        let (rate, rtt, window) = event.kind.quantities();
        SeriesEvent {
            t_s: event.at.since(start).as_secs_f64(),
            event: event.kind.name().to_owned(),
            window_bytes: window.map(|w| w.get()),
            rate_bps: rate.map(|r| r.as_f64()),
            rtt_s: rtt.map(|t| t.as_secs_f64()),
            reason: event.kind.reason().map(|reason| reason.to_string()),
            congestion_to: event.kind.congestion().map(|choice| choice.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sweetspot_sizing::EventKind;
    use sweetspot_units::Bytes;

    #[test]
    fn rows_and_events_round_trip_through_json() {
        let kind = EventKind::Limited { window: Bytes::new(9) };
        let at = Time::from_nanos(2_000_000_000);
        let lines = [
            SeriesRecord::Row(SeriesRow { t_s: 1.0, bytes: 5, ..SeriesRow::default() }),
            SeriesRecord::Event(SeriesEvent::new(
                &SizingEvent { at, kind },
                Time::from_nanos(500_000_000),
            )),
        ];
        for line in lines {
            let text = serde_json::to_string(&line).unwrap();
            assert_eq!(serde_json::from_str::<SeriesRecord>(&text).unwrap(), line);
        }
    }
}
