//! The loss form, the delay and the use of a link: measured, given, or predicted from its traffic.

use sweetspot_statistics::roots;
use sweetspot_theory::Packets;
use sweetspot_theory::reno::classify::{self, FlowModel};
use sweetspot_theory::reno::l_model;
use sweetspot_theory::reno::s_model::ShortFlow;
use sweetspot_theory::router::capacity_ratio::{CapacityRatio, Form};
use sweetspot_theory::router::loss_form::LossForm;
use sweetspot_theory::router::per_flow::RouterLink;
use sweetspot_theory::router::traffic::{Outside, Prediction, Traffic};
use sweetspot_units::{Bytes, Duration, Probability, Rate};

use super::simulated::{ALMOST_FULL, OVERLOAD_LOSS};
use super::{Mix, RouterQuestion, size};
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

/// Router-buffer §III-A: the tail index, "realistic" beside traces.
const TYPICAL_TAIL: f64 = 1.5;
/// Heavy load, for which a buffer is made (router-buffer §III-B).
const HEAVY_LOAD: f64 = 1.0;
/// Transfers of more than this many mean sizes are called bulk.
const BULK: f64 = 8.0;
/// Router-buffer §V, the M/M/1/B in heavy load: p = 1 / B, and half of the buffer is full on average.
const QUEUE: [f64; 3] = [1.0, 1.0, 0.5];

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
    /// The mean transfer.
    pub mean: ShortFlow,
    /// Flows that are active at a time: given, or as many as fill the link.
    flows: u64,
    /// Whether nobody gave their number.
    assumes_flows: bool,
    origins: [Origin; 3],
}

/// The effect of a buffer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Effect {
    /// The share of the link that is used.
    pub used: f64,
    /// The mean queueing delay, where it is predicted.
    pub delay: Option<Duration>,
    /// The loss, where the models reach so far.
    pub loss: Option<f64>,
}

impl Effect {
    /// Whether the formulas know no queue, as the flows hardly fill the link. Bursts queue and are lost all the same.
    pub(super) fn is_calm(&self) -> bool {
        self.loss == Some(0.0)
    }
}

/// Where a, b or f comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Given,
    Fitted,
    /// By the regression over simulated links.
    Predicted,
    /// Of the M/M/1/B.
    Queue,
}

impl LinkModel {
    /// The link with the regression's parameters; outside of its range, with the M/M/1/B's.
    pub(super) fn new(q: &RouterQuestion) -> Result<LinkModel, AdviceError> {
        LinkModel::of(q, false)
    }

    /// The link with the parameters of the nearest one within the regression's range.
    pub(super) fn at_the_edge(q: &RouterQuestion) -> Result<LinkModel, AdviceError> {
        LinkModel::of(q, true)
    }

    fn of(q: &RouterQuestion, extrapolates: bool) -> Result<LinkModel, AdviceError> {
        let p = &q.parameters;
        let ratio = CapacityRatio::new(q.rate, q.input_rate)?;
        let expected = expected_form(ratio, p.tail_index.unwrap_or(TYPICAL_TAIL))?;
        let bdp = RouterLink::new(q.rate, q.rtt, q.packet, 1.0)?.bdp();
        let mean = ShortFlow::new(size::mean(q, bdp), q.packet)?;
        let traffic = traffic(q, ratio, &mean, bdp);
        let prediction = traffic.predict()?;
        let form = form(q, expected)?;
        let fitted = q.measurement.as_ref().map(|measured| measured.loss(form));
        let slope = q.measurement.as_ref().and_then(|m| m.delay).map(|f| f.value.min(1.0));
        let loss = prediction.loss(form);
        let (predicted, by) = match extrapolates || traffic.outside().is_empty() {
            true => ([loss.a(), loss.b(), prediction.delay_slope], Origin::Predicted),
            false => (QUEUE, Origin::Queue),
        };
        let given = [p.loss_a, p.loss_b, p.delay_f];
        let fitted = [fitted.map(|fit| fit.a.value), fitted.map(|fit| fit.b.value), slope];
        let chosen = |i: usize| match (given[i], fitted[i]) {
            (Some(given), _) => (given, Origin::Given),
            (None, Some(fitted)) => (fitted, Origin::Fitted),
            (None, None) => (predicted[i], by),
        };
        let [(a, from_a), (b, from_b), (f, from_f)] = [0, 1, 2].map(chosen);
        Ok(LinkModel {
            ratio,
            expected,
            form,
            link: RouterLink::new(q.rate, q.rtt, q.packet, f)?,
            loss: LossForm::new(form, a, b)?,
            traffic,
            prediction,
            mean,
            flows: q.flows.unwrap_or((traffic.flows.round() as u64).max(1)),
            assumes_flows: q.flows.is_none(),
            origins: [from_a, from_b, from_f],
        })
    }

    /// Whether the regression does not cover the link, so that closed forms predict it.
    pub(super) fn is_outside(&self) -> bool {
        !self.traffic.outside().is_empty()
    }

    /// Whether the loss is measured or the regression's.
    fn knows_loss(&self) -> bool {
        !self.is_outside() || matches!(self.origins[0], Origin::Given | Origin::Fitted)
    }

    /// Whether closed forms would give loss, queue and rates of a full link where they do not hold: for a number of flows that is assumed,
    /// on a link with room, or for flows that come and go.
    pub(super) fn assumes_shares(&self) -> bool {
        let is_shared = self.fed() > 1.0 && self.is_full();
        is_shared && !self.knows_loss() && !(self.divides_link() && self.follows_l_model())
    }

    /// Whether the flows share a link that is full, and their number is given.
    pub(super) fn divides_link(&self) -> bool {
        !self.assumes_flows && self.traffic.load >= HEAVY_LOAD
    }

    // Router-buffer §IV: eq. (3) holds for flows with five congestion events or more. Others lose more in slow start, which overflows the
    // buffer, and eq. (2) cannot be solved for that loss: slow start makes up most of their time.
    /// Whether half of the flows are in congestion avoidance for most of their time with any buffer up to 2 C T.
    fn follows_l_model(&self) -> bool {
        let delay = self.link.worst_delay(self.link.bdp()).scaled(2.0 * self.link.delay_slope());
        let flow = self.flow(ALMOST_FULL * self.traffic.load);
        let loss = l_model::loss_at(self.mean.mss(), flow, self.link.propagation() + delay);
        let [median, _] = medians(self.mean.size(), self.traffic.tail_index);
        let events = median.as_f64() / self.mean.mss().as_f64() * loss.get();
        classify::model(events as usize) == FlowModel::L
    }

    /// Whether the flows can use as much of the link as its load says.
    fn is_full(&self) -> bool {
        self.offered() > ALMOST_FULL * self.traffic.load
    }

    /// Whether the best buffer follows from the M/M/1/B.
    pub(super) fn is_closed_form(&self) -> bool {
        self.origins.contains(&Origin::Queue)
    }

    /// Flows that are active at a time: given, or as many as fill the link.
    pub(super) fn flows(&self) -> u64 {
        self.flows
    }

    /// The share of the link that the flows use if none loses a packet or waits in a queue; above 1 they fill it.
    pub(super) fn offered(&self) -> f64 {
        self.fed().min(self.share(self.mean_rate(self.link.propagation(), Probability::ZERO)))
    }

    /// The share of the link that the flows use if each fills its input.
    fn fed(&self) -> f64 {
        self.flows() as f64 / self.ratio.gamma()
    }

    /// The share of the link that flows of `rate` use together.
    fn share(&self, rate: Rate) -> f64 {
        rate.as_f64() * self.flows() as f64 / self.link.capacity().as_f64()
    }

    fn mean_rate(&self, rtt: Duration, loss: Probability) -> Rate {
        self.mean.throughput(rtt, loss).unwrap_or(Rate::ZERO)
    }

    /// The mean rate of the flows that are active at a time if they use `used` of the link.
    pub(super) fn flow(&self, used: f64) -> Rate {
        self.link.capacity().scaled(used / self.flows() as f64)
    }

    // Appenzeller, Keslassy, McKeown 2004: C T / sqrt(n).
    /// The buffer below which the link idles at times, with as many flows as fill it.
    pub(super) fn root(&self) -> Result<Packets, AdviceError> {
        let flows = self.flows() as f64 / self.offered().min(1.0);
        Ok(Packets::new(self.link.bdp().get() / libm::sqrt(flows))?)
    }

    // The same: with that buffer and more.
    /// The share of the link that is used with `buffer`, at most the share `offered`.
    fn used(&self, buffer: Packets, offered: f64) -> Option<f64> {
        if !self.is_outside() {
            return Some(self.prediction.utilisation.at(buffer).min(offered));
        }
        if offered <= ALMOST_FULL * self.traffic.load {
            return Some(offered);
        }
        let root = self.link.bdp().get() / libm::sqrt(self.flows() as f64);
        // Rules count in whole bytes.
        (buffer.get() >= 0.999 * root).then_some(ALMOST_FULL * self.traffic.load)
    }

    /// The effect of `buffer`, such that each flow has the rate that TCP reaches at that loss and delay, and all of them together
    /// use that share of the link. `None` where nothing predicts it.
    pub(super) fn effect(&self, buffer: Packets) -> Option<Effect> {
        let used = self.used(buffer, self.offered())?;
        if self.fed() <= 1.0 {
            return Some(Effect { used, delay: Some(Duration::ZERO), loss: Some(0.0) });
        }
        let delay = self.link.worst_delay(buffer).scaled(self.link.delay_slope());
        let form = self.loss.loss(buffer).ok();
        if matches!(self.origins[0], Origin::Given | Origin::Fitted) {
            let rate = self.mean_rate(self.link.propagation() + delay, form?);
            let used = used.min(self.share(rate));
            return Some(Effect { used, delay: Some(delay), loss: form.map(Probability::get) });
        }
        if self.assumes_shares() {
            return Some(Effect { used, delay: None, loss: None });
        }
        let flow = self.flow(used);
        if self.is_outside() {
            // Flows that leave a part of the link idle have their rates without a loss.
            let calm = Effect { used, delay: Some(Duration::ZERO), loss: Some(0.0) };
            return Some(if self.is_full() { self.shared(used, flow, delay) } else { calm });
        }
        // The regression's loss and delay, or as much of both as leaves each flow that rate.
        let loss = form.map_or(1.0, Probability::get);
        let rtt = |share: f64| self.link.propagation() + delay.scaled(share);
        let lossy = |share: f64| Probability::new(loss * share).unwrap_or(Probability::ZERO);
        let is_reached = |share: f64| self.mean_rate(rtt(share), lossy(share)) >= flow;
        let share = match (is_reached(1.0), is_reached(0.0)) {
            (true, _) => 1.0,
            (false, true) => roots::between(0.0, 1.0, is_reached),
            (false, false) => 0.0,
        };
        Some(Effect { used, delay: Some(delay.scaled(share)), loss: Some(loss * share) })
    }

    /// The effect of a buffer of mean `delay` with which flows use `used` of the link, `flow` each: by eq. (3) the loss at
    /// which they have that rate.
    fn shared(&self, used: f64, flow: Rate, delay: Duration) -> Effect {
        let rtt = self.link.propagation() + delay;
        let loss = l_model::loss_at(self.mean.mss(), flow, rtt).get();
        // Beyond that the model does not hold.
        let loss = Some(loss).filter(|loss| *loss <= OVERLOAD_LOSS);
        Effect { used, delay: Some(delay), loss }
    }

    /// The rate of a transfer beside the others: by eq. (2), and outside of the regression's range by eq. (3) where that is lower.
    pub(super) fn rate(&self, transfer: &ShortFlow, effect: &Effect) -> Option<Rate> {
        let loss = Probability::new(effect.loss?)?;
        let rtt = self.link.propagation() + effect.delay?;
        let rate = transfer.throughput(rtt, loss).ok()?;
        match l_model::throughput(transfer.mss(), rtt, loss) {
            Ok(long) if self.is_outside() => Some(rate.min(long)),
            _ => Some(rate),
        }
    }

    /// The median bulk transfer: transfers of more than eight mean sizes have their own Pareto tail. No larger than all of a sample.
    pub(super) fn bulk_flow(&self, q: &RouterQuestion) -> Result<ShortFlow, AdviceError> {
        let [_, median] = medians(self.mean.size(), self.traffic.tail_index);
        let largest = match &q.mix {
            Mix::Sizes(sizes) => sizes.last().copied(),
            Mix::Short | Mix::Bulk => None,
        };
        Ok(ShortFlow::new(largest.map_or(median, |largest| largest.min(median)), self.mean.mss())?)
    }

    /// The short transfer to serve: of a sample of sizes its own, else the median of a Pareto distribution of the mean size.
    pub(super) fn short_flow(&self, q: &RouterQuestion) -> Result<ShortFlow, AdviceError> {
        if let Mix::Sizes(_) = q.mix {
            // The size up to which a flow counts as short depends on the loss, here with a whole BDP of buffer.
            let bdp = self.link.bdp();
            let loss = match self.assumes_shares() {
                true => self.loss.loss(bdp).ok().map(Probability::get),
                false => self.effect(bdp).and_then(|effect| effect.loss),
            };
            return q.mix.short_flow(loss.unwrap_or(1.0), q.packet);
        }
        let [median, _] = medians(self.mean.size(), self.traffic.tail_index);
        Ok(ShortFlow::new(median, q.packet)?)
    }

    /// Inputs outside the regression's range; empty if it predicts nothing here.
    pub(super) fn outside(&self) -> Vec<Outside> {
        if self.is_closed_form() { self.traffic.outside() } else { Vec::new() }
    }

    pub(super) fn assumptions(&self, q: &RouterQuestion) -> Vec<String> {
        let t = &self.traffic;
        let mut all = vec!["Drop-tail; TCP that halves its window and repairs by SACK.".to_owned()];
        if q.load.is_none() {
            all.push(
                "Load 100 %: self-similar traffic fills the link for seconds at a time even if its average \
                 is far below capacity."
                    .to_owned(),
            );
        }
        if q.flows.is_none() {
            all.push(format!(
                "{} flows active at a time: as many as fill the link if each takes twice its slow start.",
                self.flows()
            ));
        }
        if q.parameters.tail_index.is_none() || q.mean_size().is_none() {
            let is_derived = q.mean_size().is_none() && self.mean.size() > size::TYPICAL;
            all.push(format!(
                "Transfers of {} on average{} with a Pareto tail of index {}.",
                self.mean.size(),
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
            Origin::Queue => "M/M/1/B",
        }
    }
}

/// The medians of all transfers and of the bulk ones, if sizes of this mean are Pareto distributed.
fn medians(mean: Bytes, tail_index: f64) -> [Bytes; 2] {
    let double = libm::exp2(1.0 / tail_index);
    let all = mean.scaled((tail_index - 1.0) / tail_index * double).max(Bytes::new(1));
    [all, mean.scaled(BULK * double)]
}

/// The transfers of a simulation, which draws their sizes by their mean.
pub(super) fn simulated_transfers(q: &RouterQuestion, mean: Bytes) -> [Bytes; 2] {
    medians(mean, q.parameters.tail_index.unwrap_or(TYPICAL_TAIL))
}

/// The loss form to reckon with.
fn form(q: &RouterQuestion, expected: Option<Form>) -> Result<Form, AdviceError> {
    let p = &q.parameters;
    let by_hand = p.loss_a.is_some() || p.loss_b.is_some();
    let form = match &q.measurement {
        Some(measured) => measured.form(expected.unwrap_or(Form::PowerLaw)),
        None if by_hand => p.loss_form.or(expected).unwrap_or(Form::PowerLaw),
        // At small buffers, where the choice is, it describes loss at any ratio: its choice is better than the exponential's in the
        // simulator.
        None => Form::PowerLaw,
    };
    if form == Form::Exponential && p.loss_a.is_some() != p.loss_b.is_some() {
        return Err(AdviceError::Impossible {
            what: if p.loss_a.is_some() { "loss_a" } else { "loss_b" },
            given: "alone".to_owned(),
            why: "an exponential needs both; give the other one too",
        });
    }
    Ok(form)
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

fn traffic(q: &RouterQuestion, ratio: CapacityRatio, mean: &ShortFlow, bdp: Packets) -> Traffic {
    let fill = filling_flows(mean, bdp, ratio);
    Traffic {
        gamma: ratio.gamma(),
        tail_index: q.parameters.tail_index.unwrap_or(TYPICAL_TAIL),
        load: q.load.unwrap_or(HEAVY_LOAD),
        // A buffer is for times in which the link is full (router-buffer §III-B).
        flows: q.flows.map_or(2.0 * fill, |n| (n as f64).max(fill)).max(1.0),
        bdp,
        size: (mean.size().as_f64() / q.packet.as_f64()).max(1.0),
    }
}

// Little's law: C / s transfers begin per second; each lasts D T_o, or as long as its input takes.
/// The flows that fill the link if none loses a packet or waits in a queue.
fn filling_flows(mean: &ShortFlow, bdp: Packets, ratio: CapacityRatio) -> f64 {
    let rounds = mean.slow_start_rtts() as f64 * bdp.get() / mean.segments() as f64;
    rounds.max(ratio.gamma())
}
