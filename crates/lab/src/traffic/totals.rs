use std::io;
use std::ops::AddAssign;

use sweetspot_linux::tcp::{Flow, Info};
use sweetspot_units::{Bytes, Duration};

/// Totals of one cross-traffic entry over the measured time, on one side or both.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct LoadTotals {
    /// Payload acknowledged (TCP) or received (UDP).
    pub delivered: Bytes,
    /// The part of `delivered` that went from the far side to the near side.
    pub delivered_reverse: Bytes,
    /// Data segments or datagrams sent.
    pub sent: u64,
    /// The datagrams sent during the measurement that arrived at any time.
    pub received: u64,
    pub retransmitted: u64,
    pub timeouts: u64,
    pub completed: u64,
    pub completion: Duration,
}

/// The kernel's counters of one connection.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct SegmentCounts {
    pub acknowledged: Bytes,
    pub sent: u64,
    pub retransmitted: u64,
    pub timeouts: u64,
}

impl SegmentCounts {
    pub fn read(flow: &Flow) -> io::Result<SegmentCounts> {
        let info = Info::read(flow)?;
        Ok(SegmentCounts {
            acknowledged: info.bytes_acked,
            sent: info.data_segs_out.into(),
            retransmitted: info.total_retrans.into(),
            timeouts: info.total_rto.unwrap_or(0).into(),
        })
    }
}

impl LoadTotals {
    /// Adds a connection's counters since `earlier`.
    pub(super) fn add(&mut self, now: SegmentCounts, earlier: SegmentCounts) {
        self.delivered += now.acknowledged.saturating_sub(earlier.acknowledged);
        self.sent += now.sent.saturating_sub(earlier.sent);
        self.retransmitted += now.retransmitted.saturating_sub(earlier.retransmitted);
        self.timeouts += now.timeouts.saturating_sub(earlier.timeouts);
    }
}

impl AddAssign for LoadTotals {
    fn add_assign(&mut self, other: LoadTotals) {
        self.delivered += other.delivered;
        self.delivered_reverse += other.delivered_reverse;
        self.sent += other.sent;
        self.received += other.received;
        self.retransmitted += other.retransmitted;
        self.timeouts += other.timeouts;
        self.completed += other.completed;
        self.completion += other.completion;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traffic_before_the_measurement_does_not_count() {
        let counts = |n: u64| SegmentCounts {
            acknowledged: Bytes::new(1000 * n),
            sent: 10 * n,
            retransmitted: n,
            timeouts: n,
        };
        let mut totals = LoadTotals::default();
        totals.add(counts(5), counts(3));
        totals.add(counts(2), SegmentCounts::default());
        // (5 - 3) + 2.
        assert_eq!(totals.delivered, Bytes::new(4000));
        assert_eq!((totals.sent, totals.retransmitted, totals.timeouts), (40, 4, 4));
    }
}
