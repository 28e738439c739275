//! When and how far a less-than-best-effort transfer yields.

use sweetspot_units::Duration;

/// The target queueing delay (draft-irtf-iccrg-ledbat-plus-plus section 4.1, the default in RFC 9840).
pub(crate) const TARGET_DELAY: Duration = Duration::from_millis(60);

/// The target after a loss, as a share of the queueing delay at the loss: midway between no queue and a full one. Jitter of
/// 10 ms exceeds 15 % of a short buffer, TCP-LP's threshold (Kuzmanovic and Knightly 2003, section III).
const TARGET_SHARE: f64 = 0.5;

/// The lower bound of that target: even without a queue, a receiver's RTT varies by about this much.
const MIN_TARGET: Duration = Duration::from_millis(5);

/// Smallest window, segments (LEDBAT++ section 4.2).
pub(crate) const MIN_SEGMENTS: u64 = 2;

/// The target, which losses lower: a path may lose packets before the delay reaches RFC 9840's target, because its buffer is
/// small or its queue was never empty.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TargetDelay {
    /// The longest queueing delay at a loss.
    full: Option<Duration>,
}

impl TargetDelay {
    pub(crate) fn get(&self) -> Duration {
        let below = |full: Duration| full.scaled(TARGET_SHARE).clamp(MIN_TARGET, TARGET_DELAY);
        self.full.map_or(TARGET_DELAY, below)
    }

    /// Notes a loss at this queueing delay, if that is known.
    pub(crate) fn handle_loss(&mut self, queue: Option<Duration>) {
        self.full = self.full.max(queue);
    }
}
