use sweetspot_linux::clock;
use sweetspot_linux::packet::{BATCH, Frame, PacketPort};
use sweetspot_path::{Direction, DirectionSpec, Fan, Packet, Refusal};
use sweetspot_units::{Bytes, Duration, Rate, Time};

use crate::leaf::Detours;
use crate::pool::{Parcel, Pool};
use crate::series::Flow;
use crate::tally::Tally;
use crate::wires::frame_size;

/// One direction of the path, between the ring it arrives from and the port it leaves by.
pub(crate) struct Lane {
    direction: Direction<Parcel>,
    detours: Detours,
    /// What is on its detour.
    fan: Fan<Parcel>,
    largest: usize,
    delay: Duration,
    /// The queue has been judged as of this time; what arrived before it comes too late to have
    /// been in it and counts as arriving now.
    decided: Time,
    batch: Vec<(Time, Parcel)>,
    run: Option<Run>,
    pub tally: Tally,
}

/// A release: when it was due and when the kernel had taken it.
#[derive(Debug, Clone, Copy)]
struct Release {
    due: Time,
    done: Time,
}

/// A busy period of the bottleneck: packets released right behind one another.
#[derive(Debug, Clone, Copy)]
struct Run {
    first: Release,
    last: Release,
    /// Released after the first.
    bytes: Bytes,
}

/// A shorter busy period tells more about the lateness of its first and last packet than about
/// the rate between them.
const LEAST_RUN: Duration = Duration::from_millis(20);

impl Lane {
    /// An idle lane for packets of up to `mtu` bytes.
    pub fn new(spec: &DirectionSpec, mtu: Bytes, detours: Detours, seed: u64) -> Lane {
        Lane {
            direction: Direction::new(spec, seed),
            detours,
            fan: Fan::default(),
            largest: frame_size(mtu),
            delay: spec.delay,
            decided: Time::ZERO,
            batch: Vec::with_capacity(BATCH),
            run: None,
            tally: Tally::default(),
        }
    }

    /// A frame arrived at `stamp`.
    pub fn handle_arrival(&mut self, stamp: Time, frame: Frame<'_>, pool: &mut Pool) {
        if frame.length > self.largest || frame.bytes.len() < frame.length {
            self.tally.oversized += 1;
            return;
        }
        if stamp < self.decided {
            self.tally.stale_stamps += 1;
            self.tally.stalest = self.tally.stalest.max(self.decided.since(stamp));
        }
        let now = stamp.max(self.decided);
        self.direction.advance(now);
        self.decided = now;
        let follows = self.direction.link().backlog_packets() > 0;
        let parcel = pool.store(frame.bytes, self.detours.leaf_of(frame.bytes), follows);
        self.tally.packets_in += 1;
        self.tally.bytes_in += parcel.wire_size();
        if let Err(dropped) = self.direction.handle_arrival(now, parcel) {
            pool.free(dropped.packet);
            match dropped.refusal {
                Refusal::BufferFull => self.tally.buffer_drops += 1,
                Refusal::RandomLoss => self.tally.random_losses += 1,
            }
        }
        self.tally.backlog_max = self.tally.backlog_max.max(self.direction.link().backlog());
    }

    /// When the next packet is due at the exit.
    pub fn poll_timeout(&self) -> Option<Time> {
        [self.direction.poll_timeout(), self.fan.poll_timeout()].into_iter().flatten().min()
    }

    fn poll_delivery(&mut self, now: Time) -> Option<(Time, Parcel)> {
        if self.detours.is_empty() {
            return self.direction.poll_delivery(now);
        }
        while let Some((through, parcel)) = self.direction.poll_delivery(now) {
            self.fan.handle_entry(through + self.detours.of(parcel.leaf), parcel);
        }
        self.fan.poll_exit(now)
    }

    /// Sends what is due by `now`, a batch at most, through `port`; false if nothing was due.
    pub fn release(&mut self, now: Time, pool: &mut Pool, port: &PacketPort) -> bool {
        let mut batch = std::mem::take(&mut self.batch);
        batch.clear();
        while batch.len() < BATCH
            && let Some(delivery) = self.poll_delivery(now)
        {
            batch.push(delivery);
        }
        self.decided = self.decided.max(now - self.delay);
        let mut rest = &batch[..];
        while let Some(&(_, first)) = rest.first() {
            let mut frames = [pool.frame(first); BATCH];
            for (frame, (_, parcel)) in frames.iter_mut().zip(rest) {
                *frame = pool.frame(*parcel);
            }
            let Ok(taken) = port.send(&frames[..rest.len()]) else {
                self.tally.send_failures += 1;
                rest = &rest[1..];
                continue;
            };
            // After the call: the time at which the last of these had surely been handed over.
            let done = clock::now();
            for (due, parcel) in &rest[..taken] {
                self.count(Release { due: *due, done }, parcel);
            }
            rest = &rest[taken..];
        }
        for (_, parcel) in &batch {
            pool.free(*parcel);
        }
        self.batch = batch;
        !self.batch.is_empty()
    }

    /// The lane as it stands at `now`. Arrivals before `now` must have been handed in.
    pub fn observe(&mut self, now: Time) -> Flow {
        self.direction.advance(now);
        self.decided = self.decided.max(now);
        let link = self.direction.link();
        let backlog = link.backlog();
        self.tally.backlog_sum += backlog;
        self.tally.backlog_samples += 1;
        Flow {
            backlog,
            backlog_packets: link.backlog_packets(),
            queue_delay: backlog / link.rate(),
            buffer_drops: self.tally.buffer_drops,
            random_losses: self.tally.random_losses,
            arrived: self.tally.packets_in,
            delivered: self.tally.bytes_out,
        }
    }

    /// Changes the bottleneck's rate from `now` on.
    pub fn set_rate(&mut self, now: Time, rate: Rate) {
        self.direction.set_rate(now, rate);
        self.decided = self.decided.max(now);
    }

    /// Closes the books.
    pub fn into_tally(mut self) -> Tally {
        self.close_run();
        self.tally.held = self.direction.counters().queued + self.fan.counters().queued;
        self.tally
    }

    fn count(&mut self, release: Release, parcel: &Parcel) {
        let tally = &mut self.tally;
        tally.packets_out += 1;
        tally.bytes_out += parcel.wire_size();
        tally.lateness.record(release.done.since(release.due));
        if !self.detours.is_empty() {
            // Releases are no longer in the order in which the bottleneck sent: they tell nothing
            // of its rate.
            return;
        }
        match &mut self.run {
            Some(run) if parcel.follows => {
                run.last = release;
                run.bytes += parcel.wire_size();
            }
            _ => {
                self.close_run();
                self.run = Some(Run { first: release, last: release, bytes: Bytes::ZERO });
            }
        }
    }

    fn close_run(&mut self) {
        let Some(Run { first, last, bytes }) = self.run.take() else { return };
        let due = last.due.since(first.due);
        if due >= LEAST_RUN {
            self.tally.backlogged_bytes += bytes;
            self.tally.backlogged_due += due;
            self.tally.backlogged_time += last.done.since(first.done);
        }
    }
}
