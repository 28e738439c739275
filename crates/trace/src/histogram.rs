use std::collections::BTreeMap;

/// Counts of values by size, each kept to 3 %, in memory that does not grow with their number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    /// By [`bin`]; a connection's values lie in few of them.
    counts: BTreeMap<u16, u64>,
    total: u64,
    /// The least value and the largest.
    range: Option<(u64, u64)>,
}

/// Bins per doubling, as a power of two.
const FINENESS: u32 = 5;

impl Histogram {
    /// Counts `value`, `weight` times.
    pub fn add(&mut self, value: u64, weight: u64) {
        *self.counts.entry(bin(value)).or_default() += weight;
        self.total += weight;
        let (least, most) = self.range.unwrap_or((value, value));
        self.range = Some((least.min(value), most.max(value)));
    }

    /// How many were counted.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The least value counted, exactly.
    pub fn least(&self) -> Option<u64> {
        self.range.map(|(least, _)| least)
    }

    /// The largest value counted, exactly.
    pub fn largest(&self) -> Option<u64> {
        self.range.map(|(_, largest)| largest)
    }

    /// The least value that `share` of all do not exceed (0.5: the median), if there are any.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let wanted = (self.total as f64 * share).ceil().max(1.0) as u64;
        let (least, most) = self.range?;
        let mut seen = 0;
        self.counts.iter().find_map(|(bin, count)| {
            seen += count;
            (seen >= wanted).then(|| middle(*bin).clamp(least, most))
        })
    }

    /// Each bin's middle and count, from the smallest on.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.counts.iter().map(|(bin, count)| (middle(*bin), *count))
    }
}

/// Small values have a bin each; above, each doubling has 32.
pub(crate) fn bin(value: u64) -> u16 {
    let exponent = value.checked_ilog2().unwrap_or(0);
    match exponent.checked_sub(FINENESS) {
        None => value as u16,
        // Between 32 and 63: the leading bit and the five behind it.
        Some(shift) => (shift << FINENESS) as u16 + (value >> shift) as u16,
    }
}

pub(crate) fn middle(bin: u16) -> u64 {
    let bin = u64::from(bin);
    match (bin >> FINENESS).checked_sub(1) {
        None | Some(0) => bin,
        Some(shift) => {
            let least = (bin - (shift << FINENESS)) << shift;
            least + (1 << (shift - 1))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_comes_back_within_two_per_cent() {
        for value in (0..60).flat_map(|n| [1_u64 << n, (1 << n) + (1 << n) / 3, (2 << n) - 1]) {
            let back = middle(bin(value));
            assert!(back.abs_diff(value) as f64 <= 0.016 * value as f64, "{value} {back}");
        }
    }

    #[test]
    fn the_median_of_one_to_hundred_is_fifty() {
        let mut h = Histogram::default();
        (1..=100).for_each(|n| h.add(n, 1));
        // The bin of 50 holds 50 alone (32 to 63 have a bin each).
        assert_eq!(h.quantile(0.5), Some(50));
        assert_eq!(h.quantile(0.0), Some(1));
        assert_eq!(Histogram::default().quantile(0.5), None);
    }

    /// 80,000 lies between 79,872 and 81,920; the middle is another number.
    #[test]
    fn no_quantile_lies_outside_of_what_was_counted() {
        let mut histogram = Histogram::default();
        histogram.add(80_000, 3);
        assert_eq!(histogram.quantile(0.5), Some(80_000));
        histogram.add(70_000, 1);
        assert_eq!(histogram.quantile(1.0), Some(80_000));
    }
}
