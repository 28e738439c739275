use sweetspot_units::{Duration, Rate, Time};

use super::recent::Recent;
use super::{HOLDING, QUEUE_LEAST, Sent, aim};

/// The least pace while a queue drains, as a share of what the path delivers. For as long as a queue
/// stands the path is busy whatever is sent, so that this costs nothing.
const LEAST: f64 = 0.5;

/// In which time, besides a round trip, what still stands is to be gone: a few looks.
const HORIZON: Duration = Duration::from_millis(50);

/// Round trips, and times what the queue takes by itself, after which one that still stands is
/// judged.
const ROUND_TRIPS: u64 = 8;
const QUEUES: u64 = 4;

/// Share of a queue that must have gone by then for it to be ours.
const OURS: f64 = 0.5;

/// A queue that is taken away by sending less than the path delivers.
///
/// What is in flight beyond rate x base round trip stands in the queue: that tells at once what a
/// round trip's samples tell only after the queue has been waited through.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drain {
    began: Time,
    /// What the path delivered since, while a queue stood.
    full: Option<Rate>,
    /// What was sent before.
    free: Rate,
    /// The longest queue seen.
    queue: Duration,
}

/// How a queue drains.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Progress {
    /// At this pace.
    Goes(Rate),
    /// It is gone, from a path that delivers this.
    Gone(Rate),
    /// It stays whatever we send.
    Stays,
}

impl Drain {
    /// Begins with a `queue` that stands at the rate `free`.
    pub fn new(now: Time, free: Rate, queue: Duration) -> Drain {
        Drain { began: now, full: None, free, queue }
    }

    /// Looks at what is left of it.
    pub fn handle_look(
        &mut self,
        now: Time,
        sent: &Sent,
        base: Duration,
        recent: &Recent,
    ) -> Progress {
        let seen = sent.rtt.saturating_sub(base);
        // What was in the buffer before is seen a round trip later.
        self.queue = self.queue.max(seen);
        let elapsed = now.since(self.began);
        // Once what arrives was sent since; for as long as a queue is seen the path has been busy.
        if elapsed >= base && seen > QUEUE_LEAST {
            self.full = recent.rate_since(self.began).or(self.full);
        }
        let capacity = self.full.unwrap_or(self.free);
        if elapsed >= base && seen <= aim(base) {
            return Progress::Gone(capacity.max(self.free));
        }
        if elapsed > (base * ROUND_TRIPS).max(self.queue * QUEUES) {
            if seen >= self.queue.scaled(OURS) {
                return Progress::Stays;
            }
            // It shrinks but slowly: the path takes less than it did.
            *self = Drain::new(now, capacity, seen);
        }
        let left = (sent.in_flight / capacity).saturating_sub(base);
        let share = 1.0 - left.as_secs_f64() / base.max(HORIZON).as_secs_f64();
        Progress::Goes(capacity.scaled(share.clamp(LEAST, HOLDING)))
    }
}
