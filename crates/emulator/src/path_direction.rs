use sweetspot_linux::clock;
use sweetspot_linux::packet::{MAX_BATCH_FRAMES, PacketPort, ReceivedFrame};
use sweetspot_path::{Chain, DirectionSpec, DropReason, Fan, Packet, Variation};
use sweetspot_units::{Bytes, Duration, Rate, Time};

use crate::counters::DirectionCounters;
use crate::host_pair::Routes;
use crate::pool::{PacketHandle, Pool};
use crate::series::DirectionSample;
use crate::veth::frame_size;

/// One direction of the path, between the ring it arrives from and the port it leaves by.
pub(crate) struct PathDirection {
    chain: Chain<PacketHandle>,
    /// The narrow hop, whose queue is sampled.
    narrow: usize,
    routes: Routes,
    /// What waits for its extra delay.
    fan: Fan<PacketHandle>,
    largest: usize,
    batch: Vec<(Time, PacketHandle)>,
    run: Option<BusyPeriod>,
    pub counters: DirectionCounters,
}

/// A release: when it was due and when the kernel had taken it.
#[derive(Debug, Clone, Copy)]
struct Release {
    due: Time,
    done: Time,
}

/// A busy period of the bottleneck: packets released right behind one another.
#[derive(Debug, Clone, Copy)]
struct BusyPeriod {
    first: Release,
    last: Release,
    /// Released after the first.
    bytes: Bytes,
}

/// A shorter busy period tells more about the lateness of its first and last packet than about
/// the rate between them.
const MIN_BUSY_PERIOD: Duration = Duration::from_millis(20);

impl PathDirection {
    /// An idle direction through `hops`, in the order in which packets take them, of up to `mtu` bytes.
    pub fn new(hops: &[DirectionSpec], mtu: Bytes, routes: Routes, seed: u64) -> PathDirection {
        PathDirection {
            chain: Chain::new(hops, mtu, seed),
            narrow: narrow(hops),
            routes,
            fan: Fan::default(),
            largest: frame_size(mtu),
            batch: Vec::with_capacity(MAX_BATCH_FRAMES),
            run: None,
            counters: DirectionCounters::default(),
        }
    }

    /// A frame arrived at `stamp`.
    pub fn handle_arrival(&mut self, stamp: Time, frame: ReceivedFrame<'_>, pool: &mut Pool) {
        if frame.length > self.largest || frame.bytes.len() < frame.length {
            self.counters.oversized += 1;
            return;
        }
        let pair = self.routes.pair_of(frame.bytes);
        let route = self.routes.hops(pair);
        // The queue has been judged as of this time; what arrived before it comes too late to have been in it and counts
        // as arriving now.
        let decided = self.chain.decided(route.0);
        if stamp < decided {
            self.counters.stale_stamps += 1;
            self.counters.stalest = self.counters.stalest.max(decided.since(stamp));
        }
        let now = stamp.max(decided);
        self.chain.advance(route.0, now);
        let follows = self.chain.hop(route.0).link().backlog_packets() > 0;
        let packet = pool.store(frame.bytes, pair, follows);
        self.counters.packets_in += 1;
        self.counters.bytes_in += packet.wire_size();
        self.chain.handle_arrival(now, route, packet);
        self.free_dropped(pool);
    }

    /// Gives back what was dropped.
    fn free_dropped(&mut self, pool: &mut Pool) {
        while let Some(dropped) = self.chain.poll_dropped() {
            pool.free(dropped.packet);
            self.count_drop(dropped.reason);
        }
    }

    fn count_drop(&mut self, reason: DropReason) {
        match reason {
            DropReason::Queue => self.counters.buffer_drops += 1,
            DropReason::RandomLoss => self.counters.random_losses += 1,
            DropReason::Policer => self.counters.policer_drops += 1,
        }
    }

    /// When the next packet is due at the exit.
    pub fn poll_timeout(&self) -> Option<Time> {
        [self.chain.poll_timeout(), self.fan.poll_timeout()].into_iter().flatten().min()
    }

    fn poll_delivery(&mut self, now: Time) -> Option<(Time, PacketHandle)> {
        if self.routes.is_empty() {
            return self.chain.poll_delivery(now);
        }
        while let Some((through, packet)) = self.chain.poll_delivery(now) {
            self.fan.handle_entry(through + self.routes.extra_delay(packet.host_pair), packet);
        }
        self.fan.poll_exit(now)
    }

    /// Sends what is due by `now` through `port`, at most one batch. Returns whether anything was due.
    pub fn release(&mut self, now: Time, pool: &mut Pool, port: &PacketPort) -> bool {
        let mut batch = std::mem::take(&mut self.batch);
        batch.clear();
        while batch.len() < MAX_BATCH_FRAMES
            && let Some(delivery) = self.poll_delivery(now)
        {
            batch.push(delivery);
        }
        self.free_dropped(pool);
        for (_, packet) in &batch {
            pool.write_mark(*packet);
        }
        let mut rest = &batch[..];
        while let Some(&(_, first)) = rest.first() {
            let mut frames = [pool.frame(first); MAX_BATCH_FRAMES];
            for (frame, (_, packet)) in frames.iter_mut().zip(rest) {
                *frame = pool.frame(*packet);
            }
            let Ok(taken) = port.send(&frames[..rest.len()]) else {
                self.counters.send_failures += 1;
                rest = &rest[1..];
                continue;
            };
            // After the call: the time at which the last of these had surely been handed over.
            let done = clock::now();
            for (due, packet) in &rest[..taken] {
                self.count(Release { due: *due, done }, packet);
            }
            rest = &rest[taken..];
        }
        for (_, packet) in &batch {
            pool.free(*packet);
        }
        self.batch = batch;
        !self.batch.is_empty()
    }

    /// The state of the direction at `now`. Arrivals before `now` must have been handed in.
    pub fn observe(&mut self, now: Time) -> DirectionSample {
        self.chain.advance(self.narrow, now);
        let link = self.chain.hop(self.narrow).link();
        let backlog = link.backlog();
        self.counters.backlog_sum += backlog;
        self.counters.backlog_samples += 1;
        DirectionSample {
            backlog,
            backlog_packets: link.backlog_packets(),
            queue_delay: backlog / link.rate(),
            buffer_drops: self.counters.buffer_drops,
            random_losses: self.counters.random_losses,
            policer_drops: self.counters.policer_drops,
            arrived: self.counters.packets_in,
            delivered: self.counters.bytes_carried,
        }
    }

    /// Changes the narrow hop's rate from `now` on.
    pub fn set_rate(&mut self, now: Time, rate: Rate) {
        self.chain.set_rate(self.narrow, now, rate);
    }

    /// The hops vary from now on, each as its own says; time 0 of `variations` is `start`.
    pub fn vary(&mut self, start: Time, variations: &[Variation]) {
        for (hop, variation) in variations.iter().enumerate().take(self.chain.hops()) {
            self.chain.vary(hop, start, variation);
        }
    }

    /// The least time from the first queue to the exit.
    pub fn least_delay(&self) -> Duration {
        self.chain.least_delay()
    }

    /// Ends the counting.
    pub fn into_counters(mut self) -> DirectionCounters {
        self.close_run();
        while let Some(dropped) = self.chain.poll_dropped() {
            self.count_drop(dropped.reason);
        }
        self.counters.backlog_max = self.chain.longest(self.narrow);
        self.counters.held = self.chain.counters().queued + self.fan.counters().queued;
        self.counters
    }

    fn count(&mut self, release: Release, packet: &PacketHandle) {
        let counters = &mut self.counters;
        counters.packets_out += 1;
        counters.bytes_out += packet.wire_size();
        let (first, last) = self.routes.hops(packet.host_pair);
        if (first..=last).contains(&self.narrow) {
            counters.bytes_carried += packet.wire_size();
        }
        counters.lateness.record(release.done.since(release.due));
        if !self.routes.is_empty() || self.chain.hops() > 1 {
            // Releases are no longer in the order in which the bottleneck sent, or have waited behind it: they tell
            // nothing of its rate.
            return;
        }
        match &mut self.run {
            Some(run) if packet.follows => {
                run.last = release;
                run.bytes += packet.wire_size();
            }
            _ => {
                self.close_run();
                self.run = Some(BusyPeriod { first: release, last: release, bytes: Bytes::ZERO });
            }
        }
    }

    fn close_run(&mut self) {
        let Some(BusyPeriod { first, last, bytes }) = self.run.take() else { return };
        let due = last.due.since(first.due);
        if due >= MIN_BUSY_PERIOD {
            self.counters.backlogged_bytes += bytes;
            self.counters.backlogged_due += due;
            self.counters.backlogged_time += last.done.since(first.done);
        }
    }
}

/// The hop with the least rate that lasts.
pub(crate) fn narrow(hops: &[DirectionSpec]) -> usize {
    let rates = hops.iter().map(DirectionSpec::lasting_rate).enumerate();
    rates.min_by_key(|(_, rate)| *rate).map_or(0, |(hop, _)| hop)
}
