use std::collections::VecDeque;
use std::sync::mpsc::Receiver;

use sweetspot_linux::clock;
use sweetspot_linux::packet::{FrameBatch, MAX_BATCH_FRAMES, Offload, PacketPort, ReceivedFrame};
use sweetspot_path::{Chain, DirectionSpec, DropReason, Fan, Packet, Variation};
use sweetspot_units::{Bytes, Duration, Rate, Time};

use crate::counters::DirectionCounters;
use crate::host_pair::Routes;
use crate::middlebox::Middlebox;
use crate::pool::{Arrival, PacketHandle, Place, Pool, flow_of};
use crate::segmentation::merge::Merge;
use crate::segmentation::split::Segments;
use crate::series::DirectionSample;
use crate::veth::frame_size;

/// A change of a direction at a time on the clock of [`clock::now`]. Packets that arrive earlier find the path unchanged and
/// later ones find it changed, however late the loop is.
#[derive(Debug, Clone)]
pub(crate) struct Alteration {
    pub at: Time,
    pub change: Altered,
}

#[derive(Debug, Clone)]
pub(crate) enum Altered {
    /// The narrow hop gets this rate.
    Rate(Rate),
    /// Each hop gets its own variation, in the order in which packets cross the hops. Time 0 is `start`.
    Varied { start: Time, hops: Vec<Variation> },
}

/// One direction of the path, from the ring on which packets arrive to the port through which they leave.
pub(crate) struct PathDirection {
    chain: Chain<PacketHandle>,
    /// Index of the narrow hop; its queue is sampled.
    narrow: usize,
    routes: Routes,
    middlebox: Middlebox,
    /// Packets waiting for their host pair's extra delay.
    fan: Fan<PacketHandle>,
    changes_receiver: Receiver<Alteration>,
    /// Changes that are not due yet.
    alterations: VecDeque<Alteration>,
    largest: usize,
    batch: Vec<(Time, PacketHandle)>,
    /// The frames of the batch: the number of packets in each, and the work left to the network card.
    frames: Vec<(usize, Offload)>,
    /// Number of super-frames received.
    super_frames: u32,
    run: Option<BusyPeriod>,
    pub counters: DirectionCounters,
}

/// A release: the time when it was due, and the time when the kernel had accepted it.
#[derive(Debug, Clone, Copy)]
struct Release {
    due: Time,
    done: Time,
}

/// A busy period of the bottleneck: packets released back to back.
#[derive(Debug, Clone, Copy)]
struct BusyPeriod {
    first: Release,
    last: Release,
    /// Bytes released after the first packet.
    bytes: Bytes,
}

/// Maximum number of packets released before arrivals are read again, if packets may be merged.
const MAX_BATCH_PACKETS: usize = 256;

/// Minimum length of a busy period. A shorter one depends more on the lateness of its first and last packet than on the rate
/// between them.
const MIN_BUSY_PERIOD: Duration = Duration::from_millis(20);

impl PathDirection {
    /// An empty direction through `hops`, in the order in which packets cross them, with packets of up to `mtu` bytes.
    pub fn new(
        hops: &[DirectionSpec],
        mtu: Bytes,
        (routes, middlebox): (Routes, Middlebox),
        changes_receiver: Receiver<Alteration>,
        seed: u64,
    ) -> PathDirection {
        PathDirection {
            chain: Chain::new(hops, mtu, seed),
            narrow: narrow(hops),
            routes,
            middlebox,
            fan: Fan::default(),
            changes_receiver,
            alterations: VecDeque::new(),
            largest: frame_size(mtu),
            batch: Vec::with_capacity(MAX_BATCH_PACKETS),
            frames: Vec::with_capacity(MAX_BATCH_PACKETS),
            super_frames: 0,
            run: None,
            counters: DirectionCounters::default(),
        }
    }

    /// Handles a frame that arrived at `stamp`. The packets of a super-frame arrive one by one, as from a network card that
    /// split it. Returns the number of packets.
    pub fn handle_arrival(
        &mut self,
        stamp: Time,
        frame: ReceivedFrame<'_>,
        pool: &mut Pool,
    ) -> usize {
        self.alter_until(stamp);
        let ReceivedFrame { bytes, length, offload, .. } = frame;
        let is_complete = bytes.len() == length;
        if offload.segmentation.is_none() && is_complete && length <= self.largest {
            let arrival = Arrival { checksum: offload.checksum, ..Arrival::default() };
            self.enter(stamp, (bytes, &[]), arrival, pool);
            1
        } else if let Some(packets) =
            Segments::of(bytes, offload, self.largest).filter(|_| is_complete)
        {
            self.enter_one_by_one(stamp, packets, offload, pool)
        } else if offload.segmentation.is_some() && !is_complete {
            // No slot can hold it, and the socket had no space for it either.
            self.counters.ring_losses += 1;
            1
        } else {
            self.counters.oversized += 1;
            1
        }
    }

    /// Handles the packets of a super-frame that arrived at `stamp`. Returns their number.
    fn enter_one_by_one(
        &mut self,
        stamp: Time,
        packets: Segments<'_>,
        offload: Offload,
        pool: &mut Pool,
    ) -> usize {
        self.super_frames = self.super_frames.wrapping_add(1);
        let (super_frame, checksum) = (self.super_frames, offload.checksum);
        let (mut count, mut flow, mut packets) = (0, None, packets.peekable());
        while let Some(packet) = packets.next() {
            let last = packets.peek().is_none();
            let place = (!last).then_some(Place { super_frame, number: count });
            flow = flow.or_else(|| Some(flow_of(packet.headers())));
            let arrival = Arrival { checksum, place, flow, ..Arrival::default() };
            self.enter(stamp, (packet.headers(), packet.payload), arrival, pool);
            count += 1;
        }
        count as usize
    }

    /// Handles a packet that arrived at `stamp`: its headers (or all of it), and the payload after them.
    fn enter(
        &mut self,
        stamp: Time,
        (headers, payload): (&[u8], &[u8]),
        arrival: Arrival,
        pool: &mut Pool,
    ) {
        if self.middlebox.swallows(headers.len() + payload.len()) {
            return;
        }
        let host_pair = self.routes.pair_of(headers);
        let route = self.routes.hops(host_pair);
        // The queue is already decided up to this time. An earlier arrival is too late to affect that, and counts as arriving
        // now.
        let decided = self.chain.decided(route.0);
        if stamp < decided {
            self.counters.stale_stamps += 1;
            self.counters.stalest = self.counters.stalest.max(decided.since(stamp));
        }
        let now = stamp.max(decided);
        self.chain.advance(route.0, now);
        let follows = self.chain.hop(route.0).link().backlog_packets() > 0;
        let packet = pool.store(headers, payload, Arrival { host_pair, follows, ..arrival });
        self.middlebox.rewrite(pool.frame_mut(packet), arrival.checksum.is_some());
        self.counters.packets_in += 1;
        self.counters.bytes_in += packet.wire_size();
        self.chain.handle_arrival(now, route, packet);
        self.free_dropped(pool);
    }

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

    /// The time at which the next packet is due at the exit.
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

    /// Sends the packets due by `now` through `port`, at most one batch. Returns whether any were due.
    pub fn release(&mut self, now: Time, pool: &mut Pool, port: &PacketPort) -> bool {
        let mut batch = std::mem::take(&mut self.batch);
        batch.clear();
        let max = if port.offloads() { MAX_BATCH_PACKETS } else { MAX_BATCH_FRAMES };
        while batch.len() < max
            && let Some(delivery) = self.poll_delivery(now)
        {
            batch.push(delivery);
        }
        self.free_dropped(pool);
        for (_, packet) in &batch {
            pool.write_mark(*packet);
        }
        let frames = self.merge(&batch, pool);
        self.send(&batch, &frames, pool, port);
        for (_, packet) in &batch {
            pool.free(*packet);
        }
        self.frames = frames;
        self.batch = batch;
        !self.batch.is_empty()
    }

    /// The frames in which `batch` is sent. All packets are due, so none waits for another.
    fn merge(&mut self, batch: &[(Time, PacketHandle)], pool: &mut Pool) -> Vec<(usize, Offload)> {
        let mut frames = std::mem::take(&mut self.frames);
        frames.clear();
        let mut rest = batch;
        while let Some(&(_, first)) = rest.first() {
            let mut merge = Merge::new(pool.frame(first), first.checksum);
            for pair in rest.windows(2) {
                let [(_, last), (_, next)] = [pair[0], pair[1]];
                let joins = if last.is_before(next) {
                    merge.join_known(next.frame_length())
                } else {
                    merge.join(pool.frame(first), pool.frame(next), next.checksum)
                };
                if !joins {
                    break;
                }
            }
            frames.push((merge.packets, merge.finish(pool.frame_mut(first))));
            rest = &rest[merge.packets..];
        }
        frames
    }

    fn send(
        &mut self,
        mut batch: &[(Time, PacketHandle)],
        mut frames: &[(usize, Offload)],
        pool: &Pool,
        port: &PacketPort,
    ) {
        while let Some(&(packets, _)) = frames.first() {
            let Ok(accepted_frames) = port.send(&as_sent(batch, frames, pool)) else {
                self.counters.send_failures += packets as u64;
                (batch, frames) = (&batch[packets..], &frames[1..]);
                continue;
            };
            // After the system call: by now the last of these frames has certainly been handed over.
            let done = clock::now();
            let packets = frames[..accepted_frames].iter().map(|(packets, _)| packets).sum();
            for (due, packet) in &batch[..packets] {
                self.count(Release { due: *due, done }, packet);
            }
            (batch, frames) = (&batch[packets..], &frames[accepted_frames..]);
        }
    }

    /// The state of the direction at `now`. Call it after handing in all earlier arrivals.
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

    /// Applies the changes up to `now`. Call it after handing in all earlier arrivals.
    pub fn alter_until(&mut self, now: Time) {
        self.alterations.extend(self.changes_receiver.try_iter());
        while self.next_alteration().is_some_and(|at| at <= now) {
            if let Some(alteration) = self.alterations.pop_front() {
                self.alter(alteration);
            }
        }
    }

    fn alter(&mut self, Alteration { at, change }: Alteration) {
        match change {
            Altered::Rate(rate) => {
                let at = at.max(self.chain.decided(self.narrow));
                self.chain.set_rate(self.narrow, at, rate);
            }
            Altered::Varied { start, hops } => {
                for (hop, variation) in hops.iter().enumerate().take(self.chain.hops()) {
                    self.chain.advance(hop, at.max(self.chain.decided(hop)));
                    self.chain.vary(hop, start, variation);
                }
            }
        }
    }

    /// The time of the next change.
    pub fn next_alteration(&self) -> Option<Time> {
        self.alterations.front().map(|alteration| alteration.at)
    }

    /// Minimum time from the first queue to the exit.
    pub fn min_delay(&self) -> Duration {
        self.chain.min_delay()
    }

    /// Returns the final counters.
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
            // Packets may have been reordered or delayed after the bottleneck, so their releases do not show its rate.
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

/// The part of `frames` to send in one system call; the frames consist of the packets in `batch`.
fn as_sent<'a>(
    batch: &[(Time, PacketHandle)],
    frames: &[(usize, Offload)],
    pool: &'a Pool,
) -> FrameBatch<'a> {
    let mut sent = FrameBatch::default();
    let mut batch = batch.iter();
    for (packets, offload) in frames.iter().take(MAX_BATCH_FRAMES) {
        let headers = offload.segmentation.map_or(0, |segmentation| segmentation.headers.into());
        for (number, (_, packet)) in batch.by_ref().take(*packets).enumerate() {
            let frame = pool.frame(*packet);
            if number == 0 {
                sent.push(frame, *offload);
            } else {
                sent.extend(&frame[headers..]);
            }
        }
    }
    sent
}

/// The hop with the lowest permanent rate.
pub(crate) fn narrow(hops: &[DirectionSpec]) -> usize {
    let rates = hops.iter().map(DirectionSpec::lasting_rate).enumerate();
    rates.min_by_key(|(_, rate)| *rate).map_or(0, |(hop, _)| hop)
}
