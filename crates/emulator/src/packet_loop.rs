//! The loop that forwards packets from the rings through the path's elements to the ports. [`crate::relay`] runs it.

use std::io;
use std::sync::mpsc::{Receiver, Sender};

use sweetspot_linux::clock;
use sweetspot_linux::packet::PacketPort;
use sweetspot_path::{DirectionSpec, PathSpec};
use sweetspot_units::{Bytes, Duration, Time};

use crate::counters::DirectionCounters;
use crate::host_pair::{HostPair, Routes};
use crate::middlebox::Middlebox;
use crate::path_direction::{Alteration, PathDirection};
use crate::pool::Pool;
use crate::series::PathSample;
use crate::sleep_monitor::SleepMonitor;
use crate::veth::frame_size;

/// Interval between samples of the series.
pub(crate) const SAMPLING_INTERVAL: Duration = Duration::from_millis(10);
/// Maximum time that arrivals wait in the ring while packets are on the path. They carry timestamps, so only the ring's size
/// and the path's delay limit this. It saves a wake-up per packet.
const MAX_ARRIVAL_WAIT: Duration = Duration::from_millis(1);
/// With a shorter wait the loop wakes up for every arrival: polling the ring on a timer would cost more.
const MIN_ARRIVAL_WAIT: Duration = Duration::from_micros(100);
/// Packets read from a ring before due packets are checked again.
const ARRIVAL_BATCH: usize = 64;
/// The same for super-frames: each costs a system call, whatever its size.
const OFFLOAD_ARRIVAL_BATCH: usize = 200;

pub(crate) struct LoopCommands {
    /// Changes of the direction from near to far.
    pub up: Receiver<Alteration>,
    /// Changes of the direction from far to near.
    pub down: Receiver<Alteration>,
    pub stop: Receiver<()>,
}

#[derive(Debug)]
pub(crate) struct PacketLoopReport {
    pub up: DirectionCounters,
    pub down: DirectionCounters,
    pub real_time: bool,
    pub ran: Duration,
}

/// How long to sleep until the next [`PacketLoop::work`].
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wait {
    /// Sleep until then.
    Time(Time),
    /// Be awake at this time, because a packet is due.
    Release(Time),
    /// Sleep until this time, or until a packet arrives.
    ArrivalOr(Time),
    Stopped,
}

impl Wait {
    /// The latest end of the wait.
    pub fn due(self) -> Option<Time> {
        match self {
            Wait::Time(due) | Wait::Release(due) | Wait::ArrivalOr(due) => Some(due),
            Wait::Stopped => None,
        }
    }
}

pub(crate) struct PacketLoop {
    near: PacketPort,
    far: PacketPort,
    up: PathDirection,
    down: PathDirection,
    pool: Pool,
    rest: SleepMonitor,
    started: Time,
    next_sample: Time,
    stop: Receiver<()>,
    samples: Sender<PathSample>,
}

impl PacketLoop {
    /// A loop between the two ports, controlled by `commands`.
    pub fn new(
        started: Time,
        hops: &[PathSpec],
        (host_pairs, [before_up, before_down]): (&[HostPair], [Middlebox; 2]),
        (near, far): (PacketPort, PacketPort),
        (commands, samples): (LoopCommands, Sender<PathSample>),
    ) -> PacketLoop {
        let (mtu, seed) = (hops[0].mtu, hops[0].seed);
        let up: Vec<DirectionSpec> = hops.iter().map(|hop| hop.up).collect();
        let down: Vec<DirectionSpec> = hops.iter().rev().map(|hop| hop.down).collect();
        let routes = |reverse| Routes::new(host_pairs, hops.len(), reverse);
        let (routes_up, routes_down) = ((routes(false), before_up), (routes(true), before_down));
        PacketLoop {
            near,
            far,
            up: PathDirection::new(&up, mtu, routes_up, commands.up, seed),
            // The random losses of the two directions must be independent.
            down: PathDirection::new(&down, mtu, routes_down, commands.down, seed ^ 0x646f_776e),
            pool: Pool::new(frame_size(mtu), pool_slots(up.iter().chain(&down), mtu)),
            rest: SleepMonitor::new(started),
            started,
            next_sample: started,
            stop: commands.stop,
            samples,
        }
    }

    /// Does all the work that is due. Returns how long to sleep.
    pub fn work(&mut self) -> Wait {
        self.rest.ended(clock::now());
        loop {
            let now = clock::now();
            let more = self.take_arrivals();
            if !more {
                // All arrivals up to this time have been read.
                let seen = now - self.arrival_wait();
                self.up.alter_until(seen);
                self.down.alter_until(seen);
            }
            let busy = self.release(now) || more;
            // A sample fixes the queue at its time, so all earlier arrivals must have been read. The kernel stamps the
            // packets of a burst one by one, but delivers them together.
            if now >= self.next_sample + self.arrival_wait() && !more {
                self.sample();
                // After a stall the series has a gap, not a burst of samples.
                self.next_sample = now.max(self.next_sample + SAMPLING_INTERVAL);
                self.rest.review(now);
            }
            if !busy || self.rest.needed(now) {
                if self.stop.try_recv().is_ok() {
                    return Wait::Stopped;
                }
                let until = self.next_work();
                if until.due().is_none_or(|due| due > clock::now()) {
                    return until;
                }
            }
        }
    }

    /// Returns the final counters.
    pub fn into_report(mut self, real_time: bool) -> io::Result<PacketLoopReport> {
        self.up.counters.ring_losses += self.near.lost()?;
        self.down.counters.ring_losses += self.far.lost()?;
        Ok(PacketLoopReport {
            up: self.up.into_counters(),
            down: self.down.into_counters(),
            real_time,
            ran: clock::now().since(self.started),
        })
    }

    /// Moves frames from the rings to the directions. Returns whether a ring may hold more.
    fn take_arrivals(&mut self) -> bool {
        let offset = WallOffset::measure();
        let mut more = false;
        for (port, direction) in [(&mut self.near, &mut self.up), (&mut self.far, &mut self.down)] {
            let pool = &mut self.pool;
            let batch = if port.offloads() { OFFLOAD_ARRIVAL_BATCH } else { ARRIVAL_BATCH };
            let mut read = 0;
            while read < batch
                && port.receive(|frame| {
                    // A timestamp in the future means that the wall clock was just set.
                    let stamp = offset.to_monotonic(frame.arrived).min(clock::now());
                    read += direction.handle_arrival(stamp, frame, pool);
                })
            {}
            more |= read >= batch;
        }
        more
    }

    /// Sends the packets due by `now`. Returns whether there may be more.
    fn release(&mut self, now: Time) -> bool {
        let up = self.up.release(now, &mut self.pool, &self.far);
        let down = self.down.release(now, &mut self.pool, &self.near);
        up || down
    }

    fn sample(&mut self) {
        let at = self.next_sample;
        let (up, down) = (self.up.observe(at), self.down.observe(at));
        let sample = PathSample { at: at.since(self.started), up, down };
        // The receiver may be gone.
        let _ = self.samples.send(sample);
    }

    /// How long after its timestamp an arrival may be read. At most half the path's delay, so that it is always read before
    /// it can be due.
    fn arrival_wait(&self) -> Duration {
        (self.up.min_delay().min(self.down.min_delay()) / 2).min(MAX_ARRIVAL_WAIT)
    }

    /// Sleep until something is due or, if the path is empty, until a packet arrives.
    fn next_work(&mut self) -> Wait {
        let now = clock::now();
        let due = [self.up.poll_timeout(), self.down.poll_timeout()].into_iter().flatten().min();
        let arrival_wait = self.arrival_wait();
        let altered = [self.up.next_alteration(), self.down.next_alteration()];
        let decided = altered.into_iter().flatten().fold(self.next_sample, Time::min);
        let until = due.unwrap_or(Time::MAX).min(decided + arrival_wait);
        let min = self.rest.began(now);
        if until < min {
            // Arrivals during the minimum sleep need no wake-up either.
            Wait::Time(min)
        } else if due.is_none() || arrival_wait < MIN_ARRIVAL_WAIT {
            Wait::ArrivalOr(until)
        } else if Some(until) == due && until <= now + arrival_wait {
            Wait::Release(until)
        } else {
            Wait::Time(until.min(now + arrival_wait))
        }
    }
}

/// Slots for all packets that the path can hold in both directions: its delay and its buffer full of full-size packets, and
/// as many small ones again.
fn pool_slots<'a>(hops: impl Iterator<Item = &'a DirectionSpec>, mtu: Bytes) -> usize {
    // The pool grows beyond this only if necessary, so that preallocated memory is bounded.
    const MAX_POOL_BYTES: u64 = 64 << 20;
    let hold = |s: &DirectionSpec| (s.rate * s.delay + s.buffer.in_bytes(mtu)).get();
    let bytes = hops.map(hold).sum::<u64>().min(MAX_POOL_BYTES);
    2 * (bytes / mtu.get()) as usize + 1024
}

/// The offset of the wall clock, used for the kernel's timestamps, from the monotonic clock.
struct WallOffset {
    wall: Time,
    monotonic: Time,
}

impl WallOffset {
    fn measure() -> WallOffset {
        // In this order, an interruption between the two makes packets seem to arrive later, which cannot make the path
        // faster.
        let wall = clock::wall();
        WallOffset { wall, monotonic: clock::now() }
    }

    fn to_monotonic(&self, stamp: Time) -> Time {
        // Timestamps are in the past, except for the few nanoseconds around the measurement.
        if stamp > self.wall {
            self.monotonic + stamp.since(self.wall)
        } else {
            self.monotonic - self.wall.since(stamp)
        }
    }
}
