//! How promptly the kernel runs the calling thread.

use std::io;

use crate::check;

/// Runs the calling thread before all ordinary ones (SCHED_FIFO). `priority` is 1 to 99. What
/// it forks or spawns is ordinary again. Needs CAP_SYS_NICE or RLIMIT_RTPRIO, and a control
/// group that was granted real-time run time.
pub fn set_real_time(priority: u8) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: i32::from(priority) };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: `parameters` is valid for the call; 0 means the calling thread.
    check(unsafe { libc::sched_setscheduler(0, policy, &parameters) })?;
    Ok(())
}

/// Lets timers of the calling thread fire on time instead of up to 50 us late (the default
/// slack by which the kernel joins timers, prctl(2); real-time threads have none).
pub fn drop_timer_slack() -> io::Result<()> {
    // SAFETY: this prctl takes numbers only; 1 ns is the least it takes, 0 means the default.
    check(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64) })?;
    Ok(())
}

/// Keeps `memory` from being swapped out, as far as RLIMIT_MEMLOCK allows.
pub fn lock_memory(memory: &[u8]) -> io::Result<()> {
    // SAFETY: the slice is mapped; mlock reads and changes nothing in it.
    check(unsafe { libc::mlock(memory.as_ptr().cast(), memory.len()) })?;
    Ok(())
}
