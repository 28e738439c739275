//! What this process used, and how it learns of limits.

use std::io;

use sweetspot_units::Duration;

use crate::check;

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

/// Lets this process open as many descriptors as it may, and says how many that is.
pub fn raise_descriptor_limit() -> io::Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid for both calls.
    unsafe {
        check(libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit))?;
        limit.rlim_cur = limit.rlim_max;
        check(libc::setrlimit(libc::RLIMIT_NOFILE, &limit))?;
    }
    Ok(limit.rlim_cur)
}
