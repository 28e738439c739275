//! Builds a captured connection, segment by segment.

use std::net::SocketAddr;

use sweetspot_trace::flow::{Connection, Table};
use sweetspot_trace::packet::{Flags, Options, Segment};
use sweetspot_units::{Duration, Time};

pub const MSS: u32 = 1000;

/// A connection captured at its sender: the segments of each end, with times in milliseconds.
pub struct Script {
    pub table: Table,
    pub now: Time,
}

pub fn sender() -> SocketAddr {
    "192.0.2.1:1000".parse().unwrap()
}

pub fn receiver() -> SocketAddr {
    "192.0.2.2:80".parse().unwrap()
}

pub fn segment() -> Segment {
    Segment {
        time: Time::ZERO,
        source: sender(),
        destination: receiver(),
        seq: 0,
        ack: 0,
        flags: Flags { ack: true, ..Flags::default() },
        window: 60_000,
        payload: 0,
        header: 20,
        options: Options::default(),
        id: None,
        ttl: 64,
    }
}

pub fn syn() -> Flags {
    Flags { syn: true, ..Flags::default() }
}

/// MSS, window scale, and a byte of padding.
pub fn offer(scale: u8) -> Options {
    Options::read(&[2, 4, (MSS >> 8) as u8, MSS as u8, 3, 3, scale, 1])
}

impl Script {
    pub fn new() -> Script {
        Script { table: Table::default(), now: Time::ZERO }
    }

    /// A handshake that takes 100 ms to the receiver and back. Data begin at sequence number 1.
    pub fn open() -> Script {
        Script::opened(100, 60_000, 100)
    }

    /// A handshake: the SYN-ACK comes after `answered` ms with this window, and is acknowledged at `acknowledged` ms.
    pub fn opened(answered: u64, window: u16, acknowledged: u64) -> Script {
        let mut script = Script::new();
        script.synchronise(offer(0), answered, Segment { options: offer(0), window, ..segment() });
        script.run(acknowledged, Segment { seq: 1, ack: 1, ..segment() });
        script
    }

    /// A SYN, and the SYN-ACK.
    pub fn synchronise(&mut self, options: Options, answered: u64, answer: Segment) {
        self.run(0, Segment { flags: syn(), options, ..segment() });
        self.answer(answered, answer);
    }

    pub fn answer(&mut self, ms: u64, answer: Segment) {
        self.receive(ms, Segment { flags: Flags { ack: true, ..syn() }, ack: 1, ..answer });
    }

    pub fn run(&mut self, ms: u64, segment: Segment) {
        self.now = Time::ZERO + Duration::from_millis(ms);
        assert!(self.table.take(&Segment { time: self.now, ..segment }).is_none());
    }

    /// The sender sends segment `n`; the first one is 0.
    pub fn send(&mut self, ms: u64, n: u32) {
        self.run(ms, Segment { seq: 1 + n * MSS, ack: 1, payload: MSS, ..segment() });
    }

    pub fn receive(&mut self, ms: u64, segment: Segment) {
        self.run(ms, Segment { source: receiver(), destination: sender(), ..segment });
    }

    /// The receiver acknowledges everything before segment `n`.
    pub fn ack(&mut self, ms: u64, n: u32) {
        self.window(ms, n, 60_000);
    }

    pub fn window(&mut self, ms: u64, n: u32, window: u16) {
        self.receive(ms, Segment { seq: 1, ack: 1 + n * MSS, window, ..segment() });
    }

    pub fn end(mut self) -> Connection {
        self.table.drain().unwrap()
    }
}
