//! The scheduling of the calling thread.

use std::num::NonZeroU64;
use std::{fs, io};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity, set_current_timer_slack};

use sweetspot_units::Duration;

use crate::check;

/// Gives the calling thread real-time priority (SCHED_FIFO), 1 to 99. Its children do not inherit it. Needs
/// CAP_SYS_NICE or RLIMIT_RTPRIO, and a cgroup with real-time run time.
pub fn set_real_time(priority: u8) -> io::Result<()> {
    // The kernel's structure: musl's has more fields, and its function returns ENOSYS.
    let sched_priority = libc::c_int::from(priority);
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the kernel reads one int, which is valid for the call; 0 means the calling thread.
    let answer = unsafe {
        libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const sched_priority)
    };
    check(answer as libc::c_int)?;
    Ok(())
}

/// Sets the timer slack of the calling thread to its minimum. By default timers may fire 50 us late (prctl(2));
/// real-time threads have no slack.
pub fn drop_timer_slack() -> io::Result<()> {
    // The minimum is 1 ns; 0 means the default.
    Ok(set_current_timer_slack(Some(NonZeroU64::MIN))?)
}

/// Time that a runnable thread spent waiting for a CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuWaits {
    /// Total waiting time.
    pub time: Duration,
    /// Number of waits.
    pub count: u64,
}

impl CpuWaits {
    /// The mean wait since `before`; `None` if there was none.
    pub fn mean_since(&self, before: &CpuWaits) -> Option<Duration> {
        let count = self.count.saturating_sub(before.count);
        (count > 0).then(|| self.time.saturating_sub(before.time) / count)
    }
}

/// The waits of the calling thread (/proc/thread-self/schedstat; needs CONFIG_SCHED_INFO).
pub fn cpu_waits() -> io::Result<CpuWaits> {
    let text = fs::read_to_string("/proc/thread-self/schedstat")?;
    let mut numbers = text.split_whitespace().skip(1).map_while(|number| number.parse().ok());
    let (time, count) = numbers.next().zip(numbers.next()).ok_or(io::ErrorKind::InvalidData)?;
    Ok(CpuWaits { time: Duration::from_nanos(time), count })
}

/// The CPUs on which the calling thread may run.
pub fn allowed_processors() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
}

/// Binds the calling thread to CPU `processor`.
pub fn pin_to(processor: usize) -> io::Result<()> {
    if processor >= CpuSet::MAX_CPU {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut set = CpuSet::new();
    set.set(processor);
    Ok(sched_setaffinity(None, &set)?)
}

/// Locks `memory` into RAM (mlock(2)). Fails beyond RLIMIT_MEMLOCK.
pub fn lock_memory(memory: &[u8]) -> io::Result<()> {
    // SAFETY: the slice is mapped; mlock reads and changes nothing in it.
    Ok(unsafe { rustix::mm::mlock(memory.as_ptr().cast_mut().cast(), memory.len()) }?)
}
