use std::collections::VecDeque;

use sweetspot_units::{Bytes, Duration, Rate, Time};

/// The shortest time over which a rate is believed: a few looks at the connection, and longer than
/// interrupts are held back.
const SHORTEST: Duration = Duration::from_millis(5);

/// ... and the least that must have arrived in it, in segments, so that the first and the last
/// one cut in half do not matter.
const LEAST_SEGMENTS: u64 = 20;

/// The path's capacity from the transfer's own bursts: slow start sends each flight back to back,
/// so that it leaves the bottleneck as a packet train (section VII-A of the SOBAS paper sends one
/// on purpose). The highest rate over any stretch that is long enough.
#[derive(Debug)]
pub(super) struct Dispersion {
    least: Bytes,
    arrivals: VecDeque<(Time, Bytes)>,
    total: Bytes,
    highest: Option<Rate>,
}

impl Dispersion {
    pub(super) fn new(mss: Bytes) -> Dispersion {
        Dispersion {
            least: mss * LEAST_SEGMENTS,
            arrivals: VecDeque::new(),
            total: Bytes::ZERO,
            highest: None,
        }
    }

    /// `bytes` of payload arrived since the last call.
    pub(super) fn handle_arrival(&mut self, now: Time, bytes: Bytes) {
        self.total += bytes;
        self.arrivals.push_back((now, self.total));
        // The shortest stretch that is long enough: from its first arrival on, without it.
        while let Some((since, before)) = self.arrivals.front() {
            let (span, arrived) = (now.since(*since), self.total - *before);
            if span < SHORTEST || arrived < self.least {
                break;
            }
            let rate = arrived / span;
            self.highest = Some(self.highest.map_or(rate, |highest| highest.max(rate)));
            self.arrivals.pop_front();
        }
    }

    /// The capacity, payload; `None` until a burst was long enough.
    pub(super) fn capacity(&self) -> Option<Rate> {
        self.highest
    }

    /// The capacity is known better.
    pub(super) fn correct(&mut self, capacity: Rate) {
        self.highest = Some(capacity);
    }
}
