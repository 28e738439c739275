//! The scheduling of the calling thread.

use std::io;

use crate::check;

/// Gives the calling thread real-time priority (SCHED_FIFO), from 1 to 99. Its children do not inherit it. Needs
/// CAP_SYS_NICE or RLIMIT_RTPRIO, and a control group with real-time run time.
pub fn set_real_time(priority: u8) -> io::Result<()> {
    // As the kernel has it: musl's structure has more fields, and its function answers ENOSYS.
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
    // SAFETY: this prctl takes numbers only; 1 ns is the least it takes, 0 means the default.
    check(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64) })?;
    Ok(())
}

/// The processors on which the calling thread may run.
pub fn allowed_processors() -> io::Result<Vec<usize>> {
    // SAFETY: cpu_set_t is plain data for which zeros are the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is valid for writing its own size; 0 means the calling thread.
    check(unsafe { libc::sched_getaffinity(0, size_of_val(&set), &mut set) })?;
    let most = libc::CPU_SETSIZE as usize;
    // SAFETY: every number below CPU_SETSIZE is inside the set.
    Ok((0..most).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) }).collect())
}

/// Binds the calling thread to `processor`.
pub fn stay_on(processor: usize) -> io::Result<()> {
    if processor >= libc::CPU_SETSIZE as usize {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: cpu_set_t is plain data for which zeros are the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the number is below CPU_SETSIZE, the set is valid for the call, 0 means the
    // calling thread.
    check(unsafe {
        libc::CPU_SET(processor, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &set)
    })?;
    Ok(())
}

/// Locks `memory` into RAM (mlock(2)). Fails beyond RLIMIT_MEMLOCK.
pub fn lock_memory(memory: &[u8]) -> io::Result<()> {
    // SAFETY: the slice is mapped; mlock reads and changes nothing in it.
    check(unsafe { libc::mlock(memory.as_ptr().cast(), memory.len()) })?;
    Ok(())
}
