/// Counts of whole numbers by size, in bounded memory. Numbers below 2^`BITS` have their own bins. Above, each power of two is
/// divided into 2^`BITS` bins, so a number is known to one part in 2^`BITS`.
#[derive(Debug, Clone, Default)]
pub struct Histogram<const BITS: u32> {
    /// The bins that are not empty, in order.
    bins: Vec<(u16, u64)>,
    /// Index of the bin counted last: the next number is usually in the same bin or near it.
    latest: usize,
    total: u64,
    sum: u128,
    /// The minimum and the maximum.
    range: Option<(u64, u64)>,
}

/// Equal if the same numbers were counted, in any order.
impl<const BITS: u32> PartialEq for Histogram<BITS> {
    fn eq(&self, other: &Histogram<BITS>) -> bool {
        self.bins == other.bins && self.sum == other.sum && self.range == other.range
    }
}

impl<const BITS: u32> Eq for Histogram<BITS> {}

impl<const BITS: u32> Histogram<BITS> {
    /// An empty histogram with capacity for all bins, so that counting never allocates.
    pub fn with_room() -> Histogram<BITS> {
        let bins = Vec::with_capacity(usize::from(bin(u64::MAX, BITS)) + 1);
        Histogram { bins, ..Histogram::default() }
    }

    /// Counts `value`, `weight` times.
    #[inline]
    pub fn add(&mut self, value: u64, weight: u64) {
        let bin = bin(value, BITS);
        match self.bins.get_mut(self.latest) {
            Some((latest, count)) if *latest == bin => *count += weight,
            _ => self.add_elsewhere(bin, weight),
        }
        self.total += weight;
        self.sum += u128::from(value) * u128::from(weight);
        let (min, largest) = self.range.unwrap_or((value, value));
        self.range = Some((min.min(value), largest.max(value)));
    }

    fn add_elsewhere(&mut self, bin: u16, weight: u64) {
        // If no bin between the two is empty, their difference gives the index.
        let latest = self.bins.get(self.latest).map_or(0, |(latest, _)| usize::from(*latest));
        let near = (self.latest + usize::from(bin)).wrapping_sub(latest);
        self.latest = match self.bins.get(near) {
            Some((found, _)) if *found == bin => near,
            _ => self.bins.partition_point(|(other, _)| *other < bin),
        };
        match self.bins.get_mut(self.latest) {
            Some((found, count)) if *found == bin => *count += weight,
            _ => self.bins.insert(self.latest, (bin, weight)),
        }
    }

    /// The number of values counted.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The exact mean, rounded down; `None` if nothing was counted.
    pub fn mean(&self) -> Option<u64> {
        self.sum.checked_div(u128::from(self.total)).map(|mean| mean as u64)
    }

    /// The exact minimum.
    pub fn min(&self) -> Option<u64> {
        self.range.map(|(min, _)| min)
    }

    /// The exact maximum.
    pub fn largest(&self) -> Option<u64> {
        self.range.map(|(_, largest)| largest)
    }

    /// The smallest number that a `share` of all values does not exceed (0.5: the median); `None` if nothing was counted. It is
    /// the middle of the number's bin, but never outside the minimum and maximum.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let (min, largest) = self.range?;
        Some(self.quantile_bin(share)?.middle().clamp(min, largest))
    }

    /// The bin that contains [`Histogram::quantile`].
    pub fn quantile_bin(&self, share: f64) -> Option<HistogramBin> {
        let rank = (share * self.total as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        self.bins.iter().find_map(|(bin, count)| {
            seen += count;
            (seen >= rank).then(|| HistogramBin::numbered(*bin, BITS))
        })
    }

    /// The number of values up to `value`, to the resolution of the bins.
    pub fn at_most(&self, value: u64) -> u64 {
        let last = bin(value, BITS);
        self.bins.iter().take_while(|(bin, _)| *bin <= last).map(|(_, count)| count).sum()
    }

    /// Adds the counts of `other`.
    pub fn extend(&mut self, other: &Histogram<BITS>) {
        other.bins.iter().for_each(|(bin, count)| self.add_elsewhere(*bin, *count));
        self.total += other.total;
        self.sum += other.sum;
        let ends = [self.range, other.range].into_iter().flatten();
        self.range = ends.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    }

    /// The middles and counts of the nonempty bins, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.bins.iter().map(|(bin, count)| (HistogramBin::numbered(*bin, BITS).middle(), *count))
    }
}

/// The numbers of one bin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct HistogramBin {
    /// The smallest number.
    pub min: u64,
    /// The largest number.
    pub largest: u64,
}

impl HistogramBin {
    /// The bin of `value` in a [`Histogram`] with this many `BITS`.
    pub fn of<const BITS: u32>(value: u64) -> HistogramBin {
        HistogramBin::numbered(bin(value, BITS), BITS)
    }

    /// The middle number; of two, the upper one.
    pub fn middle(self) -> u64 {
        self.min + (self.largest - self.min).div_ceil(2)
    }

    fn numbered(bin: u16, bits: u32) -> HistogramBin {
        let bin = u64::from(bin);
        let shift = (bin >> bits).saturating_sub(1);
        let min = (bin - (shift << bits)) << shift;
        HistogramBin { min, largest: min + ((1 << shift) - 1) }
    }
}

/// A bin's index: the leading bits of `value`, and the number of bits after them.
fn bin(value: u64, bits: u32) -> u16 {
    let shift = value.checked_ilog2().unwrap_or(0).saturating_sub(bits);
    (shift << bits) as u16 + (value >> shift) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn nearest_rank(sorted: &[u64], share: f64) -> u64 {
        sorted[(share * sorted.len() as f64).ceil().max(1.0) as usize - 1]
    }

    #[test]
    fn the_median_of_1_to_100_is_50() {
        let mut h = Histogram::<5>::default();
        (1..=100).for_each(|n| h.add(n, 1));
        // The bin of 50 contains only 50 (32 to 63 have one bin each).
        assert_eq!(h.quantile(0.5), Some(50));
        assert_eq!(h.quantile(0.0), Some(1));
        assert_eq!(Histogram::<5>::default().quantile(0.5), None);
    }

    /// 80,000 is between 79,872 and 81,920; the middle of that bin is another number.
    #[test]
    fn no_quantile_lies_outside_the_recorded_values() {
        let mut histogram = Histogram::<5>::default();
        histogram.add(80_000, 3);
        assert_eq!(histogram.quantile(0.5), Some(80_000));
        histogram.add(70_000, 1);
        assert_eq!(histogram.quantile(1.0), Some(80_000));
    }

    #[test]
    fn quantiles_of_a_uniform_distribution_are_accurate() {
        let mut histogram = Histogram::<7>::default();
        (1..=1000).for_each(|ms| histogram.add(ms * 1_000_000, 1));
        // The 990th of 1 ... 1000 ms is 990 ms.
        let p99 = histogram.quantile_bin(0.99).unwrap().middle();
        assert!(p99.abs_diff(990_000_000) < 9_900_000, "{p99}");
        assert_eq!(histogram.mean(), Some(500_500_000));
        assert_eq!(Histogram::<7>::default().mean(), None);
    }

    #[test]
    fn a_preallocated_histogram_never_reallocates() {
        let mut histogram = Histogram::<4>::with_room();
        let room = histogram.bins.capacity();
        let numbers =
            (0..64).flat_map(|n| (0..16).map(move |m| (1_u64 << n) + ((1 << n) / 16) * m));
        numbers.chain([0, u64::MAX]).for_each(|number| histogram.add(number, 1));
        assert_eq!(histogram.bins.capacity(), room);
    }

    proptest! {
        /// The middle of a bin differs by at most half a bin: one part in 2^6 with five bits, in 2^8 with seven.
        #[test]
        fn every_value_lies_in_its_bin_and_near_its_middle(value: u64, shift in 0..64) {
            let value = value >> shift;
            let coarse = HistogramBin::of::<4>(value);
            let finer = [(HistogramBin::of::<5>(value), 64), (HistogramBin::of::<7>(value), 256)];
            for (bin, parts) in finer.into_iter().chain([(coarse, 32)]) {
                prop_assert!((bin.min..=bin.largest).contains(&value));
                prop_assert!(bin.middle().abs_diff(value) <= value / parts);
            }
            let before = coarse.min.checked_sub(1);
            prop_assert!(before.is_none_or(|last| HistogramBin::of::<4>(last).largest == last));
        }

        /// Compares with sorting and picking.
        #[test]
        fn quantiles_match_those_of_the_sorted_values(
            values in proptest::collection::vec(10_000u64..10_000_000_000, 1..200),
            cut in 0usize..200,
        ) {
            let (mut combined, mut parts) = (Histogram::<7>::default(), [(); 2].map(|()| Histogram::<7>::default()));
            for (i, value) in values.iter().enumerate() {
                combined.add(*value, 1);
                parts[usize::from(i < cut)].add(*value, 1);
            }
            let [mut joined, rest] = parts;
            joined.extend(&rest);
            let mut sorted = values.clone();
            sorted.sort_unstable();
            prop_assert_eq!(combined.min(), Some(sorted[0]));
            for share in [0.0, 0.5, 0.9, 0.99, 1.0] {
                let (expected, found) = (nearest_rank(&sorted, share), combined.quantile(share).unwrap());
                prop_assert!(found.abs_diff(expected) as f64 <= 0.004 * expected as f64);
                let bin = combined.quantile_bin(share).unwrap();
                prop_assert!((bin.min..=bin.largest).contains(&expected));
                prop_assert_eq!(joined.quantile(share), Some(found));
            }
            prop_assert_eq!(joined.mean(), combined.mean());
            let at_most = sorted.iter().filter(|value| **value <= sorted[0]).count() as u64;
            prop_assert!(combined.at_most(sorted[0]) >= at_most);
            prop_assert_eq!(combined.at_most(u64::MAX), sorted.len() as u64);
        }
    }
}
