//! What this process used and how it is told to end.

use sweetspot_units::Duration;

/// CPU time of this process, user and system, all threads.
pub fn cpu_time() -> Duration {
    // SAFETY: an all-zero rusage is valid, and the call fills it in; it cannot fail for
    // RUSAGE_SELF.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let span = |t: libc::timeval| {
        Duration::from_secs(t.tv_sec as u64) + Duration::from_micros(t.tv_usec as u64)
    };
    span(usage.ru_utime) + span(usage.ru_stime)
}
