//! CPU time, resource limits, user and umask of this process.

use std::io;
use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, geteuid, getrlimit, setrlimit};
use rustix::time::ClockId;
use sweetspot_units::Duration;

use crate::{clock, signals};

/// The CPU time of this process, user and system, over all threads.
pub fn cpu_time() -> Duration {
    Duration::from_nanos(clock::read(ClockId::ProcessCPUTime).as_nanos())
}

/// The effective user ID of this process.
pub fn effective_user() -> u32 {
    geteuid().as_raw()
}

/// The umask at the time of the first call. umask(2) would have to change it, for other threads too, in order to
/// read it.
pub fn umask() -> u32 {
    /// Used if /proc is not mounted; keeps new files private.
    const UNKNOWN: u32 = 0o077;
    static UMASK: OnceLock<u32> = OnceLock::new();
    *UMASK.get_or_init(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        umask_in(&status).unwrap_or(UNKNOWN)
    })
}

fn umask_in(status: &str) -> Option<u32> {
    let octal = status.lines().find_map(|line| line.strip_prefix("Umask:"))?;
    u32::from_str_radix(octal.trim(), 8).ok()
}

/// Makes a write beyond the file size limit (`ulimit -f`) return an error instead of ending the process with a
/// signal.
pub fn report_file_size_limit() {
    signals::ignore(libc::SIGXFSZ);
}

/// Raises the limit on open descriptors to the hard limit, and returns it.
pub fn raise_descriptor_limit() -> io::Result<u64> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    // `None` means unlimited, which is the largest number, like RLIM_INFINITY.
    Ok(maximum.unwrap_or(u64::MAX))
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
