use sweetspot_tcp::Statistics;

use crate::network::Direction;

/// The totals of a group's finished connections and its datagrams.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct GroupTotals {
    /// Packets of payload acknowledged, or datagrams received.
    pub delivered: u64,
    /// Delivered packets of connections with data going backward.
    pub delivered_backward: u64,
    pub sent: u64,
    pub retransmitted: u64,
    pub timeouts: u64,
    pub dropped: u64,
    pub completed: u64,
    /// Sum of the completion times of finished transfers, nanoseconds.
    pub completion: u128,
}

impl GroupTotals {
    /// Adds a finished connection with this many packets acknowledged.
    pub(crate) fn add(&mut self, direction: Direction, acknowledged: u64, statistics: Statistics) {
        self.deliver(direction, acknowledged);
        self.sent += statistics.sent;
        self.retransmitted += statistics.retransmitted;
        self.timeouts += statistics.timeouts;
    }

    /// Adds packets of payload that arrived.
    pub(crate) fn deliver(&mut self, direction: Direction, packets: u64) {
        self.delivered += packets;
        if direction == Direction::Backward {
            self.delivered_backward += packets;
        }
    }

    pub(crate) fn since(self, earlier: GroupTotals) -> GroupTotals {
        GroupTotals {
            delivered: self.delivered - earlier.delivered,
            delivered_backward: self.delivered_backward - earlier.delivered_backward,
            sent: self.sent - earlier.sent,
            retransmitted: self.retransmitted - earlier.retransmitted,
            timeouts: self.timeouts - earlier.timeouts,
            dropped: self.dropped - earlier.dropped,
            completed: self.completed - earlier.completed,
            completion: self.completion - earlier.completion,
        }
    }
}
