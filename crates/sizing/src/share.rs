//! Max-min fair shares: no connection gets more than its demand, and the others divide the rest equally
//! (Semke, Mahdavi and Mathis 1998, "Automatic TCP buffer tuning", section 3.2).

use sweetspot_units::Bytes;

/// Divides `total` into max-min fair shares. Returns one share for each of `demands`, in their order and
/// never larger than the demand.
///
/// ```
/// use sweetspot_sizing::share::max_min;
/// use sweetspot_units::Bytes;
///
/// // The first wants 10 of 100, which leaves 45 for each of the others.
/// let demands = [10, 80, 200].map(Bytes::new);
/// assert_eq!(max_min(Bytes::new(100), &demands), [10, 45, 45].map(Bytes::new));
/// ```
pub fn max_min(total: Bytes, demands: &[Bytes]) -> Vec<Bytes> {
    let mut order: Vec<usize> = (0..demands.len()).collect();
    order.sort_by_key(|&i| demands[i]);
    let mut shares = vec![Bytes::ZERO; demands.len()];
    let mut left = total;
    for (served, &i) in order.iter().enumerate() {
        // The smallest demands first: their unused shares raise the fair share of the others.
        let fair = left / (demands.len() - served) as u64;
        shares[i] = demands[i].min(fair);
        left -= shares[i];
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(numbers: &[u64]) -> Vec<Bytes> {
        numbers.iter().map(|n| Bytes::new(*n)).collect()
    }

    #[test]
    fn capacity_left_by_small_demands_goes_to_larger_ones() {
        // 100: the first wants 10, which leaves 90 for two: 45 each.
        assert_eq!(max_min(Bytes::new(100), &bytes(&[10, 80, 200])), bytes(&[10, 45, 45]));
        assert_eq!(max_min(Bytes::new(100), &bytes(&[10, 20])), bytes(&[10, 20]));
        assert_eq!(max_min(Bytes::new(100), &[]), vec![]);
    }

    proptest! {
        #[test]
        fn max_min_shares_are_feasible_efficient_and_envy_free(
            total in 0_u64..1_000_000,
            demands in prop::collection::vec(0_u64..500_000, 0..20),
        ) {
            let shares = max_min(Bytes::new(total), &bytes(&demands));
            let spent: u64 = shares.iter().map(|s| s.get()).sum();
            let demanded: u64 = demands.iter().sum();
            prop_assert!(spent <= total);
            // Rounding loses less than a byte per share.
            prop_assert!(spent + demands.len() as u64 >= total.min(demanded));
            let largest = shares.iter().map(|s| s.get()).max().unwrap_or(0);
            for (share, demand) in shares.iter().zip(&demands) {
                prop_assert!(share.get() <= *demand);
                // A connection with a smaller share than another got its whole demand, except for a byte.
                prop_assert!(share.get() == *demand || share.get() + 20 >= largest);
            }
        }
    }
}
