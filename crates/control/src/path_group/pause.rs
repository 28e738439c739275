//! The time between two rounds of samples.

use sweetspot_sizing::{PROBE_INTERVAL, SizingPhase, TIMESTAMP_TICK};
use sweetspot_units::{Bytes, Duration, Rate, Time};

use super::PathGroup;

/// The age up to which a group counts as young: the time that a connection may take until its first data, ...
const YOUNG_AGE: Duration = Duration::from_secs(1);
/// ... between two rounds of a young group: four round trips after the first data, slow start has filled the path
/// and a small buffer ...
const YOUNG_PAUSE: Duration = Duration::from_millis(10);
/// ... while samples may take this multiple of their usual share of a core.
const YOUNG_COST_FACTOR: u64 = 8;

/// How long windows open after the first bulk transfer began: slow start and its aftermath.
const OPENING_TIME: Duration = Duration::from_secs(3);
/// The time between two rounds meanwhile, so that a burst that can be timed is seen twice, ...
const OPENING_PAUSE: Duration = Duration::from_millis(3);
/// ... while samples may take this multiple of their usual share of a core.
const OPENING_COST_FACTOR: u64 = 25;
/// The longest time between two rounds.
const IDLE_PAUSE: Duration = Duration::from_millis(50);

/// A group that receives less than this is idle.
const IDLE_RATE: Rate = Rate::from_bits_per_second(80_000);

impl PathGroup {
    /// How long to wait until the next round: short enough for the controller, and at least `cpu_budget` unless a
    /// transfer has just begun.
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
        // Bursts of a short path cannot be timed.
        let is_timed = self.minimum.is_none_or(|rtt| rtt >= TIMESTAMP_TICK);
        if opens && is_timed && self.bulk_since.is_none_or(|since| now.since(since) < OPENING_TIME)
        {
            return OPENING_PAUSE.max(cpu_budget / OPENING_COST_FACTOR);
        }
        (self.rtt / 2).clamp(Duration::from_millis(5), IDLE_PAUSE).max(cpu_budget)
    }
}
