use std::collections::BTreeMap;
use std::fmt::Write;

use sweetspot_control::TuneEventKind;
use sweetspot_units::{Bytes, Rate};

/// The state of a tuner at one moment.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TunerSnapshot {
    /// The number of watched connections.
    pub watched: usize,
    /// The number of connections with a limited window.
    pub limited: usize,
    /// The sum of their window limits.
    pub window: Bytes,
    /// The rate at which all watched connections receive.
    pub rate: Rate,
    /// The number of paced uploads.
    pub paced: usize,
    /// The sum of their pacing rates.
    pub pace: Rate,
    /// The watched connections by the label of their peers.
    pub peers: BTreeMap<String, PeerSnapshot>,
    /// The number of events of each kind since the start.
    pub events: BTreeMap<TuneEventKind, u64>,
}

/// The connections to one peer network.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PeerSnapshot {
    /// The number of watched connections.
    pub watched: usize,
    /// The sum of their window limits.
    pub window: Bytes,
    /// The rate at which they receive.
    pub rate: Rate,
}

impl TunerSnapshot {
    /// The state in Prometheus's text format 0.0.4.
    pub fn prometheus(&self) -> String {
        let mut text = String::new();
        let mut gauge = |name: &str, help: &str, value: f64| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}");
        };
        gauge("sweetspot_connections_watched", "Observed connections.", self.watched as f64);
        gauge("sweetspot_connections_limited", "Connections limited.", self.limited as f64);
        gauge("sweetspot_window_bytes", "Sum of the limits.", self.window.as_f64());
        gauge("sweetspot_goodput_bytes_per_second", "Payload received.", self.rate.as_f64() / 8.0);
        gauge("sweetspot_uploads_paced", "Uploads paced.", self.paced as f64);
        gauge(
            "sweetspot_pace_bytes_per_second",
            "Sum of the pacing rates.",
            self.pace.as_f64() / 8.0,
        );
        let mut by_peer = |name: &str, help: &str, of: fn(&PeerSnapshot) -> f64| {
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
            for (peer, snapshot) in &self.peers {
                let _ = writeln!(text, "{name}{{peer=\"{peer}\"}} {}", of(snapshot));
            }
        };
        by_peer("sweetspot_peer_connections", "Connections by the peer's network.", |peer| {
            peer.watched as f64
        });
        by_peer("sweetspot_peer_window_bytes", "Limits by the peer's network.", |peer| {
            peer.window.as_f64()
        });
        by_peer(
            "sweetspot_peer_goodput_bytes_per_second",
            "Payload received, by the peer's network.",
            |peer| peer.rate.as_f64() / 8.0,
        );
        let _ = writeln!(text, "# HELP sweetspot_events_total Actions of the tuner.");
        let _ = writeln!(text, "# TYPE sweetspot_events_total counter");
        // Also kinds that have not happened: Prometheus's increase() does not see a series that begins above 0.
        for kind in TuneEventKind::ALL {
            let count = self.events.get(&kind).copied().unwrap_or_default();
            let _ = writeln!(text, "sweetspot_events_total{{event=\"{}\"}} {count}", kind.name());
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prometheus_samples_follow_their_type_lines() {
        let events = BTreeMap::from([(TuneEventKind::Held, 2)]);
        let rate = Rate::from_mbit_per_second(8);
        let peer = PeerSnapshot { watched: 3, rate, ..PeerSnapshot::default() };
        let peers = BTreeMap::from([("192.0.2.0/24".to_owned(), peer)]);
        let snapshot =
            TunerSnapshot { limited: 1, rate, peers, events, ..TunerSnapshot::default() };
        let text = snapshot.prometheus();
        assert!(text.contains("\nsweetspot_peer_connections{peer=\"192.0.2.0/24\"} 3\n"));
        assert!(text.contains(
            "# TYPE sweetspot_connections_limited gauge\nsweetspot_connections_limited 1\n"
        ));
        // 8 Mbit/s are 1,000,000 bytes a second.
        assert!(text.contains("\nsweetspot_goodput_bytes_per_second 1000000\n"));
        assert!(text.contains("\nsweetspot_events_total{event=\"held\"} 2\n"));
        assert!(text.contains("\nsweetspot_events_total{event=\"refused\"} 0\n"));
    }

    /// The metric names in `text` that begin with our prefix.
    fn metrics_in(text: &str) -> Vec<&str> {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let mut names: Vec<&str> = words.filter(|word| word.starts_with("sweetspot_")).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The metrics of `tune`, without those that `serve` exports.
    fn ours(text: &str) -> Vec<&str> {
        let served = |name: &str| {
            name.starts_with("sweetspot_transfer") || name.starts_with("sweetspot_refused")
        };
        metrics_in(text).into_iter().filter(|name| !served(name)).collect()
    }

    #[test]
    fn the_dashboard_and_alerts_use_only_exported_metrics() {
        let handed_out = TunerSnapshot::default().prometheus();
        let known = metrics_in(&handed_out);
        for query in [
            include_str!("../../../packaging/grafana-dashboard.json"),
            include_str!("../../../packaging/alerts.yml"),
        ] {
            let asked = ours(query);
            assert!(asked.len() >= 5, "{asked:?}");
            for name in asked {
                assert!(known.contains(&name), "{name} is in no metric of {known:?}");
            }
        }
        // The dashboard shows every metric.
        assert_eq!(ours(include_str!("../../../packaging/grafana-dashboard.json")), known);
    }
}
