//! The loss form and the delay for a link, with the paper's parameters where none were measured.

use sweetspot_theory::Packets;
use sweetspot_theory::router::capacity_ratio::{CapacityRatio, Form};
use sweetspot_theory::router::loss_form::LossForm;
use sweetspot_theory::router::per_flow::RouterLink;

use super::RouterQuestion;
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

pub(super) struct LinkModel {
    pub ratio: CapacityRatio,
    pub form: Form,
    pub link: RouterLink,
    /// `None` under an exponential whose parameters were not measured: the paper prints none.
    pub loss: Option<LossForm>,
}

impl LinkModel {
    pub(super) fn new(q: &RouterQuestion) -> Result<LinkModel, AdviceError> {
        let p = &q.parameters;
        let ratio = CapacityRatio::new(q.rate, q.input_rate)?;
        let (form, p) = match &q.measurement {
            None => (ratio.form(p.tail_index.unwrap_or(TYPICAL_TAIL))?, *p),
            Some(measured) => {
                // Where neither form describes such traffic, what was measured still decides.
                let expected = ratio.form(p.tail_index.unwrap_or(TYPICAL_TAIL));
                let form = measured.form(expected.unwrap_or(Form::PowerLaw));
                let fit = measured.loss(form);
                let measured = Parameters {
                    loss_a: p.loss_a.or(Some(fit.a.value)),
                    loss_b: p.loss_b.or(Some(fit.b.value)),
                    delay_f: p.delay_f.or(measured.delay.map(|f| f.value.min(1.0))),
                    ..*p
                };
                (form, measured)
            }
        };
        let link = RouterLink::new(q.rate, q.rtt, q.packet, p.delay_f.unwrap_or(TYPICAL_F))?;
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
        Ok(LinkModel { ratio, form, link, loss })
    }

    /// The loss with `buffer`, where the form reaches so far.
    pub(super) fn loss_at(&self, buffer: Packets) -> Option<f64> {
        self.loss.and_then(|l| l.loss(buffer).ok()).map(|p| p.get())
    }

    pub(super) fn assumptions(&self, q: &RouterQuestion) -> Vec<String> {
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
            Some(loss) => all.push(format!(
                "a = {:.4}, b = {:.4}, f = {:.3}: {}",
                loss.a(),
                loss.b(),
                self.link.delay_slope(),
                self.origin(q)
            )),
            None => all.push(
                "The 20 (short flows) or 30 packets (long ones) are what was best in the paper's \
                 simulation of one link of 100 Mbit/s (Table II), not computed for this one: it \
                 prints no parameters for the exponential, so loss is not known either. --fit, or \
                 --loss-a and --loss-b, give those of a measured link; --verify sim simulates this \
                 one."
                    .to_owned(),
            ),
        }
        all
    }
    /// Where a, b and f come from.
    fn origin(&self, q: &RouterQuestion) -> String {
        let p = &q.parameters;
        let measured = q.measurement.as_ref();
        let of = |given: bool, fitted: bool, other: &'static str| match (given, fitted) {
            (true, _) => "given",
            (false, true) => "fitted to the measurements",
            _ => other,
        };
        let fitted = measured.is_some();
        let a = of(p.loss_a.is_some(), fitted, "chosen, see below");
        let b = of(p.loss_b.is_some(), fitted, "\"typical\" in the paper");
        let f = of(
            p.delay_f.is_some(),
            measured.is_some_and(|m| m.delay.is_some()),
            "\"typical\" in the paper",
        );
        let mut words = format!("a is {a}, b {b}, f {f}.");
        if p.loss_a.is_none() && !fitted {
            words.push_str(
                " The paper prints no a: this one makes its short flows' formula give the 47 \
                 packets of its Table II with the typical b and f. Long flows' best buffer does \
                 not depend on a; short flows', the loss and the rates do. --fit fits all three to \
                 measurements of the link.",
            );
        }
        words
    }
}
