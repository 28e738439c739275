use sweetspot_units::{Bytes, Duration, Rate, Time};

use super::Sent;

/// Round trips in an epoch: in one the queue shows what the pace did in the one before.
const ROUND_TRIPS: u64 = 2;

/// The shortest epoch: acknowledgements come in lumps.
const SHORTEST: Duration = Duration::from_millis(100);

/// What one epoch showed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Epoch {
    /// Payload that reached the peer.
    pub bytes: Bytes,
    /// In which time.
    pub span: Duration,
    /// The lowest round trip: what a standing queue leaves of it.
    pub rtt: Duration,
    /// Whether the program had too little to send.
    pub starved: bool,
}

impl Epoch {
    /// Payload that reached the peer, per second.
    pub fn rate(&self) -> Rate {
        self.bytes / self.span
    }
}

/// Gathers looks into epochs.
#[derive(Debug, Default)]
pub struct Meter {
    began: Option<(Time, Bytes)>,
    lowest: Option<Duration>,
    starved: bool,
}

impl Meter {
    /// A look; the epoch that it ends.
    pub fn poll_epoch(&mut self, now: Time, sent: &Sent) -> Option<Epoch> {
        if sent.rtt > Duration::ZERO {
            self.lowest = Some(self.lowest.map_or(sent.rtt, |low| low.min(sent.rtt)));
        }
        self.starved |= sent.starved;
        let (since, before) = *self.began.get_or_insert((now, sent.delivered));
        let (span, rtt) = (now.since(since), self.lowest?);
        if span < (rtt * ROUND_TRIPS).max(SHORTEST) {
            return None;
        }
        let bytes = sent.delivered.saturating_sub(before);
        let starved = self.starved;
        *self = Meter { began: Some((now, sent.delivered)), ..Meter::default() };
        Some(Epoch { bytes, span, rtt, starved })
    }
}
