//! The clocks. No other crate reads a clock or sleeps; time is an argument there.

use sweetspot_units::Time;

/// The time on `CLOCK_MONOTONIC`, which starts at boot.
pub fn now() -> Time {
    read(libc::CLOCK_MONOTONIC)
}

/// The time on `CLOCK_REALTIME`, since 1970-01-01 UTC: the clock of the kernel's packet timestamps.
pub fn wall() -> Time {
    read(libc::CLOCK_REALTIME)
}

/// The time of the last tick on the clock of [`wall`]: the kernel stamps changes of files with it.
pub fn wall_coarse() -> Time {
    read(libc::CLOCK_REALTIME_COARSE)
}

/// The CPU time that the calling thread has used.
pub fn used() -> Time {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Sleeps until `due` on the clock of [`now`]. Returns at once if that has passed.
pub fn sleep_until(due: Time) {
    let due = timespec(due);
    // SAFETY: both pointers are valid for the call; a null remainder is allowed with TIMER_ABSTIME.
    while unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &due,
            std::ptr::null_mut(),
        )
    } == libc::EINTR
    {}
}

fn read(clock: libc::clockid_t) -> Time {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is a valid timespec to write to; the call cannot fail for these clocks.
    unsafe { libc::clock_gettime(clock, &mut t) };
    Time::from_nanos(t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64)
}

pub(crate) fn timespec(t: Time) -> libc::timespec {
    let ns = t.as_nanos();
    libc::timespec {
        tv_sec: (ns / 1_000_000_000) as _,
        tv_nsec: (ns % 1_000_000_000) as libc::c_long,
    }
}
