use std::collections::BTreeMap;
use std::ops::Range;

/// Pieces that are holes, stored as runs: a run takes the same memory at any length.
#[derive(Debug, Clone, Default)]
pub(crate) struct HoleRuns {
    /// The end of each run, by its first piece. Runs do not touch.
    runs: BTreeMap<u32, u32>,
    count: u32,
}

impl HoleRuns {
    /// Adds the pieces in `range`, which is not empty.
    pub fn insert(&mut self, range: Range<u32>) {
        let (mut first, mut end) = (range.start, range.end);
        if let Some((before, its_end)) = self.run_from(first)
            && its_end >= first
        {
            first = before;
        }
        while let Some((next, its_end)) = self.runs.range(first..=end).next().map(|(f, e)| (*f, *e))
        {
            end = end.max(its_end);
            self.count -= its_end - next;
            self.runs.remove(&next);
        }
        self.count += end - first;
        self.runs.insert(first, end);
    }

    /// Removes a piece, which is no longer a hole.
    pub fn remove(&mut self, piece: u32) {
        let Some((first, end)) = self.run_from(piece).filter(|(_, end)| piece < *end) else {
            return;
        };
        self.count -= 1;
        if first < piece {
            self.runs.insert(first, piece);
        } else {
            self.runs.remove(&first);
        }
        if piece + 1 < end {
            self.runs.insert(piece + 1, end);
        }
    }

    /// Whether all pieces in `range`, which is not empty, are holes.
    pub fn cover(&self, range: Range<u32>) -> bool {
        self.run_from(range.start).is_some_and(|(_, end)| range.end <= end)
    }

    /// The last run that begins at `piece` or before.
    fn run_from(&self, piece: u32) -> Option<(u32, u32)> {
        self.runs.range(..=piece).next_back().map(|(first, end)| (*first, *end))
    }

    /// Number of pieces that are holes.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Number of runs.
    pub fn runs(&self) -> usize {
        self.runs.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Runs behave like a set of pieces after the same steps, and there are as few as possible.
        #[test]
        fn hole_runs_match_a_set_of_pieces(
            steps in proptest::collection::vec((0u32..60, 0u32..20), 0..40),
        ) {
            let (mut runs, mut set) = (HoleRuns::default(), BTreeSet::new());
            for (piece, length) in steps {
                if length == 0 {
                    runs.remove(piece);
                    set.remove(&piece);
                } else {
                    runs.insert(piece..piece + length);
                    set.extend(piece..piece + length);
                }
            }
            prop_assert_eq!(runs.count() as usize, set.len());
            let begins = |piece: &&u32| **piece == 0 || !set.contains(&(**piece - 1));
            prop_assert_eq!(runs.runs(), set.iter().filter(begins).count());
            for piece in 0..90 {
                for end in piece + 1..90 {
                    let all = (piece..end).all(|piece| set.contains(&piece));
                    prop_assert_eq!(runs.cover(piece..end), all);
                }
            }
        }
    }
}
