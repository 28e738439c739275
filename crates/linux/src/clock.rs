//! System clocks. No other crate reads a clock or sleeps; elsewhere, time is an argument.

use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_getres, clock_gettime};
use sweetspot_units::{Duration, Time};

/// The time on `CLOCK_MONOTONIC`, which starts at boot.
pub fn now() -> Time {
    read(ClockId::Monotonic)
}

/// The time on `CLOCK_REALTIME`, since 1970-01-01 UTC: the clock of the kernel's packet timestamps.
pub fn wall() -> Time {
    read(ClockId::Realtime)
}

/// The time of the last tick on the clock of [`wall`], which the kernel uses for file timestamps.
pub fn wall_coarse() -> Time {
    read(ClockId::RealtimeCoarse)
}

/// The kernel's tick, the resolution of `tcpi_last_data_recv`.
pub fn tick() -> Duration {
    let t = clock_getres(ClockId::MonotonicCoarse);
    Duration::from_nanos(t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64)
}

/// The CPU time that the calling thread has used.
pub fn used() -> Time {
    read(ClockId::ThreadCPUTime)
}

/// Sleeps until `due` on the clock of [`now`]. Returns at once if that has passed.
pub fn sleep_until(due: Time) {
    let due = timespec(due);
    while clock_nanosleep_absolute(ClockId::Monotonic, &due) == Err(rustix::io::Errno::INTR) {}
}

pub(crate) fn read(clock: ClockId) -> Time {
    let t = clock_gettime(clock);
    Time::from_nanos(t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64)
}

pub(crate) fn timespec(t: Time) -> Timespec {
    let ns = t.as_nanos();
    Timespec { tv_sec: (ns / 1_000_000_000) as _, tv_nsec: (ns % 1_000_000_000) as _ }
}
