//! The loss form and the delay for a link, with the paper's parameters where none were measured.

use sweetspot_theory::Packets;
use sweetspot_theory::router::capacity_ratio::{CapacityRatio, Form};
use sweetspot_theory::router::loss_form::LossForm;
use sweetspot_theory::router::per_flow::Link;

use super::Question;
use crate::AdviceError;

/// Parameters as given; `None` where the paper's are to be used.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Parameters {
    /// The factor a of the loss form.
    pub loss_a: Option<f64>,
    /// The decay b of the loss form.
    pub loss_b: Option<f64>,
    /// The share f of the buffer that is full on average.
    pub delay_f: Option<f64>,
    /// The Pareto tail index of the transfer sizes.
    pub tail_index: Option<f64>,
}

/// Router-buffer §VII-A: typical values under a power law.
const TYPICAL_B: f64 = 0.5;
const TYPICAL_F: f64 = 0.4;
/// Router-buffer prints no a. This one gives Table II's 47 packets for its flow of 30 packets at
/// a bandwidth-delay product of 250, with the typical b and f.
const FACTOR_OF_TABLE_2: f64 = 0.186;
/// Router-buffer §III-A: the tail index of its transfers, "realistic" beside traces.
const TYPICAL_TAIL: f64 = 1.5;

pub(super) struct Model {
    pub ratio: CapacityRatio,
    pub form: Form,
    pub link: Link,
    /// `None` under an exponential whose parameters were not measured: the paper prints none.
    pub loss: Option<LossForm>,
}

impl Model {
    pub(super) fn new(q: &Question) -> Result<Model, AdviceError> {
        let p = &q.parameters;
        let ratio = CapacityRatio::new(q.rate, q.input_rate)?;
        let form = ratio.form(p.tail_index.unwrap_or(TYPICAL_TAIL))?;
        let link = Link::new(q.rate, q.rtt, q.packet, p.delay_f.unwrap_or(TYPICAL_F))?;
        let loss = match form {
            Form::PowerLaw => {
                let a = p.loss_a.unwrap_or(FACTOR_OF_TABLE_2);
                Some(LossForm::power_law(a, p.loss_b.unwrap_or(TYPICAL_B))?)
            }
            Form::Exponential => match (p.loss_a, p.loss_b) {
                (Some(a), Some(b)) => Some(LossForm::exponential(a, b)?),
                (None, None) => None,
                _ => {
                    return Err(AdviceError::Impossible {
                        what: "--loss-a or --loss-b",
                        given: "alone".to_owned(),
                        why: "an exponential needs both; give the other one too",
                    });
                }
            },
        };
        Ok(Model { ratio, form, link, loss })
    }

    /// The loss with `buffer`, where the form reaches so far.
    pub(super) fn loss_at(&self, buffer: Packets) -> Option<f64> {
        self.loss.and_then(|l| l.loss(buffer).ok()).map(|p| p.get())
    }

    pub(super) fn assumptions(&self, q: &Question) -> Vec<String> {
        let p = &q.parameters;
        let mut all = vec![
            "Heavy load: self-similar traffic fills the link for seconds at a time even if its \
             average is far below capacity. Drop-tail."
                .to_owned(),
        ];
        if p.tail_index.is_none() {
            all.push(format!("Transfer sizes with a Pareto tail of index {TYPICAL_TAIL}."));
        }
        match self.loss {
            Some(loss) => {
                let origin = if p.loss_a.is_some() && p.loss_b.is_some() && p.delay_f.is_some() {
                    "as given"
                } else {
                    "typical of the paper's simulations where not given (--loss-a, --loss-b, \
                     --delay-f set them); the recommendation depends on them"
                };
                all.push(format!(
                    "Loss parameters a = {}, b = {}, delay parameter f = {}: {origin}.",
                    loss.a(),
                    loss.b(),
                    self.link.delay_slope()
                ));
            }
            None => all.push(
                "The paper prints no parameters for the exponential, so loss is not known; its \
                 simulations had their best throughput with 20 to 30 packets (Table II). \
                 --loss-a and --loss-b give the numbers for a measured link."
                    .to_owned(),
            ),
        }
        all
    }
}
