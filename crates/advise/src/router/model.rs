//! The loss form, the delay and the use of a link: measured, given, or predicted from its traffic.

use sweetspot_theory::Packets;
use sweetspot_theory::reno::s_model::ShortFlow;
use sweetspot_theory::router::capacity_ratio::{CapacityRatio, Form};
use sweetspot_theory::router::closed_loop::size_to_fill;
use sweetspot_theory::router::loss_form::LossForm;
use sweetspot_theory::router::per_flow::RouterLink;
use sweetspot_theory::router::traffic::{Outside, Prediction, Traffic};
use sweetspot_units::Bytes;

use super::{Mix, RouterQuestion};
use crate::AdviceError;

/// Parameters as given; `None` where they are to be predicted.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Parameters {
    /// Which form the factor and the decay are of; `None`: the one that the capacity ratio calls for.
    pub loss_form: Option<Form>,
    /// The factor a of the loss form.
    pub loss_a: Option<f64>,
    /// The decay b of the loss form.
    pub loss_b: Option<f64>,
    /// The share f of the buffer that is full on average.
    pub delay_f: Option<f64>,
    /// The Pareto tail index of the transfer sizes.
    pub tail_index: Option<f64>,
}

/// Router-buffer §III-A: the tail index and the mean of its transfers, "realistic" beside traces.
const TYPICAL_TAIL: f64 = 1.5;
const TYPICAL_SIZE: Bytes = Bytes::new(80_000);
/// From e packets on, larger transfers need fewer flows.
const FEWEST_PACKETS: f64 = 3.0;
/// Heavy load, for which a buffer is made (router-buffer §III-B).
const HEAVY_LOAD: f64 = 1.0;
/// Transfers of more than this many mean sizes are called bulk.
const BULK: f64 = 8.0;

pub(super) struct LinkModel {
    pub ratio: CapacityRatio,
    /// The form that the capacity ratio and the tail call for; `None` where neither holds.
    pub expected: Option<Form>,
    /// The form that is reckoned with.
    pub form: Form,
    pub link: RouterLink,
    pub loss: LossForm,
    pub traffic: Traffic,
    pub prediction: Prediction,
    /// The share of the link that the inputs of the flows given can fill.
    fed: f64,
    origins: [Origin; 3],
}

/// Where a, b or f comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Given,
    Fitted,
    Predicted,
}

impl LinkModel {
    pub(super) fn new(q: &RouterQuestion) -> Result<LinkModel, AdviceError> {
        let p = &q.parameters;
        let ratio = CapacityRatio::new(q.rate, q.input_rate)?;
        let expected = expected_form(ratio, p.tail_index.unwrap_or(TYPICAL_TAIL))?;
        let traffic = traffic(q, ratio)?;
        let prediction = traffic.predict()?;
        let by_hand = p.loss_a.is_some() || p.loss_b.is_some();
        let form = match &q.measurement {
            Some(measured) => measured.form(expected.unwrap_or(Form::PowerLaw)),
            None if by_hand => p.loss_form.or(expected).unwrap_or(Form::PowerLaw),
            // At small buffers, where the choice is, it describes loss at any ratio: its choice is
            // better than the exponential's (docs/results/router.md).
            None => Form::PowerLaw,
        };
        if form == Form::Exponential && p.loss_a.is_some() != p.loss_b.is_some() {
            return Err(AdviceError::Impossible {
                what: if p.loss_a.is_some() { "loss_a" } else { "loss_b" },
                given: "alone".to_owned(),
                why: "an exponential needs both; give the other one too",
            });
        }
        let fitted = q.measurement.as_ref().map(|measured| measured.loss(form));
        let slope = q.measurement.as_ref().and_then(|m| m.delay).map(|f| f.value.min(1.0));
        let predicted = prediction.loss(form);
        let (a, from_a) = chosen(p.loss_a, fitted.map(|fit| fit.a.value), predicted.a());
        let (b, from_b) = chosen(p.loss_b, fitted.map(|fit| fit.b.value), predicted.b());
        let (f, from_f) = chosen(p.delay_f, slope, prediction.delay_slope);
        Ok(LinkModel {
            ratio,
            expected,
            form,
            link: RouterLink::new(q.rate, q.rtt, q.packet, f)?,
            loss: LossForm::new(form, a, b)?,
            traffic,
            prediction,
            fed: q.flows.map_or(1.0, |flows| flows as f64 / ratio.gamma()),
            origins: [from_a, from_b, from_f],
        })
    }

    /// Flows that are active at a time: given, or as many as fill the link.
    pub(super) fn flows(&self) -> u64 {
        (self.traffic.flows.round() as u64).max(1)
    }

    /// The loss with `buffer`, where the form reaches so far.
    pub(super) fn loss_at(&self, buffer: Packets) -> Option<f64> {
        self.loss.loss(buffer).ok().map(|p| p.get())
    }

    /// The share of the link that is used with `buffer`.
    pub(super) fn used_at(&self, buffer: Packets) -> f64 {
        self.prediction.utilisation.at(buffer).min(self.fed)
    }

    /// The median bulk transfer: transfers of more than eight mean sizes have their own Pareto tail.
    pub(super) fn bulk_flow(&self) -> Result<ShortFlow, AdviceError> {
        let median = BULK * libm::exp2(1.0 / self.traffic.tail_index);
        let packet = self.link.packet();
        Ok(ShortFlow::new(packet.scaled(self.traffic.size * median), packet)?)
    }

    /// The short transfer to serve: of a mix that is known its own, else the paper's, or where a mean is
    /// given the median of a Pareto distribution of that mean.
    pub(super) fn short_flow(&self, q: &RouterQuestion) -> Result<ShortFlow, AdviceError> {
        if matches!(q.mix, Mix::Sizes(_)) || q.size_mean.is_none() {
            // The size up to which a flow counts as short depends on the loss, here with a whole BDP of buffer.
            let loss = self.loss_at(self.link.bdp()).unwrap_or(1.0);
            return q.mix.short_flow(loss, q.packet);
        }
        let alpha = self.traffic.tail_index;
        let median = (alpha - 1.0) / alpha * libm::exp2(1.0 / alpha);
        let packets = (self.traffic.size * median).max(1.0);
        Ok(ShortFlow::new(q.packet.scaled(packets), q.packet)?)
    }

    /// Inputs outside the regression's range; empty if it predicts nothing here.
    pub(super) fn outside(&self) -> Vec<Outside> {
        let predicted = self.origins.contains(&Origin::Predicted);
        if predicted { self.traffic.outside() } else { Vec::new() }
    }

    pub(super) fn assumptions(&self, q: &RouterQuestion, predicts: bool) -> Vec<String> {
        let t = &self.traffic;
        let mut all = vec!["Drop-tail; TCP that halves its window and repairs by SACK.".to_owned()];
        if !predicts {
            return all;
        }
        if q.load.is_none() {
            all.push(
                "Load 100 %: self-similar traffic fills the link for seconds at a time even if its average \
                 is far below capacity."
                    .to_owned(),
            );
        }
        if q.flows.is_none() {
            all.push(format!(
                "{:.0} flows active at a time: as many as fill the link if each takes twice its slow start.",
                t.flows
            ));
        }
        if q.parameters.tail_index.is_none() || q.mean_size().is_none() {
            let size = q.packet.scaled(t.size);
            let is_derived = q.mean_size().is_none() && q.flows.is_some() && size > TYPICAL_SIZE;
            all.push(format!(
                "Transfers of {size} on average{} with a Pareto tail of index {}.",
                if is_derived { ", as large as so few flows need to fill the link," } else { "" },
                t.tail_index
            ));
        }
        let [a, b, f] = self.origins.map(Origin::words);
        all.push(format!(
            "a = {:.4} ({a}), b = {:.4} ({b}), f = {:.3} ({f}).",
            self.loss.a(),
            self.loss.b(),
            self.link.delay_slope(),
        ));
        all
    }
}

impl Origin {
    fn words(self) -> &'static str {
        match self {
            Origin::Given => "given",
            Origin::Fitted => "fitted to the measurements",
            Origin::Predicted => "predicted",
        }
    }
}

fn chosen(given: Option<f64>, fitted: Option<f64>, predicted: f64) -> (f64, Origin) {
    match (given, fitted) {
        (Some(given), _) => (given, Origin::Given),
        (None, Some(fitted)) => (fitted, Origin::Fitted),
        (None, None) => (predicted, Origin::Predicted),
    }
}

/// The paper's form; `None` in the gray zone, where it found neither good.
fn expected_form(ratio: CapacityRatio, tail_index: f64) -> Result<Option<Form>, AdviceError> {
    use sweetspot_theory::TheoryError::NotCovered;
    match ratio.form(tail_index) {
        Ok(form) => Ok(Some(form)),
        Err(NotCovered { .. }) => Ok(None),
        Err(other) => Err(other.into()),
    }
}

fn traffic(q: &RouterQuestion, ratio: CapacityRatio) -> Result<Traffic, AdviceError> {
    let bdp = RouterLink::new(q.rate, q.rtt, q.packet, 1.0)?.bdp();
    let load = q.load.unwrap_or(HEAVY_LOAD);
    let mean = q.mean_size().unwrap_or(TYPICAL_SIZE);
    let mut size = (mean.as_f64() / q.packet.as_f64()).max(1.0);
    if let (Some(flows), None) = (q.flows, q.mean_size()) {
        // No simulated link was as busy as this with so few flows of the typical size.
        size = size_to_fill(flows as f64, load, bdp, size.max(FEWEST_PACKETS));
    }
    Ok(Traffic {
        gamma: ratio.gamma(),
        tail_index: q.parameters.tail_index.unwrap_or(TYPICAL_TAIL),
        load,
        flows: q.flows.map_or_else(|| usual_flows(mean, q.packet, bdp), |n| Ok(n as f64))?,
        bdp,
        size,
    })
}

// Little's law: C / s transfers begin per second; each lasts 2 D T_o.
fn usual_flows(mean: Bytes, packet: Bytes, bdp: Packets) -> Result<f64, AdviceError> {
    let flow = ShortFlow::new(mean, packet)?;
    let flows = 2.0 * flow.slow_start_rtts() as f64 * bdp.get() / flow.segments() as f64;
    Ok(flows.max(1.0))
}
