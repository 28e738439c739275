use serde::Serialize;
use sweetspot_trace::flow::{Connection, Retransmissions, Span};
use sweetspot_trace::packet::Segment;
use sweetspot_units::Duration;

use super::band::Band;
use crate::{CaptureExtent, Class};

/// Number of time slots in a drawing, more than any screen has columns.
const BINS: usize = 3000;
/// Maximum number of events of each kind that are drawn individually.
const EVENTS: usize = 20_000;

/// The graph of the data that one end of a connection sent. Its memory does not grow with the
/// connection.
#[derive(Debug)]
pub struct Drawing {
    connection: Option<Connection>,
    seen: CaptureExtent,
    source: std::net::SocketAddr,
    first: Option<u64>,
    /// The time of the first data, in microseconds.
    began: Option<u64>,
    /// The highest acknowledgement so far.
    acked: u64,
    bins: Vec<Bin>,
    data: Vec<DataPoint>,
    acks: Vec<AckPoint>,
    again: Vec<RetransmissionPoint>,
    sacks: Vec<SackPoint>,
    /// There were more events of a kind than are drawn individually.
    thinned: bool,
    band: Band,
}

/// The contents of one time slot.
#[derive(Debug, Clone, Copy, Default)]
struct Bin {
    /// The lowest and the highest byte sent.
    sent: Option<(u64, u64)>,
    ack: Option<u64>,
    edge: Option<u64>,
    flight: Option<u64>,
    window: Option<u64>,
    rtt: Option<Duration>,
    acked: u64,
}

/// New data: microseconds, first byte, last byte.
type DataPoint = (u64, u64, u64);
/// An acknowledgement: microseconds, position, right edge of the window.
type AckPoint = (u64, u64, Option<u64>);
/// A retransmission: microseconds, first byte, last byte, kind.
type RetransmissionPoint = (u64, u64, u64, &'static str);
/// A selective acknowledgement: microseconds, first byte, last byte.
type SackPoint = (u64, u64, u64);

/// Data for the page's script.
#[derive(Debug, Serialize)]
pub struct Finished<'a> {
    /// The durations of the connection and of a bin, in microseconds.
    lasts: u64,
    bin: f64,
    data: &'a [DataPoint],
    acks: &'a [AckPoint],
    again: &'a [RetransmissionPoint],
    sacks: &'a [SackPoint],
    thinned: bool,
    /// Beginning and end in microseconds, and the index of the class.
    spans: Vec<(u64, u64, usize)>,
    /// Per bin: number, lowest and highest byte sent, acknowledgement, right edge, flight, window, RTT
    /// in microseconds, bytes acknowledged.
    bins: Vec<Row>,
}

type Row = (
    usize,
    Option<u64>,
    Option<u64>,
    Option<u64>,
    Option<u64>,
    Option<u64>,
    Option<u64>,
    Option<u64>,
    u64,
);

impl Drawing {
    /// An empty drawing of the data of `source` in the connection that was `seen`.
    pub fn new(source: std::net::SocketAddr, seen: CaptureExtent) -> Drawing {
        Drawing {
            connection: None,
            seen,
            source,
            first: None,
            began: None,
            acked: 0,
            bins: vec![Bin::default(); BINS],
            data: Vec::new(),
            acks: Vec::new(),
            again: Vec::new(),
            sacks: Vec::new(),
            thinned: false,
            band: Band::new(seen.last.since(seen.begun).as_micros()),
        }
    }

    /// Takes a segment between the connection's ends. Segments before or after the connection are
    /// ignored.
    pub fn take(&mut self, segment: &Segment) {
        if let Some(connection) = &self.connection {
            let CaptureExtent { begun, packets, .. } = self.seen;
            if connection.begun == begun && connection.packets >= packets {
                return;
            }
            // The connection so far was an earlier one between the same ends, on a clock that went
            // back or stood still.
            if connection.is_followed_by(segment) {
                *self = Drawing::new(self.source, self.seen);
            }
        }
        if self.connection.is_none() && segment.time < self.seen.begun {
            return;
        }
        let source = self.source;
        let connection = self.connection.get_or_insert_with(|| {
            let mut connection = Connection::new(segment);
            connection.record(usize::from(connection.ends[0] != source));
            connection
        });
        let side = usize::from(connection.ends[0] != source);
        let before = CountersBefore::of(connection, side);
        connection.take(segment);
        if connection.copies > before.copies {
            return;
        }
        let spans = connection.streams[side].take_spans();
        let now = connection.last.since(self.seen.begun).as_micros();
        self.divide(spans);
        if segment.source == self.source {
            self.sent(segment, now, side, &before);
        } else {
            self.receive(segment, now, side, &before);
        }
    }

    fn sent(&mut self, segment: &Segment, now: u64, side: usize, before: &CountersBefore) {
        let Some(connection) = &self.connection else { return };
        let stream = &connection.streams[side];
        if segment.payload == 0 {
            return;
        }
        let first = segment.seq.wrapping_add(segment.flags.syn.into());
        let start = stream.position(first);
        let base = *self.first.get_or_insert(start);
        self.began.get_or_insert(now);
        let (start, end) =
            (start.saturating_sub(base), (start + u64::from(segment.payload)).saturating_sub(base));
        let flight = stream.bytes_in_flight().get();
        let window = stream.edge().map(|edge| edge.saturating_sub(base + end) + flight);
        let thinned = match before.kind(stream.retransmissions()) {
            Some(kind) => keep(&mut self.again, (now, start, end, kind)),
            None => keep(&mut self.data, (now, start, end)),
        };
        self.thinned |= thinned;
        let bin = self.bin(now);
        let (min, max) = bin.sent.unwrap_or((start, end));
        bin.sent = Some((min.min(start), max.max(end)));
        bin.flight = bin.flight.max(Some(flight));
        bin.window = bin.window.or(window);
    }

    fn receive(&mut self, segment: &Segment, now: u64, side: usize, before: &CountersBefore) {
        let Some(connection) = &self.connection else { return };
        let stream = &connection.streams[side];
        if !segment.flags.ack || segment.flags.rst {
            return;
        }
        let ack = stream.position(segment.ack);
        let base = *self.first.get_or_insert(ack);
        let place = |position: u64| position.saturating_sub(base);
        let scale = connection.handshake.scale(1 - side).unwrap_or(0);
        let shift = if segment.flags.syn { 0 } else { scale };
        let known = stream.counts().window_known || segment.window == 0;
        let edge = known.then(|| place(ack + (u64::from(segment.window) << shift)));
        let rtt = stream.round_trips().latest();
        let measured = stream.round_trips().samples() > before.samples;
        let ack = place(ack);
        let sacks: Vec<SackPoint> = segment
            .options
            .sack()
            .iter()
            .map(|block| {
                (now, place(stream.position(block.left)), place(stream.position(block.right)))
            })
            .collect();
        self.thinned |= keep(&mut self.acks, (now, ack, edge));
        for block in sacks {
            self.thinned |= keep(&mut self.sacks, block);
        }
        let acked = ack.saturating_sub(self.acked);
        self.acked = self.acked.max(ack);
        let bin = self.bin(now);
        bin.ack = bin.ack.max(Some(ack));
        bin.edge = bin.edge.max(edge);
        bin.rtt = rtt.filter(|_| measured).or(bin.rtt);
        bin.acked += acked;
    }

    fn bin(&mut self, now: u64) -> &mut Bin {
        let lasts = self.lasts();
        let n = u128::from(now) * BINS as u128 / u128::from(lasts.max(1));
        &mut self.bins[(n as usize).min(BINS - 1)]
    }

    fn lasts(&self) -> u64 {
        self.seen.last.since(self.seen.begun).as_micros()
    }

    /// The time of the first data, in microseconds from the connection's beginning.
    pub fn began(&self) -> Option<u64> {
        self.began
    }

    /// Finishes the drawing.
    pub fn end(&mut self) {
        let Some(connection) = &mut self.connection else { return };
        connection.end();
        let side = usize::from(connection.ends[0] != self.source);
        let spans = connection.streams[side].take_spans();
        self.divide(spans);
        self.band.end();
    }

    fn divide(&mut self, spans: Vec<Span>) {
        let CaptureExtent { begun, classifier, .. } = self.seen;
        for Span { from, to, account } in spans {
            let [from, to] = [from, to].map(|time| time.since(begun).as_micros());
            self.band.add((from, to, classifier.class(&account)));
        }
    }

    /// Data for the page's script.
    pub fn finished(&self) -> Finished<'_> {
        let row = |(n, bin): (usize, &Bin)| -> Row {
            (
                n,
                bin.sent.map(|(min, _)| min),
                bin.sent.map(|(_, max)| max),
                bin.ack,
                bin.edge,
                bin.flight,
                bin.window,
                bin.rtt.map(|rtt| rtt.as_micros()),
                bin.acked,
            )
        };
        let index = |class: Class| Class::ALL.iter().position(|c| *c == class).unwrap_or(0);
        let spans = self.band.pieces().iter();
        let used = |bin: &Bin| bin.sent.is_some() || bin.ack.is_some();
        // If there were too many events, the bins replace data and acknowledgements.
        let events = if self.thinned { 0 } else { usize::MAX };
        Finished {
            lasts: self.lasts(),
            bin: self.lasts() as f64 / BINS as f64,
            data: &self.data[..self.data.len().min(events)],
            acks: &self.acks[..self.acks.len().min(events)],
            again: &self.again,
            sacks: &self.sacks,
            thinned: self.thinned,
            spans: spans.map(|&(from, to, class)| (from, to, index(class))).collect(),
            bins: self.bins.iter().enumerate().filter(|(_, bin)| used(bin)).map(row).collect(),
        }
    }
}

/// Counters before a segment.
struct CountersBefore {
    copies: u64,
    retransmissions: Retransmissions,
    samples: u64,
}

impl CountersBefore {
    fn of(connection: &Connection, side: usize) -> CountersBefore {
        let stream = &connection.streams[side];
        CountersBefore {
            copies: connection.copies,
            retransmissions: *stream.retransmissions(),
            samples: stream.round_trips().samples(),
        }
    }

    /// The kind of retransmission, if the segment is one.
    fn kind(&self, now: &Retransmissions) -> Option<&'static str> {
        let was = &self.retransmissions;
        [
            (now.fast > was.fast || now.selective > was.selective, "fast"),
            (now.timeout > was.timeout, "timeout"),
            (now.probes > was.probes, "tail probe"),
            (now.needless > was.needless, "needless"),
            (now.taken_back > was.taken_back, "dropped by the receiver"),
        ]
        .into_iter()
        .find_map(|(is, kind)| is.then_some(kind))
    }
}

/// Keeps `event` if there is room. Returns whether there was none.
fn keep<T>(events: &mut Vec<T>, event: T) -> bool {
    let room = events.len() < EVENTS;
    if room {
        events.push(event);
    }
    !room
}
