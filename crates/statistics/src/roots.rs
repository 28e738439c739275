//! Roots of a function on intervals where it changes sign once.

/// The point in `low..high` at which `side` changes, to the last bit, by bisection. `side` must
/// differ between `low` and `high`.
pub fn between(mut low: f64, mut high: f64, side: impl Fn(f64) -> bool) -> f64 {
    let at_low = side(low);
    loop {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            return high;
        }
        if side(middle) == at_low {
            low = middle;
        } else {
            high = middle;
        }
    }
}

/// The point above `low` at which `side` changes; `None` if there is none below `limit`.
pub fn beyond(low: f64, limit: f64, side: impl Fn(f64) -> bool) -> Option<f64> {
    let at_low = side(low);
    let mut step = low.abs().max(1e-6);
    let mut near = low;
    while near < limit {
        let far = (low + step).min(limit);
        if side(far) != at_low {
            return Some(between(near, far, side));
        }
        near = far;
        step *= 2.0;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bisection_finds_the_square_root_of_two() {
        let root = between(1.0, 2.0, |x| x * x < 2.0);
        assert!((root - core::f64::consts::SQRT_2).abs() < 1e-15);
        // Falling functions work, too.
        let root = between(1.0, 2.0, |x| 2.0 - x * x > 0.0);
        assert!((root - core::f64::consts::SQRT_2).abs() < 1e-15);
    }

    #[test]
    fn far_and_tiny_roots_are_found() {
        for wanted in [1e-5, 1.0, 12_345.0, 1e9, 1e17] {
            let root = beyond(0.0, 1e18, |x| x < wanted).unwrap();
            assert!((root / wanted - 1.0).abs() < 1e-12, "{root}");
        }
    }

    #[test]
    fn a_function_without_a_root_gives_none() {
        assert_eq!(beyond(0.0, 1e18, |_| true), None);
    }
}
