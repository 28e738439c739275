use crate::svg;

/// Maps values to positions, linearly or logarithmically.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlotScale {
    /// The values at both ends.
    pub domain: (f64, f64),
    straight: svg::LinearScale,
    logarithmic: bool,
}

impl PlotScale {
    /// A scale over `domain`. A logarithmic scale needs a domain above zero; otherwise it is
    /// linear.
    pub fn new(domain: (f64, f64), range: (f64, f64), logarithmic: bool) -> PlotScale {
        let logarithmic = logarithmic && domain.0 > 0.0;
        let ends = if logarithmic { (domain.0.log10(), domain.1.log10()) } else { domain };
        PlotScale { domain, straight: svg::LinearScale::new(ends, range), logarithmic }
    }

    /// The position of `value`.
    pub fn at(&self, value: f64) -> f64 {
        let value = if self.logarithmic { value.max(f64::MIN_POSITIVE).log10() } else { value };
        self.straight.at(value)
    }

    /// The position of `value`, clamped to the ends of the scale.
    pub fn clamped(&self, value: f64) -> f64 {
        self.at(value.clamp(self.domain.0, self.domain.1.max(self.domain.0)))
    }

    /// Whether `value` is within the domain.
    pub fn holds(&self, value: f64) -> bool {
        (self.domain.0..=self.domain.1).contains(&value)
    }

    /// Round values inside the domain, about `count` of them.
    pub fn ticks(&self, count: usize) -> Vec<f64> {
        if !self.logarithmic {
            return self.straight.ticks(count);
        }
        let (low, high) = self.domain;
        let decades = (high / low).log10();
        // One, two and five of each decade if there are few decades, otherwise only the decades.
        let steps: &[f64] = if decades < count as f64 / 2.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let first = low.log10().floor() as i32;
        let last = high.log10().ceil() as i32;
        let all = (first..=last)
            .flat_map(|power| steps.iter().map(move |step| step * 10_f64.powi(power)));
        all.filter(|tick| *tick >= low * 0.999 && *tick <= high * 1.001).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_ratios_are_equal_distances_on_a_logarithmic_scale() {
        let scale = PlotScale::new((1.0, 100.0), (0.0, 200.0), true);
        assert_eq!([1.0, 10.0, 100.0].map(|v| scale.at(v)), [0.0, 100.0, 200.0]);
        assert_eq!(scale.ticks(5), [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]);
        assert_eq!(PlotScale::new((1.0, 1e6), (0.0, 1.0), true).ticks(5).len(), 7);
    }

    #[test]
    fn a_logarithmic_scale_from_zero_falls_back_to_linear() {
        assert_eq!(PlotScale::new((0.0, 10.0), (0.0, 100.0), true).at(5.0), 50.0);
    }
}
