//! Router advice: the buffer for a router's link, its objective and range, and the results of other
//! rules.

mod advice;
mod buffers;
mod checked;
mod fit;
mod formulas;
mod json;
mod lines;
mod mix;
mod model;
mod plan;
mod show;
mod simulated;
mod size;
mod table;
mod two_rules;
mod warnings;

pub use advice::{Basis, BufferChoice, BufferRange, RouterAdvice, Rule, Source};
pub use fit::{LinkMeasurement, MeasuredBuffer};
pub use mix::{Favour, Mix};
pub use model::Parameters;
pub use plan::advise;
pub use simulated::{Simulated, SimulatedBuffer, SimulatedErrors, SimulatedRate};
pub use two_rules::TwoRules;

use sweetspot_units::{Bytes, Duration, Rate};

/// The link, its traffic and the objective.
#[derive(Debug, Clone, PartialEq)]
pub struct RouterQuestion {
    /// The output link's rate.
    pub rate: Rate,
    /// The flows' RTT without this link's queue (the harmonic mean, if they differ).
    pub rtt: Duration,
    /// The rate of the input links, or of the flows' bottleneck before this link.
    pub input_rate: Rate,
    /// The number of input links.
    pub inputs: Option<u64>,
    /// The number of flows active at a time.
    pub flows: Option<u64>,
    /// The share of the link in use at busy times, given ample buffer.
    pub load: Option<f64>,
    /// The mean size of a transfer, if the mix does not give it.
    pub size_mean: Option<Bytes>,
    /// The traffic's composition.
    pub mix: Mix,
    /// The objective: the flows or the delay to optimise for.
    pub favour: Favour,
    /// The buffer of the present device.
    pub available: Option<Bytes>,
    /// The packet size.
    pub packet: Bytes,
    /// Parameters of the loss form and the delay, if measured.
    pub parameters: Parameters,
    /// Measurements of the link; they override the capacity ratio, and explicit values override them.
    pub measurement: Option<LinkMeasurement>,
}

impl RouterQuestion {
    /// Whether loss or delay was measured on the link; a simulation does not use such measurements.
    pub fn is_measured(&self) -> bool {
        let p = &self.parameters;
        let given = [p.loss_a, p.loss_b, p.delay_f];
        self.measurement.is_some() || given.iter().any(Option::is_some)
    }

    /// Whether the link has spare capacity at busy times.
    pub(super) fn has_room(&self) -> bool {
        self.load.is_some_and(|load| load < 1.0)
    }

    /// The mean size of a transfer, if known.
    pub fn mean_size(&self) -> Option<Bytes> {
        self.size_mean.or_else(|| match &self.mix {
            Mix::Sizes(sizes) => {
                let sum: f64 = sizes.iter().map(|size| size.as_f64()).sum();
                Some(Bytes::from_f64(sum / sizes.len() as f64))
            }
            Mix::Short | Mix::Bulk => None,
        })
    }
}
