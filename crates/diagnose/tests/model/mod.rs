//! A model of connections and their captures, and ways in which a capture can distort packets.

use std::net::SocketAddr;

use proptest::prelude::*;
use proptest::sample::Index;
use sweetspot_trace::packet::{Flags, Options, Segment, Timestamps};
use sweetspot_units::{Duration, Time};

pub const SENDER: ([u8; 4], u16) = ([192, 0, 2, 1], 40_000);
pub const RECEIVER: ([u8; 4], u16) = ([192, 0, 2, 2], 80);

/// A sender, a receiver, a path between them, and the capture point on it.
#[derive(Debug, Clone)]
pub struct Model {
    pub mss: u32,
    pub window: u32,
    /// One-way delay in microseconds.
    pub delay: u64,
    /// Microseconds that a segment occupies the bottleneck.
    pub spacing: u64,
    /// The capture point's distance from the sender, in sixteenths of the path.
    pub place: u64,
    pub rounds: u32,
    /// The initial congestion window in segments, and whether it doubles.
    pub first: u32,
    pub doubles: bool,
    /// The sender's pause after each round.
    pub rest: u64,
    /// The receiver closes its window once in this many rounds.
    pub closes: Option<u32>,
    /// One segment in this many is lost and retransmitted after a timeout.
    pub loses: Option<u32>,
    pub timestamps: bool,
    pub handshake: bool,
}

/// A sender that always has data, without losses, to a receiver with a window that is never full. The capture is
/// at the sender and begins with the handshake.
pub const PLAIN: Model = Model {
    mss: 1448,
    window: 0,
    delay: 0,
    spacing: 10,
    place: 0,
    rounds: 0,
    first: 1,
    doubles: false,
    rest: 0,
    closes: None,
    loses: None,
    timestamps: true,
    handshake: true,
};

pub fn model() -> impl Strategy<Value = Model> {
    let sizes = (prop_oneof![Just(536u32), Just(1448), 1..9000u32], 1..300_000u32);
    let path = (0..200_000u64, 1..10_000u64, 0..=16u64);
    let sending = (1..30u32, 1..40u32, any::<bool>(), prop_oneof![Just(0u64), 0..2_000_000u64]);
    let faults = (proptest::option::of(1..10u32), proptest::option::of(2..50u32));
    (sizes, path, sending, faults, any::<bool>(), any::<bool>()).prop_map(
        |((mss, window), path, sending, (closes, loses), timestamps, handshake)| Model {
            mss,
            window,
            delay: path.0,
            spacing: path.1,
            place: path.2,
            rounds: sending.0,
            first: sending.1,
            doubles: sending.2,
            rest: sending.3,
            closes,
            loses,
            timestamps,
            handshake,
        },
    )
}

impl Model {
    /// The captured segments, in the order of time.
    pub fn simulate(&self) -> Vec<Segment> {
        let mut packets = Vec::new();
        let up = self.delay * self.place / 16;
        let mut now = 0;
        if self.handshake {
            let syn = Flags { syn: true, ..Flags::default() };
            let offer = Options::read(&[2, 4, (self.mss >> 8) as u8, self.mss as u8, 3, 3, 4, 1]);
            packets.push(self.sent(now + up, 0, 0, syn, offer));
            let at = now + 2 * self.delay - up;
            let answer = Flags { ack: true, ..syn };
            packets.push(self.received(at, 0, 1, answer, self.window.min(65_535), offer));
            now += 2 * self.delay;
            packets.push(self.sent(now + up, 1, 0, ack(), Options::default()));
        }
        let (mut next, mut flight, mut bottleneck) = (1u32, self.first, 0);
        for round in 0..self.rounds {
            let segments = flight.min((self.window / self.mss).max(1));
            let mut last = now;
            for n in 0..segments {
                let data = |at| self.sent(at + up, next, self.mss, ack(), self.clock(at));
                packets.push(data(now));
                let mut left = now;
                if self.loses.is_some_and(|every| (round * 7 + n) % every == 1) {
                    left = now + 300_000 + 2 * self.delay;
                    packets.push(data(left));
                }
                bottleneck = (left + self.delay).max(bottleneck + self.spacing);
                next = next.wrapping_add(self.mss);
                let closed =
                    self.closes.is_some_and(|every| round % every == 0) && n == segments - 1;
                let window = if closed { 0 } else { self.window >> 4 };
                let back = bottleneck + self.delay - up;
                packets.push(self.received(back, 1, next, ack(), window, self.clock(bottleneck)));
                last = bottleneck + self.delay;
                if closed {
                    let opens = self.clock(bottleneck + 50_000);
                    let window = self.window >> 4;
                    packets.push(self.received(back + 50_000, 1, next, ack(), window, opens));
                    last += 50_000;
                }
            }
            now = last + self.rest;
            flight = if self.doubles { flight.saturating_mul(2).min(200) } else { flight };
        }
        packets.sort_by_key(|packet| packet.time);
        packets
    }

    fn clock(&self, now: u64) -> Options {
        let mut options = Options::default();
        let value = (now / 1000) as u32 + 1;
        options.timestamps = self.timestamps.then_some(Timestamps { value, echo: value });
        options
    }

    pub fn sent(&self, at: u64, seq: u32, payload: u32, flags: Flags, options: Options) -> Segment {
        Segment {
            time: Time::ZERO + Duration::from_micros(at),
            source: SocketAddr::from(SENDER),
            destination: SocketAddr::from(RECEIVER),
            seq,
            ack: 1,
            flags,
            window: 65_535,
            payload,
            header: 32,
            options,
            id: None,
            ttl: 64,
        }
    }

    pub fn received(
        &self,
        at: u64,
        seq: u32,
        ack: u32,
        flags: Flags,
        window: u32,
        options: Options,
    ) -> Segment {
        let window = window.min(65_535) as u16;
        let segment = self.sent(at, seq, 0, flags, options);
        let (source, destination) = (segment.destination, segment.source);
        Segment { source, destination, ack, window, ..segment }
    }
}

pub fn ack() -> Flags {
    Flags { ack: true, ..Flags::default() }
}

/// Ways in which a capture can distort packets.
#[derive(Debug, Clone)]
pub enum Mutation {
    LeaveOut(Index),
    Copy(Index),
    Delay(Index, u64),
    Swap(Index),
    OneWay(bool),
    /// The clock's tick in microseconds.
    Coarse(u64),
    /// A packet's time is this many microseconds too early.
    Back(Index, u64),
    /// Only 54 bytes of each packet are captured, without options.
    Cut,
    /// A network card merges packets that follow immediately.
    Merge(u64),
    /// The handshake and the packets after it are missing.
    Late(Index),
}

pub fn mutation() -> impl Strategy<Value = Mutation> {
    prop_oneof![
        any::<Index>().prop_map(Mutation::LeaveOut),
        any::<Index>().prop_map(Mutation::Copy),
        (any::<Index>(), 0..3_000_000u64).prop_map(|(at, by)| Mutation::Delay(at, by)),
        any::<Index>().prop_map(Mutation::Swap),
        any::<bool>().prop_map(Mutation::OneWay),
        prop_oneof![Just(1_000u64), Just(10_000)].prop_map(Mutation::Coarse),
        (any::<Index>(), 0..3_000_000u64).prop_map(|(at, by)| Mutation::Back(at, by)),
        Just(Mutation::Cut),
        (0..2_000u64).prop_map(Mutation::Merge),
        any::<Index>().prop_map(Mutation::Late),
    ]
}

pub fn mutate(packets: &mut Vec<Segment>, mutation: &Mutation) {
    if packets.len() < 2 {
        return;
    }
    match mutation {
        Mutation::LeaveOut(at) => {
            packets.remove(at.index(packets.len()));
        }
        Mutation::Copy(at) => {
            let at = at.index(packets.len());
            packets.insert(at, packets[at]);
        }
        Mutation::Delay(at, by) => {
            let at = at.index(packets.len());
            let by = Duration::from_micros(*by);
            packets[at..].iter_mut().for_each(|packet| packet.time += by);
        }
        Mutation::Swap(at) => {
            let at = at.index(packets.len() - 1);
            packets.swap(at, at + 1);
        }
        Mutation::OneWay(forward) => {
            let sender = SocketAddr::from(SENDER);
            packets.retain(|packet| (packet.source == sender) == *forward);
        }
        Mutation::Coarse(tick) => packets.iter_mut().for_each(|packet| {
            let micros = packet.time.since(Time::ZERO).as_micros() / tick * tick;
            packet.time = Time::ZERO + Duration::from_micros(micros);
        }),
        Mutation::Back(at, by) => {
            let at = at.index(packets.len());
            let micros = packets[at].time.since(Time::ZERO).as_micros().saturating_sub(*by);
            packets[at].time = Time::ZERO + Duration::from_micros(micros);
        }
        Mutation::Cut => packets.iter_mut().for_each(|packet| packet.options = Options::default()),
        Mutation::Merge(within) => {
            let within = Duration::from_micros(*within);
            packets.dedup_by(|next, run| {
                let follows = run.payload > 0
                    && next.payload > 0
                    && run.source == next.source
                    && run.seq.wrapping_add(run.payload) == next.seq
                    && run.payload + next.payload < 65_000
                    && next.time.since(run.time) <= within;
                run.payload += if follows { next.payload } else { 0 };
                follows
            });
        }
        Mutation::Late(at) => drop(packets.drain(..at.index(packets.len()))),
    }
}
