//! A stream that fills the bottleneck's buffer.

use sweetspot_statistics::Sorted;
use sweetspot_units::{Duration, Rate};

use crate::dispersion::BUSY_RATIO;
use crate::observation::{Direction, EchoRecord, StreamRecord};

/// The buffer counts as full if this share of the excess over the capacity is lost.
const FULL_SHARE: f64 = 0.5;

/// A stream above the capacity, and the path's properties without it.
#[derive(Debug, Clone, Copy)]
pub struct Overload<'a> {
    /// The stream's direction.
    pub direction: Direction,
    /// The stream.
    pub stream: &'a StreamRecord,
    /// Echoes of another flow during the stream.
    pub echoes: &'a EchoRecord,
    /// The narrow link's capacity.
    pub capacity: Rate,
    /// The one-way delay without the measurement's own queue, on the scale of [`Arrival::delay_s`](crate::Arrival::delay_s).
    pub reference_s: f64,
    /// The RTT without the measurement's own queue.
    pub base_rtt: Duration,
    /// The share of packets lost without a queue.
    pub random_loss: f64,
}

/// A packet's index in its stream, and its wait in the queue.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Wait {
    pub index: u32,
    pub waited_s: f64,
}

/// The wait of each packet of `stream` at a link of `capacity`, in order of arrival.
///
/// A link sends one packet at a time, so each packet left it at least one packet time before the next. If it arrived closer to
/// the next one, a pausing host held it up after the link, and that time is not a wait in the queue. Packets that no later packet
/// dates are left out: the last one, and those delivered with it after a pause. The capacity may be too low by [`BUSY_RATIO`];
/// queued packets that no host held up arrive that far apart.
pub(crate) fn waits(stream: &StreamRecord, capacity: Rate, reference_s: f64) -> Vec<Wait> {
    let on_link = (stream.size / capacity.scaled(BUSY_RATIO)).as_secs_f64();
    let origin = stream.arrivals.first().map_or(0, |first| first.received.as_nanos());
    let mut next_s = f64::INFINITY;
    let (mut waits, mut is_dated) = (Vec::with_capacity(stream.arrivals.len()), false);
    for (place, arrival) in stream.arrivals.iter().rev().enumerate() {
        let received_s = arrival.received.as_nanos().wrapping_sub(origin) as i64 as f64 / 1e9;
        let late_s = arrival.delay_s() - reference_s;
        // No packet leaves before it is sent.
        let held_s = (received_s - (next_s - on_link)).clamp(0.0, late_s.max(0.0));
        next_s = received_s - held_s;
        is_dated |= place > 0 && held_s == 0.0;
        if is_dated {
            waits.push(Wait { index: arrival.index, waited_s: late_s - held_s });
        }
    }
    waits.reverse();
    waits
}

impl Overload<'_> {
    /// The wait of each packet, in order of arrival.
    pub(crate) fn waits(&self) -> Vec<Wait> {
        waits(self.stream, self.capacity, self.reference_s)
    }

    /// The packets just before a lost one, in order of sending.
    pub(crate) fn beside_losses(&self) -> Vec<Wait> {
        let mut waits = self.waits();
        waits.sort_unstable_by_key(|wait| wait.index);
        let two = waits.windows(2).filter(|two| two[1].index > two[0].index + 1);
        two.map(|two| two[0]).collect()
    }

    /// The 5th percentile of the waits of packets next to drops in the stream's last quarter.
    pub(crate) fn min_wait_beside_drops(&self) -> Option<f64> {
        let late = self.stream.sent / 4 * 3;
        let beside = self.beside_losses().into_iter().filter(|beside| beside.index >= late);
        beside.map(|beside| beside.waited_s).collect::<Sorted>().quantile(0.05)
    }

    /// The 99th percentile of the waits.
    pub(crate) fn longest_wait_s(&self) -> f64 {
        let waits: Sorted = self.waits().iter().map(|wait| wait.waited_s).collect();
        waits.quantile(0.99).unwrap_or(0.0).max(0.0)
    }

    /// The sending rate over the capacity, minus one.
    fn excess(&self) -> f64 {
        let rate = crate::dispersion(self.stream).map_or(0.0, |d| d.rate_in.as_f64());
        rate / self.capacity.as_f64() - 1.0
    }

    /// Whether the buffer was full at the end. In the stream's last quarter the link then carried all packets that were not lost,
    /// so the queue did not grow.
    pub fn is_full(&self) -> bool {
        let excess = self.excess();
        let from = self.stream.sent - self.stream.sent / 4;
        let sent = self.stream.sent - from;
        let came = self.stream.arrivals.iter().filter(|a| a.index >= from).count() as u32;
        let lost = f64::from(sent.saturating_sub(came)) / f64::from(sent.max(1));
        let needed = (excess / (1.0 + excess) * FULL_SHARE).max(0.03) + self.random_loss;
        excess > 0.0 && lost >= needed
    }
}
