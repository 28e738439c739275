//! What this process used, and how it learns of limits.

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

/// Makes a write beyond the limit on file sizes (`ulimit -f`) an error that can be reported,
/// instead of a signal that ends the process.
pub fn report_file_size_limit() {
    // SAFETY: ignoring a signal installs no handler.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}
