//! Monitors the share of time that the loop sleeps, to decide whether packets share a wake-up.

use sweetspot_units::{Duration, Time};

/// Minimum length of a sleep while most of the time is spent working, so that several packets share
/// one wake-up. Setting a timer and waking up cost about 10 us, and more on a virtual machine. At 1
/// Gbit/s that is the time of a packet.
const MIN_SHARED_SLEEP: Duration = Duration::from_micros(50);
/// Packets begin to share wake-ups when the loop sleeps less than this share of the time.
const SHARE_BELOW: f64 = 0.4;
/// Packets stop sharing wake-ups when it sleeps more than this share.
const SINGLE_ABOVE: f64 = 0.7;
/// Maximum time of work without sleep.
const MAX_WORK: Duration = Duration::from_millis(1);
/// Sleep after [`MAX_WORK`], even if packets are due. The kernel lets real-time threads run for 95
/// % of each second (sched_rt_runtime_us), and suspends a thread that wants more for the remaining
/// 50 ms, which would disrupt any path. A short sleep in each millisecond avoids that.
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
    /// A monitor that counts as rested at `now`.
    pub fn new(now: Time) -> SleepMonitor {
        SleepMonitor {
            shared: false,
            lay_down: now,
            woke: now,
            slept: Duration::ZERO,
            reviewed: now,
        }
    }

    /// Whether the loop must sleep, even if there is work.
    pub fn needed(&self, now: Time) -> bool {
        now.since(self.woke) > MAX_WORK
    }

    /// Notes that a sleep begins at `now`. Returns its earliest end.
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

    /// Notes that the sleep ended at `now`.
    pub fn ended(&mut self, now: Time) {
        self.slept += now.since(self.lay_down);
        self.woke = now;
    }

    /// Evaluates the time since the last review, and decides whether wake-ups are shared.
    pub fn review(&mut self, now: Time) {
        let share = self.slept.as_secs_f64() / now.since(self.reviewed).as_secs_f64();
        self.shared = share < if self.shared { SINGLE_ABOVE } else { SHARE_BELOW };
        self.slept = Duration::ZERO;
        self.reviewed = now;
    }
}
