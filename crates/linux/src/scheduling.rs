//! How promptly the kernel runs the calling thread.

use std::io;

use crate::check;

/// Runs the calling thread before all ordinary ones (SCHED_FIFO). `priority` is 1 to 99. What
/// it forks or spawns is ordinary again. Needs CAP_SYS_NICE or RLIMIT_RTPRIO, and a control
/// group that was granted real-time run time.
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

/// Lets timers of the calling thread fire on time instead of up to 50 us late (the default
/// slack by which the kernel joins timers, prctl(2); real-time threads have none).
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

/// Lets the calling thread run on `processor` only.
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

/// Keeps `memory` from being swapped out, as far as RLIMIT_MEMLOCK allows.
pub fn lock_memory(memory: &[u8]) -> io::Result<()> {
    // SAFETY: the slice is mapped; mlock reads and changes nothing in it.
    check(unsafe { libc::mlock(memory.as_ptr().cast(), memory.len()) })?;
    Ok(())
}
