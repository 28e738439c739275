//! The real-time loop: rings in, elements, ports out.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use sweetspot_linux::packet::PacketPort;
use sweetspot_linux::wake::{Bell, wait_readable};
use sweetspot_linux::{clock, scheduling};
use sweetspot_path::PathSpec;
use sweetspot_units::{Duration, Rate, Time};

use crate::lane::Lane;
use crate::pool::Pool;
use crate::rest::Rest;
use crate::series::Sample;
use crate::tally::Tally;

/// Between two samples of the series.
pub(crate) const SAMPLING: Duration = Duration::from_millis(10);
/// The longest that arrivals wait in the ring while packets are on the path. They carry their
/// time, so only the ring's room and the path's delay bound this; it saves a wake-up per packet.
const PATIENCE: Duration = Duration::from_millis(1);
/// Below this the loop wakes for every arrival: looking at the ring on a timer would cost more.
const LEAST_PATIENCE: Duration = Duration::from_micros(100);
/// The loop's real-time priority: above other programs, below the kernel's own threads (50).
const PRIORITY: u8 = 40;
/// Frames taken from a ring before due packets are looked at again.
const GULP: usize = 64;

/// What the loop can be told while it runs.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Order {
    /// Change the rate of the direction near to far.
    RateUp(Rate),
    /// Change the rate of the direction far to near.
    RateDown(Rate),
    /// End.
    Stop,
}

/// What the loop leaves behind.
#[derive(Debug)]
pub(crate) struct Books {
    pub up: Tally,
    pub down: Tally,
    pub real_time: bool,
    pub ran: Duration,
}

/// The loop's state.
pub(crate) struct Engine {
    near: PacketPort,
    far: PacketPort,
    up: Lane,
    down: Lane,
    pool: Pool,
    patience: Duration,
    rest: Rest,
    bell: Arc<Bell>,
    orders: Receiver<Order>,
    samples: Sender<Sample>,
}

impl Engine {
    /// A loop between the two ports, which obeys `orders` when `bell` rings.
    pub fn new(
        spec: &PathSpec,
        (near, far): (PacketPort, PacketPort),
        bell: Arc<Bell>,
        orders: Receiver<Order>,
        samples: Sender<Sample>,
    ) -> Engine {
        let largest = spec.mtu.get() as usize + crate::wires::ETHERNET_HEADER;
        // Half the delay: an arrival is always seen before it can be due.
        let patience = (spec.up.delay.min(spec.down.delay) / 2).min(PATIENCE);
        Engine {
            near,
            far,
            up: Lane::new(&spec.up, spec.mtu, spec.seed),
            // The directions' losses must not fall together.
            down: Lane::new(&spec.down, spec.mtu, spec.seed ^ 0x646f_776e),
            pool: Pool::new(largest, pool_slots(spec)),
            patience,
            rest: Rest::new(clock::now()),
            bell,
            orders,
            samples,
        }
    }

    /// Runs until told to stop.
    pub fn run(mut self) -> io::Result<Books> {
        scheduling::drop_timer_slack()?;
        let real_time = scheduling::set_real_time(PRIORITY).is_ok();
        let started = clock::now();
        let mut next_sample = started;
        let stopped = loop {
            let now = clock::now();
            let busy = self.take_arrivals();
            let busy = self.release(now) || busy;
            if now >= next_sample {
                self.sample(started, next_sample);
                // After a stall the series has a gap, not a burst.
                next_sample = now.max(next_sample) + SAMPLING;
                self.rest.review(now);
            }
            if !busy || self.rest.needed(now) {
                if self.obey() {
                    break clock::now();
                }
                self.wait(next_sample)?;
            }
        };
        self.up.tally.ring_losses = self.near.lost()?;
        self.down.tally.ring_losses = self.far.lost()?;
        Ok(Books {
            up: self.up.into_tally(),
            down: self.down.into_tally(),
            real_time,
            ran: stopped.since(started),
        })
    }

    /// Moves frames from the rings to the lanes; true if a ring may hold more.
    fn take_arrivals(&mut self) -> bool {
        let offset = WallOffset::measure();
        let mut more = false;
        for (port, lane) in [(&mut self.near, &mut self.up), (&mut self.far, &mut self.down)] {
            let pool = &mut self.pool;
            let taken = (0..GULP)
                .take_while(|_| {
                    port.receive(|frame| {
                        // A stamp from the future means that the wall clock was just set.
                        let stamp = offset.to_monotonic(frame.arrived).min(clock::now());
                        lane.handle_arrival(stamp, frame, pool);
                    })
                })
                .count();
            more |= taken == GULP;
        }
        more
    }

    /// Sends what is due by `now`; true if there may be more.
    fn release(&mut self, now: Time) -> bool {
        let up = self.up.release(now, &mut self.pool, &self.far);
        let down = self.down.release(now, &mut self.pool, &self.near);
        up || down
    }

    fn sample(&mut self, started: Time, at: Time) {
        let sample =
            Sample { at: at.since(started), up: self.up.observe(at), down: self.down.observe(at) };
        // Nobody may be listening any more.
        let _ = self.samples.send(sample);
    }

    /// Carries out orders; true if told to stop.
    fn obey(&mut self) -> bool {
        self.bell.silence();
        while let Ok(order) = self.orders.try_recv() {
            match order {
                Order::RateUp(rate) => self.up.set_rate(clock::now(), rate),
                Order::RateDown(rate) => self.down.set_rate(clock::now(), rate),
                Order::Stop => return true,
            }
        }
        false
    }

    /// Sleeps until something is due or, if the path is empty, arrives.
    fn wait(&mut self, next_sample: Time) -> io::Result<()> {
        let rings = [self.bell.as_fd(), self.near.as_fd(), self.far.as_fd()];
        let now = clock::now();
        let due = [self.up.poll_timeout(), self.down.poll_timeout()].into_iter().flatten().min();
        let until = due.map_or(next_sample, |due| due.min(next_sample));
        let least = self.rest.least(now);
        let (sources, until) = if due.is_none() || self.patience < LEAST_PATIENCE {
            (&rings[..], until)
        } else {
            (&rings[..1], until.min(now + self.patience))
        };
        // What comes in during the least rest is not waited for either.
        let (sources, until) = if until < least { (&rings[..1], least) } else { (sources, until) };
        if until > now {
            wait_readable(sources, until)?;
        }
        self.rest.rested(now, clock::now());
        Ok(())
    }
}

/// Slots for all packets that the path can hold: its delay and its buffer, both ways, were all
/// of them full-size, and as many small ones again.
fn pool_slots(spec: &PathSpec) -> usize {
    // The pool grows beyond this when it must; memory is not taken in advance without limit.
    const MOST: u64 = 64 << 20;
    let hold = |s: &sweetspot_path::DirectionSpec| s.rate * s.delay + s.buffer.in_bytes(spec.mtu);
    let bytes = (hold(&spec.up).get() + hold(&spec.down).get()).min(MOST);
    2 * (bytes / spec.mtu.get()) as usize + 1024
}

/// The wall clock, in which the kernel stamps packets, less the monotonic one.
struct WallOffset {
    wall: Time,
    monotonic: Time,
}

impl WallOffset {
    fn measure() -> WallOffset {
        let before = clock::now();
        let wall = clock::wall();
        let after = clock::now();
        WallOffset { wall, monotonic: before + after.since(before) / 2 }
    }

    fn to_monotonic(&self, stamp: Time) -> Time {
        // Stamps are in the past, but for the few nanoseconds around the measurement.
        if stamp > self.wall {
            self.monotonic + stamp.since(self.wall)
        } else {
            self.monotonic - self.wall.since(stamp)
        }
    }
}
