//! A stream that fills the bottleneck's buffer.

use sweetspot_statistics::Sorted;
use sweetspot_units::{Duration, Rate};

use crate::observation::{Direction, EchoRecord, StreamRecord};

/// Buffers are counted full where this part of the excess over the capacity is lost.
const FULL_SHARE: f64 = 0.5;

/// A stream faster than the capacity, and the path's properties without it.
#[derive(Debug, Clone, Copy)]
pub struct Overload<'a> {
    /// Which way the stream went.
    pub direction: Direction,
    /// The stream.
    pub stream: &'a StreamRecord,
    /// Packets of another flow, echoed meanwhile.
    pub echoes: &'a EchoRecord,
    /// The narrow link's capacity.
    pub capacity: Rate,
    /// The one-way delay without a queue of ours, as [`Arrival::delay_s`](crate::Arrival::delay_s) counts it.
    pub reference_s: f64,
    /// The round trip without a queue of ours.
    pub base_rtt: Duration,
    /// The share of packets that is lost without a queue.
    pub random_loss: f64,
}

/// A packet that arrived beside one that was lost: its place and how long it had waited.
pub(crate) struct BesideLoss {
    pub index: u32,
    pub waited_s: f64,
}

impl Overload<'_> {
    /// Packets next to a lost one, in the order of sending.
    pub(crate) fn beside_losses(&self) -> Vec<BesideLoss> {
        let mut arrivals = self.stream.arrivals.clone();
        arrivals.sort_unstable_by_key(|arrival| arrival.index);
        let two = arrivals.windows(2).filter(|two| two[1].index > two[0].index + 1);
        two.map(|two| BesideLoss {
            index: two[0].index,
            waited_s: two[0].delay_s() - self.reference_s,
        })
        .collect()
    }

    /// The shortest that packets beside the drops of the last quarter waited, but for one in twenty.
    pub(crate) fn min_wait_beside_drops(&self) -> Option<f64> {
        let late = self.stream.sent / 4 * 3;
        let beside = self.beside_losses().into_iter().filter(|beside| beside.index >= late);
        beside.map(|beside| beside.waited_s).collect::<Sorted>().quantile(0.05)
    }

    /// The longest that a packet waited, but for one in a hundred.
    pub(crate) fn longest_wait_s(&self) -> f64 {
        let waits = self.stream.arrivals.iter().map(|a| a.delay_s() - self.reference_s);
        waits.collect::<Sorted>().quantile(0.99).unwrap_or(0.0).max(0.0)
    }

    /// The rate at which the stream was sent over the capacity, less one.
    fn excess(&self) -> f64 {
        let rate = crate::dispersion(self.stream).map_or(0.0, |d| d.rate_in.as_f64());
        rate / self.capacity.as_f64() - 1.0
    }

    /// Whether the buffer was full at the end: in the stream's last quarter the link carried all packets that were not
    /// lost, so the queue no longer grew.
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
