//! The threads that forward the packets and relieve each other.
//!
//! A kernel without full preemption lets a program finish a long system call (a large write, say) before it runs even a real-time
//! thread on the same processor. That thread then waits, even if another processor is idle: 5 ms and more, as long as a small
//! buffer takes to drain. So there are two threads, each bound to its own processor. One forwards packets; the other checks
//! regularly whether the work is overdue, and takes over if so. At 400 Mbit/s, while a program wrote large blocks to a file, this
//! reduced late releases to a quarter. The first thread takes the work back as soon as it can: [`steering`] keeps its processor
//! free of the hosts' receive work.

use std::hint;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, TryLockError};
use std::thread::{self, JoinHandle};

use sweetspot_linux::event_fd::{EventFd, wait_readable};
use sweetspot_linux::{clock, scheduling};
use sweetspot_units::{Duration, Time};

use crate::packet_loop::{PacketLoop, PacketLoopReport, Wait};
use crate::steering;
use crate::wake_up::WakeUp;

/// The standby takes over work that is overdue by this much: about ten times a wake-up, so that checking costs little, and a
/// fraction of any buffer under study.
const TAKEOVER_DELAY: Duration = Duration::from_micros(250);
/// The threads' real-time priority: above other programs, below the kernel's own threads (50).
const REAL_TIME_PRIORITY: u8 = 40;
/// Number of threads that relieve each other.
const THREAD_COUNT: usize = 2;
/// The thread that forwards whenever it can. The hosts receive on other processors.
const FIRST_THREAD: usize = 0;

/// The packet loop, and the thread that runs it.
struct Relay {
    /// Only try_lock is used: a thread that does not get the lock is not needed.
    packet_loop: Mutex<PacketLoop>,
    active_thread: AtomicUsize,
    /// Time by which the active thread must be back at work, nanoseconds on the monotonic clock.
    due: AtomicU64,
    stopped: AtomicBool,
    event_fd: Arc<EventFd>,
    rings: [OwnedFd; 2],
}

pub(crate) struct RelayThreads {
    relay: Arc<Relay>,
    threads: Vec<JoinHandle<io::Result<bool>>>,
}

impl RelayThreads {
    /// Starts the threads. `rings` become readable when packets arrive, `event_fd` when there are commands.
    pub fn start(
        packet_loop: PacketLoop,
        rings: [OwnedFd; 2],
        event_fd: Arc<EventFd>,
    ) -> io::Result<RelayThreads> {
        let relay = Arc::new(Relay {
            packet_loop: Mutex::new(packet_loop),
            active_thread: AtomicUsize::new(0),
            due: AtomicU64::new(clock::now().as_nanos()),
            stopped: AtomicBool::new(false),
            event_fd,
            rings,
        });
        let mut threads = RelayThreads { relay, threads: Vec::new() };
        for (number, processor) in steering::carriers()?.into_iter().take(THREAD_COUNT).enumerate()
        {
            let relay = threads.relay.clone();
            let life = move || relay.carry(number, processor);
            threads.threads.push(thread::Builder::new().name("path".into()).spawn(life)?);
        }
        Ok(threads)
    }

    /// Waits for the threads, which must have been asked to stop, and returns the final counters.
    pub fn join(self) -> io::Result<PacketLoopReport> {
        let mut real_time = true;
        for thread in self.threads {
            real_time &= thread.join().map_err(|_| panicked())??;
        }
        let relay = Arc::into_inner(self.relay).ok_or_else(panicked)?;
        relay.packet_loop.into_inner().map_err(|_| panicked())?.into_report(real_time)
    }
}

fn panicked() -> io::Error {
    io::Error::other("it panicked")
}

impl Relay {
    /// The main function of thread `me`. Returns whether it had real-time priority.
    fn carry(&self, me: usize, processor: usize) -> io::Result<bool> {
        scheduling::drop_timer_slack()?;
        // The processor may no longer be available; any other one is second best.
        let _ = scheduling::pin_to(processor);
        let real_time = scheduling::set_real_time(REAL_TIME_PRIORITY).is_ok();
        let mut wake_up = WakeUp::default();
        while !self.stopped.load(Ordering::Acquire) {
            let carries = me == FIRST_THREAD || self.active_thread.load(Ordering::Acquire) == me;
            if !carries && !self.is_overdue() {
                let due = Time::from_nanos(self.due.load(Ordering::Acquire));
                clock::sleep_until(due.max(clock::now()) + TAKEOVER_DELAY);
                continue;
            }
            let mut packet_loop = match self.packet_loop.try_lock() {
                Ok(packet_loop) => packet_loop,
                Err(TryLockError::Poisoned(_)) => return Err(panicked()),
                Err(TryLockError::WouldBlock) => {
                    // The other thread is working after all.
                    clock::sleep_until(clock::now() + TAKEOVER_DELAY);
                    continue;
                }
            };
            self.active_thread.store(me, Ordering::Release);
            self.event_fd.clear();
            let until = packet_loop.work();
            if let Some(due) = until.due() {
                self.due.store(due.as_nanos(), Ordering::Release);
            }
            drop(packet_loop);
            self.sleep(until, &mut wake_up)?;
        }
        Ok(real_time)
    }

    fn is_overdue(&self) -> bool {
        let due = Time::from_nanos(self.due.load(Ordering::Acquire));
        clock::now() >= due + TAKEOVER_DELAY
    }

    fn sleep(&self, until: Wait, wake_up: &mut WakeUp) -> io::Result<()> {
        let [near, far] = &self.rings;
        match until {
            Wait::Time(due) => wait_readable(&[self.event_fd.as_fd()], due),
            Wait::Release(due) => {
                let alarm = wake_up.alarm(clock::now(), due);
                wait_readable(&[self.event_fd.as_fd()], alarm)?;
                wake_up.woke(alarm, clock::now());
                while clock::now() < due {
                    hint::spin_loop();
                }
                Ok(())
            }
            Wait::ArrivalOr(due) => {
                wait_readable(&[self.event_fd.as_fd(), near.as_fd(), far.as_fd()], due)
            }
            Wait::Stopped => {
                self.stopped.store(true, Ordering::Release);
                Ok(())
            }
        }
    }
}
