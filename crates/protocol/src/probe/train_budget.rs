use sweetspot_units::Bytes;

/// Maximum packets of a train that a receiver may request: no receiver of ours needs a longer one.
const MAX_TRAIN_PACKETS: u32 = 512;
/// The largest packet of a train, bytes: a jumbo frame.
const MAX_TRAIN_PACKET_BYTES: u32 = 9216;
/// Bytes of trains that a receiver may request in addition to their share: no receiver can make a sender flood a path.
const FREE_TRAIN_BYTES: u64 = 4_000_000;
/// Maximum share of trains in the acknowledged content, as a divisor.
const TRAIN_SHARE: u64 = 10;

/// The limit on one connection's trains: a receiver that requests more gets none.
#[derive(Debug, Default)]
pub struct TrainBudget {
    sent: u64,
}

impl TrainBudget {
    /// Takes a train of `packets` with `payload` bytes each out of the budget, on a connection that delivered `acked` bytes.
    /// Returns false if it exceeds the budget.
    pub fn take(&mut self, packets: u32, payload: u32, acked: Bytes) -> bool {
        /// The minimum size of a train's packet, which its own fields need, regardless of the request.
        const MIN_PACKET: Bytes = Bytes::new(64);
        /// IPv6 and UDP headers, which also count for small packets.
        const HEADERS: Bytes = Bytes::new(48);
        if packets > MAX_TRAIN_PACKETS || payload > MAX_TRAIN_PACKET_BYTES {
            return false;
        }
        let each = Bytes::new(payload.into()).max(MIN_PACKET) + HEADERS;
        let sent = self.sent + u64::from(packets) * each.get();
        let is_allowed = sent <= FREE_TRAIN_BYTES + acked.get() / TRAIN_SHARE;
        if is_allowed {
            self.sent = sent;
        }
        is_allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_sequence_of_requests_exceeds_the_train_budget(
            asked in proptest::collection::vec(any::<[u16; 2]>(), 0..500), acked in 0u64..1_000_000_000,
        ) {
            let mut budget = TrainBudget::default();
            let sent: u64 = asked
                .iter()
                .map(|[packets, payload]| (u32::from(*packets), u32::from(*payload)))
                .filter(|(packets, payload)| budget.take(*packets, *payload, Bytes::new(acked)))
                .map(|(packets, payload)| u64::from(packets) * u64::from(payload))
                .sum();
            prop_assert!(sent <= 4_000_000 + acked / 10);
        }
    }

    #[test]
    fn a_rejected_train_leaves_budget_for_a_shorter_one() {
        let mut budget = TrainBudget::default();
        assert!(!budget.take(513, 100, Bytes::ZERO) && !budget.take(1, 9217, Bytes::ZERO));
        assert!(budget.take(400, 9216, Bytes::ZERO), "3.7 MB");
        assert!(!budget.take(100, 9216, Bytes::ZERO), "4.6 MB");
        assert!(budget.take(10, 1452, Bytes::ZERO));
        assert!(budget.take(100, 9216, Bytes::new(10_000_000)));
    }
}
