//! The CPU time, the limits, the user and the umask of this process.

use std::io;
use std::sync::OnceLock;

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

/// The effective user ID of this process.
pub fn effective_user() -> u32 {
    // SAFETY: the call has no arguments and cannot fail.
    unsafe { libc::geteuid() }
}

/// The umask, as it was at the first call. Reading it by umask(2) would change it for other threads meanwhile.
pub fn umask() -> u32 {
    /// Keeps new files private where /proc is not mounted.
    const UNKNOWN: u32 = 0o077;
    static UMASK: OnceLock<u32> = OnceLock::new();
    *UMASK.get_or_init(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        umask_in(&status).unwrap_or(UNKNOWN)
    })
}

/// The umask in the text of /proc/PID/status.
fn umask_in(status: &str) -> Option<u32> {
    let octal = status.lines().find_map(|line| line.strip_prefix("Umask:"))?;
    u32::from_str_radix(octal.trim(), 8).ok()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_umask_is_read_as_octal() {
        assert_eq!(umask_in("Name:\tx\nUmask:\t0027\nState:\tR\n"), Some(0o027));
        assert_eq!(umask_in("Name:\tx\n"), None);
        assert!(umask() <= 0o777);
    }
}
