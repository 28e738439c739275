//! A captured connection, built segment by segment.

use std::net::SocketAddr;

use sweetspot_diagnose::{Flow, capture};
use sweetspot_trace::flow::{SenderReport, Table};
use sweetspot_trace::packet::{Flags, Options, Segment};
use sweetspot_units::{Duration, Time};

/// A captured connection; times in microseconds.
#[derive(Default)]
pub struct Captured {
    table: Table,
}

impl Captured {
    /// Adds the next packet.
    pub fn take(&mut self, us: u64, segment: Segment) {
        let time = Time::ZERO + Duration::from_micros(us);
        assert!(self.table.take(&Segment { time, ..segment }).is_none());
    }

    /// Sets the window scales of the sender and the receiver, as reported by a kernel.
    pub fn know_scales(&mut self, scales: [u8; 2]) {
        self.table.know_scales([sent().source, sent().destination], scales);
    }

    /// Sets the report of the sender's kernel.
    pub fn know_sender(&mut self, report: SenderReport) {
        self.table.know_sender([sent().source, sent().destination], report);
    }

    /// Sets the report of the receiver's kernel.
    pub fn know_reader(&mut self, is_late: bool) {
        self.table.know_reader([sent().destination, sent().source], is_late);
    }

    /// The diagnosis of the sender's data.
    pub fn flow(mut self) -> Flow {
        let flows = capture::flows(&self.table.drain().unwrap());
        flows.into_iter().find(|flow| flow.source == sent().source).unwrap()
    }
}

/// A SYN's flags.
pub fn syn() -> Flags {
    Flags { syn: true, ..Flags::default() }
}

/// Options of a SYN: the MSS, and a window scale of 7.
pub fn offer(mss: u32) -> Options {
    Options::read(&[2, 4, (mss >> 8) as u8, mss as u8, 3, 3, 7, 1])
}

/// The sender's acknowledgement of the first byte.
pub fn sent() -> Segment {
    Segment {
        time: Time::ZERO,
        source: SocketAddr::from(([192, 0, 2, 1], 1000)),
        destination: SocketAddr::from(([198, 51, 100, 7], 80)),
        seq: 0,
        ack: 1,
        flags: Flags { ack: true, ..Flags::default() },
        // 8 MB at a scale of 7.
        window: 65_535,
        payload: 0,
        header: 20,
        options: Options::default(),
        id: None,
        ttl: 64,
    }
}

/// The receiver's acknowledgement of everything before `ack`.
pub fn back(ack: u32, seq: u32) -> Segment {
    let Segment { source, destination, .. } = sent();
    Segment { source: destination, destination: source, seq, ack, ..sent() }
}
