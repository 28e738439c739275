use sweetspot_units::{Bytes, Duration, Time};

use crate::ControllerConfig;
use crate::advertised::{Advertised, RightSizer};
use crate::reception::Reception;

/// Heffner's receiver (Heffner 2002, "High bandwidth TCP queuing", section 6): the receive space is the last RTT's arrivals and
/// four segments; the RTT is the lowest that timestamps showed.
///
/// Section 6.6 advertises that space. The running implementation (Figure 1) and the method that it follows (section 4.2.1)
/// advertise twice that. [`Announced`] selects one of the two.
///
/// The paper's other changes are outside of a controller: here windows are counted in sequence space anyway, and the retransmit
/// queue is separate from the socket's buffer.
#[derive(Debug)]
pub struct Heffner {
    mss: Bytes,
    /// rcv_min_rtt.
    min_rtt: Option<Duration>,
    /// rcv_space.
    space: Bytes,
    taken: Bytes,
    reception: Reception,
    announced: Announced,
    advertised: Advertised,
    growing: bool,
}

/// How much of the receive space Heffner's receiver advertises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Announced {
    /// Once, as section 6.6 words it.
    Once,
    /// Twice, as Figure 1 shows: the window doubles every round trip and ends at twice the BDP.
    Twice,
}

impl Announced {
    fn times(self) -> u64 {
        match self {
            Announced::Once => 1,
            Announced::Twice => 2,
        }
    }
}

/// Section 6.5: "initialized to 4 * MSS", and the 4 MSS on top of the arrivals.
const EXTRA_SEGMENTS: u64 = 4;

impl Heffner {
    /// A controller before the first byte.
    pub fn new(config: &ControllerConfig, announced: Announced) -> Heffner {
        Heffner {
            mss: config.mss,
            min_rtt: None,
            space: config.mss * EXTRA_SEGMENTS,
            taken: Bytes::ZERO,
            reception: Reception::default(),
            announced,
            advertised: Advertised::new(config),
            growing: true,
        }
    }

    /// Section 6.6: rcv_space is the buffer; TCP computes rcv_space - rcv_alloc + ofo_alloc: it advertises the part that unread
    /// data leave free, and out-of-order data take nothing from it.
    fn advertise(&mut self, now: Time) {
        self.advertised.set(now, self.space * self.announced.times());
    }

    /// Section 6.5: once per rcv_min_rtt.
    fn measure(&mut self, now: Time) {
        let Some(rtt) = self.min_rtt else { return };
        let Some(round) = self.reception.poll_round(now, rtt) else { return };
        let arrived = round.bytes + self.mss * EXTRA_SEGMENTS;
        let before = self.space;
        // "It is set to no less than half its previous value".
        self.space = arrived.max(before.scaled(0.5));
        self.growing = self.space > before;
    }
}

impl RightSizer for Heffner {
    fn handle_data(&mut self, now: Time, bytes: Bytes, unread: Bytes) {
        self.taken += bytes;
        // rcv_next: bytes read by the application plus bytes waiting for it.
        self.reception.handle_total(self.taken + unread);
        self.measure(now);
        self.advertise(now);
    }
    fn handle_rtt(&mut self, now: Time, rtt: Duration) {
        self.min_rtt = Some(self.min_rtt.map_or(rtt, |min| min.min(rtt)));
        self.reception.begin(now);
    }
    fn begin(&mut self, now: Time) {
        self.advertise(now);
    }
    fn advertised(&self) -> &Advertised {
        &self.advertised
    }
    fn advertised_mut(&mut self) -> &mut Advertised {
        &mut self.advertised
    }
    fn is_growing(&self) -> bool {
        self.growing
    }
}
