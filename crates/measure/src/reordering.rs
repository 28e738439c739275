//! Reordering (RFC 4737).

use serde::Serialize;

use crate::observation::StreamRecord;

/// Reordered packets and their extent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Reordering {
    /// Packets that arrived.
    pub arrived: u64,
    /// Packets that arrived after one that was sent later (RFC 4737, section 3.3).
    pub reordered: u64,
    /// The largest extent of reordering, packets (RFC 4737, section 4.2.2).
    pub extent: u64,
}

/// The reordering of `streams`.
pub fn reordering<'a>(streams: impl IntoIterator<Item = &'a StreamRecord>) -> Reordering {
    let mut found = Reordering::default();
    for stream in streams {
        let mut next_expected = 0;
        for (place, arrival) in stream.arrivals.iter().enumerate() {
            found.arrived += 1;
            if arrival.index >= next_expected {
                next_expected = arrival.index + 1;
                continue;
            }
            found.reordered += 1;
            // The earliest arrival of a packet that was sent later.
            let earlier = &stream.arrivals[..place];
            let first = earlier.iter().position(|other| other.index > arrival.index);
            found.extent = found.extent.max(first.map_or(0, |first| (place - first) as u64));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::Arrival;
    use sweetspot_units::{Bytes, Time};

    /// The example of RFC 4737, section 4.2.3: 1 2 3 7 8 9 10 4 5 6 11. Three packets are reordered, each with an
    /// extent of at least four.
    #[test]
    fn the_rfc_4737_example_has_three_reordered_packets_with_max_extent_six() {
        let order = [1, 2, 3, 7, 8, 9, 10, 4, 5, 6, 11];
        let arrivals =
            order.map(|n| Arrival { index: n - 1, sent: Time::ZERO, received: Time::ZERO });
        let stream = StreamRecord { sent: 11, size: Bytes::new(100), arrivals: arrivals.to_vec() };
        let found = reordering([&stream]);
        // 7 arrives in position 3; 4, 5 and 6 arrive in positions 7, 8 and 9.
        assert_eq!((found.arrived, found.reordered, found.extent), (11, 3, 6));
    }
}
