use crate::segment::Run;

/// A set of packet numbers kept as disjoint runs in order: packets that arrived out of order (receiver) or were selectively
/// acknowledged (sender).
#[derive(Debug, Clone, Default)]
pub(crate) struct Runs {
    runs: Vec<Run>,
    count: u64,
}

impl Runs {
    /// Adds `new` and returns how many of its packets were not yet in the set.
    pub(crate) fn insert(&mut self, new: Run) -> u64 {
        if new.is_empty() {
            return 0;
        }
        // The usual case: after all other runs, or extending the last one.
        match self.runs.last_mut() {
            None => self.runs.push(new),
            Some(last) if new.start > last.end => self.runs.push(new),
            Some(last) if new.start == last.end => last.end = new.end,
            Some(_) => return self.merge(new),
        }
        self.count += new.len();
        new.len()
    }

    fn merge(&mut self, new: Run) -> u64 {
        // Runs that touch `new` are between those that end before it and those that start after it.
        let from = self.runs.partition_point(|run| run.end < new.start);
        let to = self.runs.partition_point(|run| run.start <= new.end);
        let touched = &self.runs[from..to];
        let held: u64 = touched.iter().map(|run| run.len()).sum();
        let merged = Run {
            start: touched.first().map_or(new.start, |run| run.start.min(new.start)),
            end: touched.last().map_or(new.end, |run| run.end.max(new.end)),
        };
        self.runs.splice(from..to, [merged]);
        self.count += merged.len() - held;
        merged.len() - held
    }

    /// Removes all numbers below `number` and returns how many there were.
    pub(crate) fn remove_below(&mut self, number: u64) -> u64 {
        let mut removed = 0;
        let below = self.runs.partition_point(|run| run.end <= number);
        for run in self.runs.drain(..below) {
            removed += run.len();
        }
        if let Some(first) = self.runs.first_mut()
            && first.start < number
        {
            removed += number - first.start;
            first.start = number;
        }
        self.count -= removed;
        removed
    }

    pub(crate) fn holding(&self, number: u64) -> Option<Run> {
        let at = self.runs.partition_point(|run| run.end <= number);
        self.runs.get(at).copied().filter(|run| run.holds(number))
    }

    /// The first number from `number` on that is not in the set.
    pub(crate) fn first_missing(&self, number: u64) -> u64 {
        self.holding(number).map_or(number, |run| run.end)
    }

    /// The number of packets below `number` in the set.
    pub(crate) fn count_below(&self, number: u64) -> u64 {
        self.runs
            .iter()
            .take_while(|run| run.start < number)
            .map(|run| run.end.min(number) - run.start)
            .sum()
    }

    /// The `n`-th highest number of the set, counted from 1.
    pub(crate) fn nth_highest(&self, n: u64) -> Option<u64> {
        let mut left = n;
        for run in self.runs.iter().rev() {
            if run.len() >= left {
                return Some(run.end - left);
            }
            left -= run.len();
        }
        None
    }

    /// One past the highest number of the set; 0 if the set is empty.
    pub(crate) fn end(&self) -> u64 {
        self.runs.last().map_or(0, |run| run.end)
    }

    /// The highest number below `number` that is not in the set.
    pub(crate) fn last_missing_below(&self, number: u64) -> Option<u64> {
        let last = number.checked_sub(1)?;
        self.holding(last).map_or(Some(last), |run| run.start.checked_sub(1))
    }

    /// The number of packets in the set.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.runs.clear();
        self.count = 0;
    }

    /// The runs, lowest first.
    #[cfg(test)]
    pub(crate) fn as_slice(&self) -> &[Run] {
        &self.runs
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn runs_behave_like_a_btree_set(
            steps in prop::collection::vec((0u64..60, 0u64..8, any::<bool>()), 1..60),
        ) {
            let (mut runs, mut oracle) = (Runs::default(), BTreeSet::new());
            for (start, len, remove) in steps {
                if remove {
                    let below = oracle.iter().filter(|n| **n < start).count() as u64;
                    oracle.retain(|n| *n >= start);
                    prop_assert_eq!(runs.remove_below(start), below);
                } else {
                    let new = (start..start + len).filter(|n| oracle.insert(*n)).count() as u64;
                    prop_assert_eq!(runs.insert(Run { start, end: start + len }), new);
                }
                prop_assert_eq!(runs.count(), oracle.len() as u64);
                prop_assert_eq!(runs.is_empty(), oracle.is_empty());
                prop_assert_eq!(runs.nth_highest(3), oracle.iter().rev().nth(2).copied());
                prop_assert_eq!(runs.end(), oracle.last().map_or(0, |n| n + 1));
                for n in 0..70 {
                    prop_assert_eq!(runs.holding(n).is_some(), oracle.contains(&n));
                    prop_assert_eq!(runs.count_below(n), oracle.range(..n).count() as u64);
                    let missing = (n..).find(|m| !oracle.contains(m));
                    prop_assert_eq!(Some(runs.first_missing(n)), missing);
                    let missing = (0..n).rev().find(|m| !oracle.contains(m));
                    prop_assert_eq!(runs.last_missing_below(n), missing);
                }
                let gaps = runs.as_slice().windows(2).all(|w| w[0].end < w[1].start);
                prop_assert!(gaps, "runs touch: {:?}", runs);
            }
        }
    }
}
