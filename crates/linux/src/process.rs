//! The CPU time and the limits of this process.

use std::io;

use sweetspot_units::Duration;

use crate::check;

/// The CPU time of this process, user and system, over all threads.
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

/// Makes a write beyond the limit on file sizes (`ulimit -f`) return an error instead of ending the process by a
/// signal.
pub fn report_file_size_limit() {
    // SAFETY: ignoring a signal installs no handler.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// Raises the limit on open descriptors to the hard limit, and returns it.
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
