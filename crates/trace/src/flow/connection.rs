use std::net::SocketAddr;

use sweetspot_units::{Duration, Time};

use super::accounts::Hold;
use super::duplicates::Duplicates;
use super::handshake::Handshake;
use super::stream::Stream;
use super::turns::Turns;
use crate::packet::{Flags, Segment};

/// The length of the timestamps option in each segment (RFC 7323 appendix A).
const TIMESTAMPS: u64 = 12;

/// How a connection ended in the capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ending {
    /// The connection was still open.
    #[default]
    Open,
    /// One side or both sent a FIN.
    Finished,
    /// One side reset the connection.
    Reset,
    /// It was dropped after a long silence, to make room for another connection.
    Evicted,
}

/// A connection, with the data of both sides.
#[derive(Debug)]
pub struct Connection {
    /// The client and the server. If the capture does not show the handshake, the first sender seen counts as the client.
    pub ends: [SocketAddr; 2],
    /// The time of its first packet.
    pub begun: Time,
    /// The time of its last packet.
    pub last: Time,
    /// How it began.
    pub handshake: Handshake,
    /// How it ended.
    pub ending: Ending,
    /// The number of its packets, without duplicates.
    pub packets: u64,
    /// The number of packets that were captured twice; no other count includes the duplicates.
    pub copies: u64,
    /// The number of packets with an earlier time than the packet before.
    pub backward: u64,
    /// The largest step back in time.
    pub furthest_back: Duration,
    /// The number of latest packets in a row that are earlier than the last time, and the total by which the clock was set
    /// back.
    behind: u32,
    set_back: Duration,
    /// The data that each end sent, in the order of `ends`.
    pub streams: [Stream; 2],
    finished: [bool; 2],
    /// When each end first reset the connection.
    pub resets: [Option<Time>; 2],
    /// Whether each end is on the network of the capture, judging by the TTL of its latest packet.
    local: [Option<bool>; 2],
    duplicates: Duplicates,
    turns: Turns,
    /// The greatest common divisor of all times since the first packet, in nanoseconds.
    tick: u64,
}

impl Connection {
    /// A connection that begins with `segment`.
    pub fn new(segment: &Segment) -> Connection {
        // A SYN-ACK without a captured SYN comes from the server.
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

    /// Sets the window scales of the hosts at `ends`, as a kernel reported them, because the handshake was not captured.
    pub(super) fn know_scales(&mut self, scales: [u8; 2]) {
        self.handshake.reported = Some(scales);
        self.streams.iter_mut().for_each(Stream::know_window);
    }

    /// Whether no more data can follow: it was reset, or both ends have sent a FIN.
    pub fn has_ended(&self) -> bool {
        self.ending == Ending::Reset || self.finished == [true; 2]
    }

    /// Whether `segment` begins another connection between the same ends.
    pub fn is_followed_by(&self, segment: &Segment) -> bool {
        let closed = self.ending != Ending::Open || self.finished == [true; 2];
        let side = usize::from(segment.source != self.ends[0]);
        // The capture need not show the end: a SYN with another sequence number begins a new connection.
        let anew = match self.handshake.offers[side] {
            Some(offer) => offer.seq != segment.seq,
            None => self.streams.iter().any(|stream| stream.counts().data_segments > 0),
        };
        segment.flags.syn && !segment.flags.ack && (closed || anew)
    }

    /// Handles a segment of this connection.
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
            self.handle_payload(own, &segment);
        } else if segment.flags == (Flags { ack: true, ..Flags::default() }) {
            self.streams[own].handle_probe(&segment);
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

    /// The time of a packet captured at `time`, never before the last one: captures of several devices are not always in order.
    /// If the clock was set back, times continue from the last one.
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

    /// Handles the payload that side `own` sends.
    fn handle_payload(&mut self, own: usize, segment: &Segment) {
        let answers = self.turns.answers(own);
        if self.streams[own].is_new(segment) {
            // The answer to a whole request was sent after the request arrived.
            if let Some(requested_at) = self.turns.requested_at(own)
                && self.streams[1 - own].is_acknowledged_by(segment.ack)
            {
                self.streams[own].answer(segment.time, requested_at);
            }
            let doing = self.turns.handle_data(own, segment.time);
            // If packets are missing, the gap proves no pause of either side.
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
            // The other end's MSS, but no more than this end's own: its network need not carry larger segments.
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

    /// Records the intervals of the stream of `side` from now on; [`Stream::take_spans`] returns them.
    pub fn record(&mut self, side: usize) {
        self.streams[side].record();
    }

    /// Ends the analysis: no more packets follow.
    pub fn end(&mut self) {
        let now = self.last;
        self.streams.iter_mut().for_each(|stream| stream.end(now));
    }

    /// The resolution of the capture's clock, if enough packets show it.
    pub fn tick(&self) -> Option<Duration> {
        const ENOUGH: u64 = 16;
        (self.packets >= ENOUGH && self.tick > 0).then(|| Duration::from_nanos(self.tick))
    }

    /// The time from the first packet to the last.
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
