//! Watches the loop's share of sleep, to decide whether packets share a wake-up.

use sweetspot_units::{Duration, Time};

/// When most of the time goes into work, each sleep lasts at least this long, so that several
/// packets share one wake-up. Setting a timer and waking cost some 10 us, on a virtual machine
/// more, which at 1 Gbit/s is a packet's time.
const MIN_SHARED_SLEEP: Duration = Duration::from_micros(50);
/// Wake-ups are shared once the loop sleeps less than this share of the time ...
const SHARE_BELOW: f64 = 0.4;
/// ... until it sleeps more than this.
const SINGLE_ABOVE: f64 = 0.7;
/// Work without sleep lasts at most this long, ...
const MAX_WORK: Duration = Duration::from_millis(1);
/// ... then the loop sleeps, due packets or not. The kernel lets real-time threads run for 95 %
/// of each second (sched_rt_runtime_us) and stops one that wants more for the remaining 50 ms,
/// which no path survives; a short rest in each millisecond avoids the long one.
const FORCED_SLEEP: Duration = Duration::from_micros(80);

/// Watches how much the loop sleeps.
#[derive(Debug)]
pub(crate) struct SleepMonitor {
    shared: bool,
    lay_down: Time,
    woke: Time,
    slept: Duration,
    reviewed: Time,
}

impl SleepMonitor {
    /// Rested as of `now`.
    pub fn new(now: Time) -> SleepMonitor {
        SleepMonitor {
            shared: false,
            lay_down: now,
            woke: now,
            slept: Duration::ZERO,
            reviewed: now,
        }
    }

    /// Whether the loop must sleep, whatever there is to do.
    pub fn needed(&self, now: Time) -> bool {
        now.since(self.woke) > MAX_WORK
    }

    /// A sleep begins at `now`; returns when it may end at the earliest.
    pub fn began(&mut self, now: Time) -> Time {
        self.lay_down = now;
        if self.needed(now) {
            now + FORCED_SLEEP
        } else if self.shared {
            now + MIN_SHARED_SLEEP
        } else {
            now
        }
    }

    /// The sleep ended at `now`.
    pub fn ended(&mut self, now: Time) {
        self.slept += now.since(self.lay_down);
        self.woke = now;
    }

    /// Looks back at the time since the last review and decides about shared wake-ups.
    pub fn review(&mut self, now: Time) {
        let share = self.slept.as_secs_f64() / now.since(self.reviewed).as_secs_f64();
        self.shared = share < if self.shared { SINGLE_ABOVE } else { SHARE_BELOW };
        self.slept = Duration::ZERO;
        self.reviewed = now;
    }
}
