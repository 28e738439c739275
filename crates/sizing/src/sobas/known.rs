use sweetspot_units::{Bytes, Duration, Rate};

/// How much longer or shorter, slower, and faster, a path may seem and still be the one that is known:
/// handshakes meet others' queues, and a burst that a busy host held back comes faster than it was.
const SAME_ROUND_TRIP: f64 = 1.25;
const SLOWER: f64 = 0.75;
const FASTER: f64 = 1.8;

/// A flight that lasts so long has been timed well.
const TIMED: Duration = Duration::from_millis(10);

/// Epochs in which slow start has filled a path that is still the one that is known.
const OPENS: u32 = 12;

/// What the connections before have left of a path, for the first one that comes after them
/// (temporal sharing: RFC 9040 section 7; Linux keeps such metrics per host, too).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Known {
    /// What the path carried.
    pub capacity: Rate,
    /// Its round trip without a queue.
    pub base: Duration,
    /// The window that filled it.
    pub window: Bytes,
    /// The queue that this window kept.
    pub aim: Duration,
    /// Epochs since the new connection began.
    epochs: u32,
}

impl Known {
    /// A path that was held at this.
    pub(super) fn new(capacity: Rate, base: Duration, window: Bytes, aim: Duration) -> Known {
        Known { capacity, base, window, aim, epochs: 0 }
    }

    /// The same for another connection.
    pub(super) fn again(self) -> Known {
        Known { epochs: 0, ..self }
    }

    /// Whether a round trip of `base` and bursts of a capacity, of which the largest `flight` was
    /// timed, are of another path.
    pub(super) fn is_refuted(&self, base: Duration, capacity: Option<Rate>, flight: Bytes) -> bool {
        let timed = flight >= self.capacity * TIMED;
        base > self.base.scaled(SAME_ROUND_TRIP)
            || self.base > base.scaled(SAME_ROUND_TRIP)
            || capacity.is_some_and(|seen| {
                let (slower, faster) = (self.capacity.scaled(SLOWER), self.capacity.scaled(FASTER));
                timed && !(slower..faster).contains(&seen)
            })
    }

    /// An epoch went by without either: whether it takes too long.
    pub(super) fn is_overdue(&mut self) -> bool {
        self.epochs += 1;
        self.epochs > OPENS
    }
}
