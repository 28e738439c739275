//! The time between two rounds of samples.

use sweetspot_sizing::{PROBE_INTERVAL, SizingPhase, TIMESTAMP_TICK};
use sweetspot_units::{Bytes, Duration, Rate, Time};

use super::PathGroup;

/// A group is young for this long after its first connection; the first data may take this long.
const YOUNG_AGE: Duration = Duration::from_secs(1);
/// The time between two rounds of an idle young group. Slow start has filled the path and a small buffer only four
/// RTTs after the first data.
const YOUNG_PAUSE: Duration = Duration::from_millis(10);
/// The samples of an idle young group may take this multiple of their usual share of a core.
const YOUNG_COST_FACTOR: u64 = 8;

/// How long the window opens after the first bulk transfer begins: slow start and its aftermath.
const OPENING_TIME: Duration = Duration::from_secs(3);
/// The time between two rounds during [`OPENING_TIME`]: each burst that can be timed is seen twice.
const OPENING_PAUSE: Duration = Duration::from_millis(3);
/// During [`OPENING_TIME`], samples may take this multiple of their usual share of a core.
const OPENING_COST_FACTOR: u64 = 25;
/// The longest time between two rounds, used when a group is idle.
const IDLE_PAUSE: Duration = Duration::from_millis(50);

/// A group that receives less than this is idle.
const IDLE_RATE: Rate = Rate::from_bits_per_second(80_000);

impl PathGroup {
    /// The time to wait until the next round: short enough for the controller and, unless a transfer has just
    /// begun, at least `cpu_budget`.
    pub fn pause(&self, now: Time, cpu_budget: Duration) -> Duration {
        if self.is_helped() {
            let due = self.driver.poll_timeout().since(now).min(PROBE_INTERVAL);
            return due.max(cpu_budget);
        }
        if self.members.values().all(|m| m.arrived == Bytes::ZERO && m.rate < IDLE_RATE) {
            let is_young = self.added.is_some_and(|added| now.since(added) < YOUNG_AGE);
            return if is_young {
                YOUNG_PAUSE.max(cpu_budget / YOUNG_COST_FACTOR)
            } else {
                IDLE_PAUSE.max(cpu_budget)
            };
        }
        let opens = match self.phase() {
            SizingPhase::Measuring
            | SizingPhase::Ramping
            | SizingPhase::Trying
            | SizingPhase::Open => true,
            SizingPhase::HandsOff | SizingPhase::Holding | SizingPhase::Congested => false,
        };
        // On a path with a very short RTT, bursts cannot be timed.
        let is_timed = self.minimum.is_none_or(|rtt| rtt >= TIMESTAMP_TICK);
        if opens && is_timed && self.bulk_since.is_none_or(|since| now.since(since) < OPENING_TIME)
        {
            return OPENING_PAUSE.max(cpu_budget / OPENING_COST_FACTOR);
        }
        (self.rtt / 2).clamp(Duration::from_millis(5), IDLE_PAUSE).max(cpu_budget)
    }
}
