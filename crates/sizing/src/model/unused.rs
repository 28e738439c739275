use sweetspot_units::{Bytes, Duration, Rate, Time};

use super::epoch::Epoch;
use super::repairs::Repairs;

/// The capacity that congestion control left unused after slow start had overflowed the path's buffer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UnusedCapacity {
    /// Share of its highest rate that a transfer alone on a full path keeps.
    kept: f64,
    /// Whether the first loss was an overflow.
    has_overflowed: bool,
    /// The highest rate that two consecutive epochs reached.
    highest: Rate,
    /// Rates of the last two epochs without losses.
    lately: [Rate; 2],
    /// The lowest rate at which packets were lost, apart from that overflow.
    lost_at: Option<Rate>,
    repairs: Repairs,
    /// The end of the last epoch.
    since: Time,
    /// Time without a queue between the first overflow and the next loss, and the bytes delivered in that time.
    idle: Duration,
    delivered: Bytes,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Queued {
    /// A queue persisted throughout: our packets or cross traffic kept the bottleneck busy.
    pub throughout: bool,
    /// There was a queue in the epoch or shortly before.
    pub lately: bool,
}

impl UnusedCapacity {
    /// No observations yet. `kept`: the share of its highest rate that a transfer alone on a full path keeps.
    pub(crate) fn new(kept: f64, repairs: Repairs) -> UnusedCapacity {
        UnusedCapacity {
            kept,
            has_overflowed: false,
            highest: Rate::ZERO,
            lately: [Rate::ZERO; 2],
            lost_at: None,
            repairs,
            since: Time::ZERO,
            idle: Duration::ZERO,
            delivered: Bytes::ZERO,
        }
    }

    /// An epoch ended. `is_open`: only congestion control limited the sender.
    pub(crate) fn handle_epoch(&mut self, now: Time, epoch: &Epoch, queued: Queued, is_open: bool) {
        let lasted = now.since(self.since);
        self.since = now;
        if epoch.losses > 0 && !self.repairs.are_under_way() {
            self.handle_loss(queued.lately);
        }
        if !self.repairs.handle_epoch(epoch) && !epoch.stalled {
            self.lately = [self.lately[1], epoch.rate];
            // A single epoch may contain late data of the epoch before, or a sampling error.
            self.highest = self.highest.max(self.lately[0].min(self.lately[1]));
        }
        let is_counted = self.has_overflowed && self.lost_at.is_none();
        if is_counted && is_open && !epoch.stalled && !queued.throughout {
            self.idle += lasted;
            self.delivered += epoch.rate * lasted;
        }
    }

    fn handle_loss(&mut self, had_queue: bool) {
        if had_queue && !self.has_overflowed && self.lost_at.is_none() {
            self.has_overflowed = true;
        } else {
            let rate = self.lately[0].max(self.lately[1]);
            self.lost_at = Some(self.lost_at.map_or(rate, |lowest| lowest.min(rate)));
        }
    }

    /// The highest rate of two consecutive epochs, if the transfer seems to have been alone: after slow start, packets were
    /// lost only at about that rate. Losses at a lower rate are random, or cross traffic filled the buffer.
    pub(crate) fn capacity(&self) -> Option<Rate> {
        let is_full_at = |rate| rate >= self.highest.scaled(self.kept);
        (self.highest > Rate::ZERO && self.lost_at.is_none_or(is_full_at)).then_some(self.highest)
    }

    /// The bytes of capacity left unused while no queue stood, until the next loss.
    pub(crate) fn bytes(&self) -> Bytes {
        (self.highest.scaled(self.kept) * self.idle).saturating_sub(self.delivered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Queued = Queued { throughout: false, lately: true };
    const NONE: Queued = Queued { throughout: false, lately: false };

    /// Simulates epochs of 100 ms each: rate in Mbit/s, losses, queue.
    fn simulate(epochs: &[(u64, u64, Queued)]) -> UnusedCapacity {
        let mut unused = UnusedCapacity::new(0.9, Repairs::new(2));
        for (index, (rate, losses, queued)) in epochs.iter().enumerate() {
            let epoch = Epoch {
                rate: Rate::from_mbit_per_second(*rate),
                rtt: Duration::from_millis(40),
                highest_rtt: Duration::from_millis(40),
                average_rtt: Duration::from_millis(40),
                stalled: false,
                losses: *losses,
            };
            let now = Time::from_nanos((index as u64 + 1) * 100_000_000);
            unused.handle_epoch(now, &epoch, *queued, true);
        }
        unused
    }

    #[test]
    fn capacity_unused_after_a_halving_counts_until_the_next_loss() {
        let full = Some(Rate::from_mbit_per_second(100));
        let mut epochs = vec![(80, 0, NONE), (100, 9, SHORT)];
        epochs.extend([(50, 0, NONE); 20]);
        epochs.extend([(100, 0, SHORT), (100, 0, SHORT), (100, 1, SHORT)]);
        epochs.extend([(70, 0, NONE); 20]);
        let unused = simulate(&epochs);
        assert_eq!(unused.capacity(), full);
        // 90 less 50 Mbit/s for 2 s, less the excess above 90 of the three epochs at 100 Mbit/s.
        assert_eq!(unused.bytes(), Bytes::new(10_000_000 - 3 * 125_000));
    }

    #[test]
    fn data_delayed_into_the_next_epoch_does_not_raise_the_capacity() {
        let epochs = [(100, 0, NONE), (50, 0, NONE), (150, 0, NONE), (100, 0, NONE), (90, 0, NONE)];
        assert_eq!(simulate(&epochs).capacity(), Some(Rate::from_mbit_per_second(100)));
    }

    #[test]
    fn a_busy_path_leaves_no_unused_capacity() {
        let standing = Queued { throughout: true, lately: true };
        let mut epochs = vec![(100, 9, SHORT), (100, 0, standing), (100, 0, standing)];
        epochs.extend([(50, 0, standing); 20]);
        assert_eq!(simulate(&epochs).bytes(), Bytes::ZERO);
    }

    #[test]
    fn losses_at_lower_rates_reveal_cross_traffic() {
        let mut epochs = vec![(100, 0, NONE), (100, 0, NONE), (100, 9, SHORT)];
        epochs.extend([(50, 0, NONE); 5]);
        assert!(simulate(&epochs).capacity().is_some());
        epochs.push((50, 1, SHORT));
        assert_eq!(simulate(&epochs).capacity(), None);
    }

    #[test]
    fn a_loss_without_a_queue_is_not_an_overflow() {
        let mut epochs = vec![(100, 0, NONE), (100, 1, NONE)];
        epochs.extend([(50, 0, NONE); 20]);
        assert_eq!(simulate(&epochs).bytes(), Bytes::ZERO);
    }
}
