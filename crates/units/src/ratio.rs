/// `a b / c`, rounded down, without intermediate overflow; `u64::MAX` if the result does not fit.
/// `c` must not be zero.
///
/// A 128-bit division takes as long as ten 64-bit ones, so it is used only if 64 bits do not
/// suffice.
pub(crate) fn times_over(a: u64, b: u64, c: u64) -> u64 {
    match a.checked_mul(b) {
        Some(product) => product / c,
        None => {
            let ratio = u128::from(a) * u128::from(b) / u128::from(c);
            u64::try_from(ratio).unwrap_or(u64::MAX)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_and_wide_division_agree_at_the_boundary() {
        // 2^32 x 2^32 = 2^64 is the smallest product that does not fit into 64 bits.
        let half = 1_u64 << 32;
        assert_eq!(times_over(half, half - 1, half), half - 1);
        assert_eq!(times_over(half, half, half), half);
        assert_eq!(times_over(half, half + 1, 3), ((half as u128 * (half as u128 + 1)) / 3) as u64);
    }

    #[test]
    fn overflowing_results_saturate() {
        assert_eq!(times_over(u64::MAX, 2, 1), u64::MAX);
        assert_eq!(times_over(u64::MAX, u64::MAX, u64::MAX), u64::MAX);
    }
}
