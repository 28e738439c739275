use std::net::SocketAddr;

use sweetspot_units::{Duration, Time};

use super::accounts::Hold;
use super::duplicates::Duplicates;
use super::handshake::Handshake;
use super::stream::Stream;
use super::turns::Turns;
use crate::packet::{Flags, Segment};

/// Bytes of TCP options in each segment when timestamps are on (RFC 7323 appendix A).
const TIMESTAMPS: u64 = 12;

/// How a connection ended in the capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ending {
    /// It was still open.
    #[default]
    Open,
    /// One side or both had no more to say.
    Finished,
    /// It was broken off.
    Reset,
    /// Another connection took its place after a long silence.
    Evicted,
}

/// A connection, and each side's data.
#[derive(Debug)]
pub struct Connection {
    /// The client (or, if the capture does not show the opening, the first sender seen) and the server.
    pub ends: [SocketAddr; 2],
    /// Its first packet.
    pub begun: Time,
    /// Its last packet.
    pub last: Time,
    /// How it began.
    pub handshake: Handshake,
    /// How it ended.
    pub ending: Ending,
    /// All its packets, copies left out.
    pub packets: u64,
    /// Packets that were captured once more; nothing else counts them.
    pub copies: u64,
    /// Packets with a time before the previous packet's.
    pub backward: u64,
    /// By how much at most.
    pub furthest_back: Duration,
    /// How many of the latest packets lie before others, one behind the other, and by how much the clock was set back.
    behind: u32,
    set_back: Duration,
    /// The data of each end, in the order of `ends`.
    pub streams: [Stream; 2],
    finished: [bool; 2],
    /// When each end first reset it.
    pub resets: [Option<Time>; 2],
    /// Whether each end is on the network of the capture, by its latest packet.
    local: [Option<bool>; 2],
    duplicates: Duplicates,
    turns: Turns,
    /// The greatest common divisor of all times since the beginning, in nanoseconds.
    tick: u64,
}

impl Connection {
    /// The connection that `segment` is the first of.
    pub fn new(segment: &Segment) -> Connection {
        // An answer to a SYN that was not captured comes from the server.
        let answers = segment.flags.syn && segment.flags.ack;
        let (source, destination) = (segment.source, segment.destination);
        Connection {
            ends: if answers { [destination, source] } else { [source, destination] },
            begun: segment.time,
            last: segment.time,
            handshake: Handshake::default(),
            ending: Ending::Open,
            packets: 0,
            copies: 0,
            backward: 0,
            furthest_back: Duration::ZERO,
            behind: 0,
            set_back: Duration::ZERO,
            streams: [Stream::default(), Stream::default()],
            finished: [false; 2],
            resets: [None; 2],
            local: [None; 2],
            duplicates: Duplicates::default(),
            turns: Turns::default(),
            tick: 0,
        }
    }

    /// The window scales of the hosts at `ends`, as a kernel reported them: the handshake was before the capture.
    pub(super) fn know_scales(&mut self, scales: [u8; 2]) {
        self.handshake.reported = Some(scales);
        self.streams.iter_mut().for_each(Stream::know_window);
    }

    /// Whether `segment` begins another connection between the same ends.
    pub fn is_followed_by(&self, segment: &Segment) -> bool {
        let closed = self.ending != Ending::Open || self.finished == [true; 2];
        let side = usize::from(segment.source != self.ends[0]);
        // The capture need not show the end: an end that starts with another number begins a new connection.
        let anew = match self.handshake.offers[side] {
            Some(offer) => offer.seq != segment.seq,
            None => self.streams.iter().any(|stream| stream.counts().data_segments > 0),
        };
        segment.flags.syn && !segment.flags.ack && (closed || anew)
    }

    /// Takes a segment of this connection.
    pub fn take(&mut self, segment: &Segment) {
        let now = self.clock(segment.time);
        let segment = Segment { time: now, ..*segment };
        let side = usize::from(segment.source != self.ends[0]);
        if self.duplicates.is_copy(side, &segment) {
            self.copies += 1;
            return;
        }
        self.last = now;
        self.packets += 1;
        self.tick = gcd(self.tick, now.since(self.begun).as_nanos());
        self.streams.iter_mut().for_each(|stream| stream.pass(now));
        self.local[side] = Some(segment.is_local());
        let opened = self.handshake.take(side, &segment);
        let [own, other] = if side == 0 { [0, 1] } else { [1, 0] };
        if let [Some(near), Some(far)] = [self.local[own], self.local[other]] {
            self.streams[own].place(near, far);
            self.streams[other].place(far, near);
        }
        if segment.flags.syn {
            self.streams[own].synchronise(&segment);
        }
        if opened {
            self.prepare(now);
        }
        // The window of a reset is meaningless (RFC 9293 §3.5.2).
        if segment.flags.ack && !segment.flags.rst {
            let scale = self.handshake.scale(own);
            self.streams[other].acknowledge(&segment, scale.unwrap_or(0));
        }
        if segment.payload > 0 && !segment.flags.rst {
            self.speak(own, &segment);
        } else if segment.flags == (Flags { ack: true, ..Flags::default() }) {
            self.streams[own].ask(&segment);
        }
        if segment.flags.fin || segment.flags.rst {
            self.finished[own] = true;
            self.streams[own].finish();
        }
        if segment.flags.rst {
            self.ending = Ending::Reset;
            self.resets[own].get_or_insert(now);
        } else if self.finished != [false; 2] && self.ending == Ending::Open {
            self.ending = Ending::Finished;
        }
    }

    /// The time of a packet captured at `time`. Captures of several devices are not always in order; the time returned never
    /// goes back. After a clock was set back, times continue from the last value.
    fn clock(&mut self, time: Time) -> Time {
        const SET_BACK: u32 = 8;
        let time = time + self.set_back;
        self.behind = if time < self.last { self.behind + 1 } else { 0 };
        self.backward += u64::from(self.behind > 0);
        self.furthest_back = self.furthest_back.max(self.last.since(time));
        if self.behind >= SET_BACK {
            self.set_back += self.last.since(time);
        }
        time.max(self.last)
    }

    /// Side `own` sends payload.
    fn speak(&mut self, own: usize, segment: &Segment) {
        let answers = self.turns.answers(own);
        if self.streams[own].is_new(segment) {
            // An answer to a whole request was sent after the request arrived.
            if let Some(asked) = self.turns.asked(own)
                && self.streams[1 - own].is_acknowledged_by(segment.ack)
            {
                self.streams[own].answer(segment.time, asked);
            }
            let doing = self.turns.spoken(own, segment.time);
            // Missing packets prove no pause, of either side.
            let missing = self.streams[own].misses(segment);
            for (stream, hold) in self.streams.iter_mut().zip(doing) {
                stream.settle(segment.time, if missing { Hold::Unseen } else { hold });
            }
        }
        self.streams[own].send(segment, answers);
    }

    fn prepare(&mut self, now: Time) {
        let Handshake { offers, to_opened, to_opener, .. } = self.handshake;
        let timestamps = offers.iter().all(|o| o.is_some_and(|o| o.timestamps));
        let up = [to_opener, to_opened];
        for (side, stream) in self.streams.iter_mut().enumerate() {
            // The other end's MSS; its own network need not carry more than it offers itself.
            let mss = offers[1 - side].and_then(|o| o.mss).map(u64::from);
            let own = offers[side].and_then(|o| o.mss).map_or(u64::MAX, u64::from);
            let mss = mss.map(|mss| mss.min(own));
            let payload =
                mss.map(|mss| mss.saturating_sub(if timestamps { TIMESTAMPS } else { 0 }));
            let known = self.handshake.scale(1 - side).is_some();
            stream.prepare(payload, [up[side], up[1 - side]], known);
            stream.open(self.begun, now);
        }
    }

    /// Records the intervals of the stream of `side` from now on, until [`Stream::take_spans`] takes them.
    pub fn record(&mut self, side: usize) {
        self.streams[side].record();
    }

    /// Nothing more comes.
    pub fn end(&mut self) {
        let now = self.last;
        self.streams.iter_mut().for_each(|stream| stream.end(now));
    }

    /// How long a tick of the capture's clock is, if enough packets show it.
    pub fn tick(&self) -> Option<Duration> {
        const ENOUGH: u64 = 16;
        (self.packets >= ENOUGH && self.tick > 0).then(|| Duration::from_nanos(self.tick))
    }

    /// How long it was seen.
    pub fn lasted(&self) -> Duration {
        self.last.since(self.begun)
    }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}
