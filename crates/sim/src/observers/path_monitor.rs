use sweetspot_scenario::Path;
use sweetspot_sizing::KnownPath;
use sweetspot_units::{Duration, Rate, Time};

use crate::network::{Direction, HopTotals, Network};

/// Observes the path for static sizings, which need its parameters before anything is sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PathMonitor {
    /// The narrow hop's number in either direction.
    narrow: u16,
    /// The narrow hop's rate, the transfer's propagation delay, and the results of a first pass.
    known: KnownPath,
    /// Serialisation time of a data packet at the narrow hop.
    packet_time: Duration,
    /// The start of the averages, after it has passed.
    start: Option<AverageStart>,
}

/// The start of the averages, and the narrow hop's counts at that time.
#[derive(Debug, Clone, Copy)]
struct AverageStart {
    at: Time,
    forward: HopTotals,
    backward: HopTotals,
}

impl PathMonitor {
    pub(crate) fn new(path: &Path, known: KnownPath) -> PathMonitor {
        PathMonitor {
            narrow: path.bottleneck() as u16,
            known,
            packet_time: path.packet / path.narrow().rate,
            start: None,
        }
    }

    /// The index of the forward narrow hop among the hops of both directions.
    pub(crate) fn narrow(&self) -> usize {
        usize::from(self.narrow)
    }

    /// The narrow hop's counts at `now`, forward and backward.
    fn totals(&self, network: &mut Network, now: Time) -> [HopTotals; 2] {
        [Direction::Forward, Direction::Backward].map(|direction| {
            let index = network.index(direction, self.narrow);
            network.hop(index).totals(now)
        })
    }

    pub(crate) fn start_averages(&mut self, network: &mut Network, now: Time) {
        let [forward, backward] = self.totals(network, now);
        self.start = Some(AverageStart { at: now, forward, backward });
    }

    /// The path's parameters at `now`, before a transfer starts: A and T_e are averages.
    pub(crate) fn known_path(&self, network: &mut Network, now: Time) -> KnownPath {
        let known = self.known;
        let Some(start) = self.start.filter(|start| start.at < now) else {
            return KnownPath {
                available: Some(known.rate),
                exogenous_rtt: Some(known.rtt),
                ..known
            };
        };
        let seconds = now.since(start.at).as_secs_f64();
        let [forward, backward] = self.totals(network, now);
        let mut queued = 0.0;
        for (totals, earlier) in [(forward, start.forward), (backward, start.backward)] {
            let waited = totals.waits.byte_time - earlier.waits.byte_time;
            queued += waited as f64 / 1e9 * 8.0 / known.rate.as_f64() / seconds;
        }
        let sent = forward.sent_bits - start.forward.sent_bits;
        let used = Rate::from_f64(sent as f64 / seconds);
        KnownPath {
            available: Some(known.rate.saturating_sub(used)),
            exogenous_rtt: Some(known.rtt + Duration::from_secs_f64(queued) + self.packet_time),
            ..known
        }
    }
}
