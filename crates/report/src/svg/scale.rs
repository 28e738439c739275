/// A linear map from values to positions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinearScale {
    /// The values at both ends.
    pub domain: (f64, f64),
    /// The positions of both ends, in SVG units.
    pub range: (f64, f64),
}

impl LinearScale {
    /// A scale over `domain`; an empty domain is widened to a length of one.
    pub fn new(domain: (f64, f64), range: (f64, f64)) -> LinearScale {
        let (low, high) = domain;
        LinearScale { domain: (low, if high > low { high } else { low + 1.0 }), range }
    }

    /// The position of `value`.
    pub fn at(&self, value: f64) -> f64 {
        let ((v0, v1), (p0, p1)) = (self.domain, self.range);
        p0 + (value - v0) / (v1 - v0) * (p1 - p0)
    }

    /// Round values inside the domain, about `count` of them: multiples of 1, 2 or 5 times a
    /// power of ten.
    pub fn ticks(&self, count: usize) -> Vec<f64> {
        let (low, high) = self.domain;
        let rough = (high - low) / count.max(1) as f64;
        let power = 10_f64.powf(rough.log10().floor());
        let step = match rough / power {
            r if r <= 1.0 => power,
            r if r <= 2.0 => 2.0 * power,
            r if r <= 5.0 => 5.0 * power,
            _ => 10.0 * power,
        };
        // A small tolerance, so that rounding does not lose a tick at the very end.
        let first = (low / step - 1e-9).ceil() as i64;
        let last = (high / step + 1e-9).floor() as i64;
        (first..=last).map(|n| n as f64 * step).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers_inside_the_domain() {
        // 100 / 5 = 20 apart.
        let scale = LinearScale::new((0.0, 100.0), (0.0, 1.0));
        assert_eq!(scale.ticks(5), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        // 17.4 / 6 = 2.9, so 5 apart.
        assert_eq!(LinearScale::new((0.0, 17.4), (0.0, 1.0)).ticks(6), [0.0, 5.0, 10.0, 15.0]);
    }

    #[test]
    fn an_empty_domain_still_has_a_scale() {
        assert_eq!(LinearScale::new((3.0, 3.0), (0.0, 10.0)).at(3.5), 5.0);
    }
}
