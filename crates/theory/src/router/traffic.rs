//! Predicts the parameters a, b and f of an unmeasured link from quantities that its operator can measure. A regression over
//! simulated links replaces the "typical values" of router-buffer §VII-A.

use super::capacity_ratio::Form;
use super::coefficients::COEFFICIENTS;
use super::loss_form::LossForm;
use super::{FEATURES, PARAMETERS};
use crate::Result;
use crate::error::require;
use crate::packets::Packets;

/// Quantities of a link and its traffic that an operator can measure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Traffic {
    /// C_out / C_in.
    pub gamma: f64,
    /// Shape of the transfer sizes' Pareto tail.
    pub tail_index: f64,
    /// Share of the capacity in use at busy times with an ample buffer, 0 to 1.
    pub load: f64,
    /// Number of simultaneously active flows, with a buffer of about C T_o.
    pub flows: f64,
    /// C T_o.
    pub bdp: Packets,
    /// Mean size of a transfer, packets.
    pub size: f64,
}

/// A quantity of [`Traffic`] outside of the regression's training range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outside {
    /// The quantity's name.
    pub quantity: &'static str,
    /// Its value.
    pub given: f64,
    /// The smallest value in the training range.
    pub low: f64,
    /// The largest value in the training range.
    pub high: f64,
}

/// The regression's prediction for a link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction {
    /// p = a B^-b.
    pub power_law: LossForm,
    /// p = a e^(-bB).
    pub exponential: LossForm,
    /// f of d = f B / C.
    pub delay_slope: f64,
    /// Utilisation of the link as a function of the buffer.
    pub utilisation: Utilisation,
}

/// Link utilisation as a function of the buffer: u(B) = u / (1 + e^-h B^-k); u is the value with ample buffer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Utilisation {
    /// u.
    pub max: f64,
    /// h: with a buffer of one packet, the utilisation is u / (1 + e^-h).
    pub level: f64,
    /// k.
    pub slope: f64,
}

/// The smallest and largest simulated value of each quantity.
const RANGES: [(&str, f64, f64); 6] = [
    ("C_out / C_in", 0.05, 18.5),
    ("tail index", 1.15, 2.2),
    ("load", 0.5, 1.0),
    ("flows per packet of C x T", 0.04, 3.6),
    ("C x T in packets", 16.0, 1050.0),
    ("packets of a mean transfer", 20.0, 200.0),
];

impl Traffic {
    /// The quantities in the order of `RANGES`.
    fn quantities(&self) -> [f64; 6] {
        let bdp = self.bdp.get();
        [self.gamma, self.tail_index, self.load, self.flows / bdp, bdp, self.size]
    }

    /// Inputs outside the regression's range, which it clamps to the edge.
    pub fn outside(&self) -> Vec<Outside> {
        let all = self.quantities().into_iter().zip(RANGES);
        all.filter(|(given, (_, low, high))| given < low || given > high)
            .map(|(given, (quantity, low, high))| Outside { quantity, given, low, high })
            .collect()
    }

    /// The ratio between the quantity farthest outside of the regression's range and the range's edge; 1 if all are within.
    pub fn distance(&self) -> f64 {
        let far = |o: Outside| (o.given / o.high).max(o.low / o.given);
        self.outside().into_iter().map(far).fold(1.0, f64::max)
    }

    /// The features in which the regression is linear, after limiting each quantity to its range.
    pub fn features(&self) -> [f64; FEATURES] {
        let mut within = self.quantities();
        for (value, (_, low, high)) in within.iter_mut().zip(RANGES) {
            *value = value.clamp(low, high);
        }
        let [gamma, tail, load, flows, bdp, size] = within;
        let [gamma, flows, bdp, size] = [gamma, flows, bdp, size].map(libm::log);
        [
            1.0,
            gamma,
            tail,
            flows,
            bdp,
            load,
            size,
            flows * flows,
            gamma * gamma,
            bdp * flows,
            flows * load,
            gamma * tail,
            flows * gamma,
        ]
    }

    /// The regression's prediction for this link. Beyond its largest C T_o, buffers count as shares of C T_o.
    ///
    /// # Errors
    /// If a quantity is not a finite number above zero.
    pub fn predict(&self) -> Result<Prediction> {
        for (value, (name, ..)) in self.quantities().into_iter().zip(RANGES) {
            require(value.is_finite() && value > 0.0, name, value, "a finite number above zero")?;
        }
        let features = self.features();
        let mut parameters = [0.0; PARAMETERS];
        for (parameter, coefficients) in parameters.iter_mut().zip(COEFFICIENTS) {
            *parameter = features.iter().zip(coefficients).map(|(x, c)| x * c).sum();
        }
        self.prediction(&parameters)
    }

    /// The prediction for these parameters of the regression.
    ///
    /// # Errors
    /// If a parameter is not a number.
    pub fn prediction(&self, parameters: &[f64; PARAMETERS]) -> Result<Prediction> {
        let [log_a, log_b, ex_log_a, ex_log_b, logit_f, level, log_k] = *parameters;
        let bdp = self.bdp.get();
        // The size of this link's packets, in packets at the edge of the range.
        let (_, low, high) = RANGES[4];
        let log_share = libm::log(bdp.clamp(low, high) / bdp);
        let (b, k) = (libm::exp(log_b), libm::exp(log_k));
        // The exponential's factor is the loss without a buffer, at most 1.
        let ex_a = libm::exp(ex_log_a).min(1.0);
        Ok(Prediction {
            power_law: LossForm::power_law(libm::exp(log_a - b * log_share), b)?,
            exponential: LossForm::exponential(ex_a, libm::exp(ex_log_b) / bdp)?,
            delay_slope: 1.0 / (1.0 + libm::exp(-logit_f)),
            utilisation: Utilisation {
                max: self.load.min(1.0),
                level: level + k * log_share,
                slope: k,
            },
        })
    }
}

impl Prediction {
    /// The loss of `form`.
    pub fn loss(&self, form: Form) -> LossForm {
        match form {
            Form::PowerLaw => self.power_law,
            Form::Exponential => self.exponential,
        }
    }
}

impl Utilisation {
    /// Share of the capacity in use with `buffer`.
    pub fn at(&self, buffer: Packets) -> f64 {
        let odds = libm::exp(self.level) * libm::pow(buffer.get(), self.slope);
        self.max * odds / (1.0 + odds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper's N_in = 20, U = 100.
    fn paper() -> Traffic {
        Traffic {
            gamma: 0.1,
            tail_index: 1.5,
            load: 0.99,
            flows: 80.0,
            bdp: Packets::new(250.0).unwrap(),
            size: 53.3,
        }
    }

    #[test]
    fn the_papers_link_has_roughly_the_papers_typical_parameters() {
        // §VII-A: "typical values for b and f are around 0.5 and 0.4".
        let found = paper().predict().unwrap();
        let (b, f) = (found.power_law.b(), found.delay_slope);
        assert!((0.3..0.7).contains(&b) && (0.3..0.65).contains(&f), "b = {b}, f = {f}");
    }

    #[test]
    fn more_buffer_lowers_loss_and_raises_utilisation() {
        for gamma in [0.05, 0.3, 1.0, 3.0, 20.0] {
            let found = Traffic { gamma, ..paper() }.predict().unwrap();
            let at = |b| {
                let buffer = Packets::new(b).unwrap();
                (found.power_law.loss(buffer).unwrap(), found.utilisation.at(buffer))
            };
            let ((less, unused), (more, used)) = (at(10.0), at(250.0));
            assert!(more < less && unused < used && used <= 0.99, "Gamma = {gamma}");
        }
    }

    #[test]
    fn beyond_the_range_the_edge_applies_with_buffers_scaled_to_the_bdp() {
        let edge = Traffic { bdp: Packets::new(1050.0).unwrap(), flows: 210.0, ..paper() };
        let far = Traffic { bdp: Packets::new(105_000.0).unwrap(), flows: 21_000.0, ..paper() };
        assert!(edge.outside().is_empty());
        let outside = far.outside();
        assert_eq!((outside.len(), outside[0].quantity), (1, "C x T in packets"));
        // 105,000 / 1050; and on the other side 20 / 4 packets of a transfer.
        assert_eq!((edge.distance(), far.distance()), (1.0, 100.0));
        assert_eq!(Traffic { size: 4.0, ..edge }.distance(), 5.0);
        let (edge, far) = (edge.predict().unwrap(), far.predict().unwrap());
        let of = |p: &Prediction, b: f64| {
            let buffer = Packets::new(b).unwrap();
            let loss = |form: Form| p.loss(form).loss(buffer).unwrap().get();
            [loss(Form::PowerLaw), loss(Form::Exponential), p.utilisation.at(buffer)]
        };
        for (one, other) in of(&edge, 525.0).into_iter().zip(of(&far, 52_500.0)) {
            assert!((one / other - 1.0).abs() < 1e-9, "{one} {other}");
        }
    }

    #[test]
    fn a_link_without_flows_is_rejected() {
        assert!(Traffic { flows: 0.0, ..paper() }.predict().is_err());
        assert!(Traffic { load: f64::NAN, ..paper() }.predict().is_err());
    }
}
