//! The cost of a wrong buffer: router-buffer §VII-D, eqs (19) and (20).

use super::optimum::{Best, BufferOptimum, optimum};
use super::per_flow::Router;
use crate::error::require;
use crate::packets::Packets;
use crate::{Result, TheoryError};
use sweetspot_statistics::roots;

/// Largest buffer considered, packets.
const MAX_BUFFER_PACKETS: f64 = 1e18;

// Router-buffer eq. (20): e = 1 - 2 w^(b/2) / (2 + b (w - 1)).
/// The share of throughput that long flows lose under a power law with decay `b`, if the buffer is
/// `omega` times the best one.
///
/// # Errors
/// If `omega` is not above zero, or `b` not above 0 and below 2: there is no best buffer.
pub fn long_power_law(b: f64, omega: f64) -> Result<f64> {
    require(b > 0.0 && b < 2.0, "b", b, "above 0 and below 2")?;
    require(omega.is_finite() && omega > 0.0, "omega", omega, "a finite number above zero")?;
    Ok(1.0 - 2.0 * libm::pow(omega, b / 2.0) / (2.0 + b * (omega - 1.0)))
}

// Router-buffer eq. (19): e = (R(B) - R(w B)) / R(B).
/// The share of throughput that `router`'s favoured flows lose, if the buffer is `omega` times the
/// best one.
///
/// # Errors
/// If `omega` is not above zero, or the best buffer is none or unbounded.
pub fn relative_error(router: &Router, omega: f64) -> Result<f64> {
    require(omega.is_finite() && omega > 0.0, "omega", omega, "a finite number above zero")?;
    let Best::At(best) = optimum(router)?.best else {
        let because = "the best buffer is none or unbounded, so no fraction of it is defined";
        return Err(TheoryError::NotCovered { because });
    };
    let highest = router.raw_throughput(best.get());
    Ok(1.0 - router.raw_throughput(omega * best.get()) / highest)
}

/// The buffers around the best one within which throughput stays high.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerance {
    /// The smallest buffer.
    pub low: Packets,
    /// The largest buffer; `None` if there is no upper end.
    pub high: Option<Packets>,
}

// Router-buffer eq. (19) solved for w on either side of 1.
/// The range around the best buffer within which favoured flows keep `share` of their best
/// throughput.
///
/// # Errors
/// If `share` is not above 0 and below 1, or the best buffer is unbounded.
pub fn tolerance(router: &Router, share: f64) -> Result<Tolerance> {
    require(share > 0.0 && share < 1.0, "share", share, "above 0 and below 1")?;
    let BufferOptimum { best, roots } = optimum(router)?;
    let start = match best {
        Best::Zero => 0.0,
        Best::At(buffer) => buffer.get(),
        Best::Unbounded => {
            let because = "throughput grows with the buffer without end, so there is no best";
            return Err(TheoryError::NotCovered { because });
        }
    };
    let enough = share * router.raw_throughput(start);
    let holds = |b: f64| router.raw_throughput(b) >= enough;

    let smallest = router.loss.smallest_buffer().get().min(start);
    let low = if holds(smallest) { smallest } else { roots::between(smallest, start, holds) };

    // Between two roots throughput is monotonic, so it suffices to check the roots and the range
    // beyond the last one.
    let mut from = start;
    for root in roots.iter().map(|r| r.buffer.get()).filter(|b| *b > start) {
        if !holds(root) {
            let high = Packets::new(roots::between(from, root, holds))?;
            return Ok(Tolerance { low: Packets::new(low)?, high: Some(high) });
        }
        from = root;
    }
    let high = roots::beyond(from, MAX_BUFFER_PACKETS, holds).map(Packets::new).transpose()?;
    Ok(Tolerance { low: Packets::new(low)?, high })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reno::s_model::ShortFlow;
    use crate::router::loss_form::LossForm;
    use crate::router::per_flow::{Favoured, RouterLink};
    use sweetspot_units::{Bytes, Duration, Rate};

    const PACKET: Bytes = Bytes::new(1500);

    fn router(loss: LossForm, favoured: Favoured) -> Router {
        let rate = Rate::from_mbit_per_second(50);
        let link = RouterLink::new(rate, Duration::from_millis(60), PACKET, 0.4).unwrap();
        Router { link, loss, favoured }
    }

    fn thirty() -> Favoured {
        Favoured::Short(ShortFlow::new(PACKET * 30, PACKET).unwrap())
    }

    #[test]
    fn equation_20_matches_a_hand_calculation() {
        // b = 1, w = 0.4: 1 - 2 * 0.632456 / 1.4 = 0.096492.
        assert!((long_power_law(1.0, 0.4).unwrap() - 0.096_492).abs() < 1e-6);
        // b = 0.5, w = 0.25: 1 - 2 * 0.707107 / 1.625 = 0.129715.
        assert!((long_power_law(0.5, 0.25).unwrap() - 0.129_715).abs() < 1e-6);
        assert_eq!(long_power_law(0.5, 1.0), Ok(0.0));
    }

    #[test]
    fn equation_20_equals_equation_19_and_is_independent_of_f_and_a() {
        let r = router(LossForm::power_law(0.2, 0.5).unwrap(), Favoured::Long);
        for omega in [0.25, 0.5, 1.0, 1.5, 1.75] {
            let (general, closed) = (relative_error(&r, omega), long_power_law(0.5, omega));
            assert!((general.unwrap() - closed.unwrap()).abs() < 1e-12);
        }
    }

    #[test]
    fn an_undersized_buffer_costs_more_than_an_oversized_one() {
        for favoured in [Favoured::Long, thirty()] {
            for b in [0.35, 0.5, 1.0] {
                let r = router(LossForm::power_law(0.2, b).unwrap(), favoured);
                for off in [0.25, 0.5, 0.75] {
                    let (less, more) =
                        (relative_error(&r, 1.0 - off), relative_error(&r, 1.0 + off));
                    assert!(less.unwrap() > more.unwrap());
                }
            }
        }
    }

    #[test]
    fn at_the_ends_of_the_range_throughput_equals_the_share() {
        let pl = LossForm::power_law(0.2, 0.5).unwrap();
        let ex = LossForm::exponential(0.3, 0.02).unwrap();
        let cases = [(pl, Favoured::Long), (pl, thirty()), (ex, thirty())];
        for (loss, favoured) in cases {
            let r = router(loss, favoured);
            let Best::At(best) = optimum(&r).unwrap().best else { panic!() };
            let range = tolerance(&r, 0.9).unwrap();
            let high = range.high.unwrap();
            assert!(range.low < best && best < high);
            for end in [range.low, high] {
                let left = r.raw_throughput(end.get()) / r.raw_throughput(best.get());
                assert!((left - 0.9).abs() < 1e-9, "{r:?} {end}");
            }
        }
    }

    #[test]
    fn without_an_optimum_above_zero_the_range_starts_at_zero() {
        // EX, long, b C T_o < 2 f: throughput falls from B = 0 to its minimum at 375 packets.
        let r = router(LossForm::exponential(0.05, 0.002).unwrap(), Favoured::Long);
        let range = tolerance(&r, 0.95).unwrap();
        assert_eq!(range.low, Packets::ZERO);
        assert!(range.high.unwrap().get() < 375.0);
        // If throughput never falls below the share, there is no upper end.
        assert_eq!(tolerance(&r, 0.5).unwrap().high, None);
        assert!(relative_error(&r, 0.5).is_err());
    }

    #[test]
    fn impossible_questions_are_rejected() {
        let r = router(LossForm::power_law(0.2, 0.5).unwrap(), Favoured::Long);
        assert!(tolerance(&r, 1.0).is_err());
        assert!(tolerance(&r, 0.0).is_err());
        assert!(relative_error(&r, 0.0).is_err());
        assert!(long_power_law(2.0, 0.5).is_err());
        assert!(long_power_law(1.0, f64::NAN).is_err());
        let steep = router(LossForm::power_law(0.2, 2.5).unwrap(), Favoured::Long);
        assert!(tolerance(&steep, 0.9).is_err());
    }
}
