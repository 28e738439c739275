use std::collections::BTreeSet;

use sweetspot_units::{Duration, Time};

/// Resting sockets, sampled in turn.
#[derive(Default)]
pub(crate) struct SampleQueue {
    cookies: BTreeSet<u64>,
    /// The socket that was sampled last.
    last: u64,
    next_sample: Time,
}

impl SampleQueue {
    pub fn insert(&mut self, now: Time, cookie: u64) {
        if self.cookies.is_empty() {
            self.next_sample = now;
        }
        self.cookies.insert(cookie);
    }

    pub fn remove(&mut self, cookie: u64) {
        self.cookies.remove(&cookie);
    }

    /// The time of the next sample; `None`: there are no sockets.
    pub fn next_due(&self) -> Option<Time> {
        (!self.cookies.is_empty()).then_some(self.next_sample)
    }

    /// The sockets to sample now, at most this many in this interval.
    pub fn poll(&mut self, now: Time, (interval, max): (Duration, usize)) -> Vec<u64> {
        if self.next_due().is_none_or(|next_due| next_due > now) {
            return Vec::new();
        }
        self.next_sample = now + interval;
        let after = self.cookies.range(self.last.saturating_add(1)..);
        let wrapped = self.cookies.range(..=self.last);
        let turn: Vec<u64> = after.chain(wrapped).take(max).copied().collect();
        self.last = turn.last().copied().unwrap_or(self.last);
        turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_are_polled_in_turn_until_removed() {
        let mut queue = SampleQueue::default();
        let sampling = (Duration::from_millis(50), 2);
        assert_eq!((queue.next_due(), queue.poll(Time::ZERO, sampling)), (None, Vec::new()));
        [7, 3, 5].into_iter().for_each(|cookie| queue.insert(Time::ZERO, cookie));
        let mut now = Time::ZERO;
        let mut turn = |queue: &mut SampleQueue| -> Vec<u64> {
            let sampled = queue.poll(now, sampling);
            assert!(queue.poll(now, sampling).is_empty());
            now += sampling.0;
            sampled
        };
        assert_eq!(turn(&mut queue), vec![3, 5]);
        assert_eq!(turn(&mut queue), vec![7, 3]);
        queue.remove(5);
        assert_eq!(turn(&mut queue), vec![7, 3]);
        [3, 7].into_iter().for_each(|cookie| queue.remove(cookie));
        assert_eq!(queue.next_due(), None);
    }
}
