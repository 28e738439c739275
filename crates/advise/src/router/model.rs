//! The model of a link: its loss form, delay and utilisation, which are measured, given, or predicted from the traffic.

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

use super::simulated::{FULL_LOAD_SHARE, OVERLOAD_LOSS};
use super::{Favour, Mix, RouterAdvice, RouterQuestion, Simulated, size};
use crate::AdviceError;

/// Parameters given by the user; `None` for those to predict.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Parameters {
    /// The form to which `loss_a` and `loss_b` belong; `None` for the form that the capacity ratio calls for.
    pub loss_form: Option<Form>,
    /// The factor a of the loss form.
    pub loss_a: Option<f64>,
    /// The decay b of the loss form.
    pub loss_b: Option<f64>,
    /// The mean occupancy f of the buffer, as a share of its size.
    pub delay_f: Option<f64>,
    /// The Pareto tail index of the transfer sizes.
    pub tail_index: Option<f64>,
}

/// Tail index that router-buffer §III-A calls "realistic", compared with traces.
const TYPICAL_TAIL: f64 = 1.5;
/// Heavy load, the case for which a buffer is sized (router-buffer §III-B).
pub(super) const HEAVY_LOAD: f64 = 1.0;
/// Transfers of more than this many mean sizes are called bulk.
pub(super) const BULK: f64 = 8.0;
/// The parameters a, b and f of an M/M/1/B in heavy load: p = 1 / B, and on average the buffer is half full (router-buffer §V).
const QUEUE: [f64; 3] = [1.0, 1.0, 0.5];

pub(super) struct LinkModel {
    pub ratio: CapacityRatio,
    /// The form that the capacity ratio and the tail call for; `None` if neither fits well.
    pub expected: Option<Form>,
    /// The form used.
    pub form: Form,
    pub link: RouterLink,
    pub loss: LossForm,
    pub traffic: Traffic,
    pub prediction: Prediction,
    /// The mean transfer.
    pub mean: ShortFlow,
    /// The number of flows active at a time: given, or enough to fill the link.
    flows: u64,
    /// Whether the number of flows is assumed, not given.
    assumes_flows: bool,
    origins: [Origin; 3],
}

/// The effect of a buffer on the link.
#[derive(Debug, Clone, Copy)]
pub(super) struct Effect {
    /// The share of the link in use; `None` if the flows contradict a measured loss and queue.
    pub used: Option<f64>,
    /// The mean queueing delay, if predicted.
    pub delay: Option<Duration>,
    /// The loss rate, if within the range of the models.
    pub loss: Option<f64>,
}

impl Effect {
    /// Whether the formulas predict no queue, because the flows cannot fill the link. In reality, bursts still queue and are
    /// lost.
    pub(super) fn is_calm(&self) -> bool {
        self.loss == Some(0.0)
    }
}

/// The origin of a, b or f.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Given,
    Fitted,
    /// Predicted by the regression over simulated links.
    Predicted,
    /// Taken from the M/M/1/B.
    Queue,
}

impl RouterQuestion {
    /// The loss predicted with a buffer of C T, or 0 if no link has such quantities.
    fn loss_with_rule(&self) -> f64 {
        LinkModel::new(self).map_or(0.0, |model| model.loss_with_rule())
    }

    /// The objective that suits the mix: for a file of sizes, it depends on the loss predicted with a buffer of C T.
    pub fn usual_favour(&self) -> Favour {
        self.mix.favour_at(self.loss_with_rule(), self.packet)
    }

    /// This question for `favour`, or else for the objective that suits the mix.
    #[must_use]
    pub fn with_favour(self, favour: Option<Favour>) -> RouterQuestion {
        RouterQuestion { favour: favour.unwrap_or_else(|| self.usual_favour()), ..self }
    }
}

impl RouterAdvice {
    /// The loss with a buffer of C T: simulated, if the simulation decided, or predicted.
    pub(super) fn loss_with_rule(&self) -> f64 {
        let simulated = self.decided().and_then(Simulated::loss_with_rule);
        simulated.unwrap_or_else(|| self.question.loss_with_rule())
    }

    /// The objective that suits the mix at that loss.
    pub fn usual_favour(&self) -> Favour {
        self.question.mix.favour_at(self.loss_with_rule(), self.question.packet)
    }
}

impl LinkModel {
    /// The link with the parameters of the regression, or of the M/M/1/B outside the regression's range.
    pub(super) fn new(q: &RouterQuestion) -> Result<LinkModel, AdviceError> {
        LinkModel::of(q, false)
    }

    /// The link with the regression's parameters: outside its range, they are the nearest link's within it.
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

    /// Whether the link is outside the regression's range, so that closed forms predict it.
    pub(super) fn is_outside(&self) -> bool {
        !self.traffic.outside().is_empty()
    }

    /// Whether the loss is measured, given, or predicted by the regression.
    fn knows_loss(&self) -> bool {
        !self.is_outside() || matches!(self.origins[0], Origin::Given | Origin::Fitted)
    }

    /// Whether the closed forms for loss, queue and rates do not hold. They describe a given number of persistent flows on a full
    /// link: no assumed number, no spare capacity, no flows that come and go.
    pub(super) fn assumes_shares(&self) -> bool {
        let is_shared = self.fed() > 1.0 && self.is_full();
        is_shared && !self.knows_loss() && !(self.divides_link() && self.follows_l_model())
    }

    /// Whether a given number of flows shares a full link.
    pub(super) fn divides_link(&self) -> bool {
        !self.assumes_flows && self.traffic.load >= HEAVY_LOAD
    }

    // Router-buffer §IV: eq. (3) holds for flows with five congestion events or more. Shorter flows lose more packets in slow
    // start, which overflows the buffer. Eq. (2) cannot be solved for that loss, because slow start makes up most of their time.
    /// Whether half of the flows are in congestion avoidance for most of their time with any buffer up to 2 C T.
    fn follows_l_model(&self) -> bool {
        let delay = self.link.worst_delay(self.link.bdp()).scaled(2.0 * self.link.delay_slope());
        let flow = self.flow(FULL_LOAD_SHARE * self.traffic.load);
        let loss = l_model::loss_at(self.mean.mss(), flow, self.link.propagation() + delay);
        let [median, _] = medians(self.mean.size(), self.traffic.tail_index);
        let events = median.as_f64() / self.mean.mss().as_f64() * loss.get();
        classify::model(events as usize) == FlowModel::L
    }

    /// Whether the flows can fill the link as far as the load requires.
    fn is_full(&self) -> bool {
        self.offered() > FULL_LOAD_SHARE * self.traffic.load
    }

    /// Whether the best buffer follows from the M/M/1/B.
    pub(super) fn is_closed_form(&self) -> bool {
        self.origins.contains(&Origin::Queue)
    }

    /// The number of flows active at a time: given, or enough to fill the link.
    pub(super) fn flows(&self) -> u64 {
        self.flows
    }

    /// The share of the link that the flows could use without loss and queueing; above 1 they fill it.
    pub(super) fn offered(&self) -> f64 {
        self.fed().min(self.share(self.mean_rate(self.link.propagation(), Probability::ZERO)))
    }

    /// The share of the link that the flows use if each sends at the rate of its input link.
    fn fed(&self) -> f64 {
        self.flows() as f64 / self.ratio.gamma()
    }

    /// The share of the link that the flows use together if each sends at `rate`.
    fn share(&self, rate: Rate) -> f64 {
        rate.as_f64() * self.flows() as f64 / self.link.capacity().as_f64()
    }

    fn mean_rate(&self, rtt: Duration, loss: Probability) -> Rate {
        self.mean.throughput(rtt, loss).unwrap_or(Rate::ZERO)
    }

    /// The mean rate of an active flow if the flows use the share `used` of the link.
    pub(super) fn flow(&self, used: f64) -> Rate {
        self.link.capacity().scaled(used / self.flows() as f64)
    }

    // Appenzeller, Keslassy, McKeown 2004: C T / sqrt(n).
    /// The buffer below which the link idles at times; with too few flows, n is the number that would fill the link.
    pub(super) fn root(&self) -> Result<Packets, AdviceError> {
        let flows = self.flows() as f64 / self.offered().min(1.0);
        Ok(Packets::new(self.link.bdp().get() / libm::sqrt(flows))?)
    }

    // The same rule: from that buffer on, the link is almost full.
    /// The share of the link in use with `buffer`; at most `offered`.
    fn used(&self, buffer: Packets, offered: f64) -> Option<f64> {
        if !self.is_outside() {
            return Some(self.prediction.utilisation.at(buffer).min(offered));
        }
        if offered <= FULL_LOAD_SHARE * self.traffic.load {
            return Some(offered);
        }
        let root = self.link.bdp().get() / libm::sqrt(self.flows() as f64);
        // Rules round to whole bytes, so allow a small difference.
        (buffer.get() >= 0.999 * root).then_some(FULL_LOAD_SHARE * self.traffic.load)
    }

    /// The effect of `buffer`. Its numbers agree: each flow has the rate that TCP reaches at this loss and delay, and the flows
    /// together use this share of the link. `None` if no model predicts the effect.
    pub(super) fn effect(&self, buffer: Packets) -> Option<Effect> {
        let used = self.used(buffer, self.offered())?;
        if self.fed() <= 1.0 {
            return Some(Effect { used: Some(used), delay: Some(Duration::ZERO), loss: Some(0.0) });
        }
        let delay = self.link.worst_delay(buffer).scaled(self.link.delay_slope());
        let form = self.loss.loss(buffer).ok();
        if matches!(self.origins[0], Origin::Given | Origin::Fitted) {
            return Some(self.measured(used, delay, form?));
        }
        if self.assumes_shares() {
            return Some(Effect { used: Some(used), delay: None, loss: None });
        }
        let flow = self.flow(used);
        if self.is_outside() {
            // Flows that leave part of the link idle reach their rates without loss.
            let calm = Effect { used: Some(used), delay: Some(Duration::ZERO), loss: Some(0.0) };
            return Some(if self.is_full() { self.shared(used, flow, delay) } else { calm });
        }
        // Reduces the regression's loss and delay until each flow can reach that rate.
        let loss = form.map_or(1.0, Probability::get);
        let rtt = |share: f64| self.link.propagation() + delay.scaled(share);
        let lossy = |share: f64| Probability::new(loss * share).unwrap_or(Probability::ZERO);
        let share = largest_share(|share| self.mean_rate(rtt(share), lossy(share)) >= flow);
        Some(Effect {
            used: Some(used),
            delay: Some(delay.scaled(share)),
            loss: Some(loss * share),
        })
    }

    /// The effect of a measured `loss`, where a full link would use the share `used` and queue for `delay`. A link that is not full
    /// has less of a queue, so a larger buffer never idles it.
    fn measured(&self, used: f64, delay: Duration, loss: Probability) -> Effect {
        let reached = |share: f64| {
            self.share(self.mean_rate(self.link.propagation() + delay.scaled(share), loss))
        };
        let share = largest_share(|share| reached(share) >= used);
        let is_measured = matches!(self.origins[2], Origin::Given | Origin::Fitted);
        let (used, share) = match is_measured && share < 1.0 {
            true => (None, 1.0),
            false => (Some(used.min(reached(share))), share),
        };
        Effect { used, delay: Some(delay.scaled(share)), loss: Some(loss.get()) }
    }

    /// The effect of a buffer with mean queueing delay `delay`, when the flows use the share `used` of the link at a rate of
    /// `flow` each. Eq. (3) gives the loss at which they have that rate.
    fn shared(&self, used: f64, flow: Rate, delay: Duration) -> Effect {
        let rtt = self.link.propagation() + delay;
        let loss = l_model::loss_at(self.mean.mss(), flow, rtt).get();
        // Above this loss the model does not hold.
        let loss = Some(loss).filter(|loss| *loss <= OVERLOAD_LOSS);
        Effect { used: Some(used), delay: Some(delay), loss }
    }

    /// The rate of one more transfer: by eq. (2), or by eq. (3) if that is lower and the link is outside the regression's range.
    pub(super) fn rate(&self, transfer: &ShortFlow, effect: &Effect) -> Option<Rate> {
        let loss = Probability::new(effect.loss?)?;
        let rtt = self.link.propagation() + effect.delay?;
        let rate = transfer.throughput(rtt, loss).ok()?;
        match l_model::throughput(transfer.mss(), rtt, loss) {
            Ok(long) if self.is_outside() => Some(rate.min(long)),
            _ => Some(rate),
        }
    }

    /// The median bulk transfer. Transfers of more than eight mean sizes have a Pareto tail of their own; no result exceeds the
    /// largest size of a sample.
    pub(super) fn bulk_flow(&self, q: &RouterQuestion) -> Result<ShortFlow, AdviceError> {
        let [_, median] = medians(self.mean.size(), self.traffic.tail_index);
        let largest = match &q.mix {
            Mix::Sizes(sizes) => sizes.last().copied(),
            Mix::Short | Mix::Bulk => None,
        };
        Ok(ShortFlow::new(largest.map_or(median, |largest| largest.min(median)), self.mean.mss())?)
    }

    /// The short transfer to optimise for: from the sample of sizes, or the median of a Pareto distribution with the mean size.
    pub(super) fn short_flow(&self, q: &RouterQuestion) -> Result<ShortFlow, AdviceError> {
        if let Mix::Sizes(_) = q.mix {
            return q.mix.short_flow(self.loss_with_rule(), q.packet);
        }
        let [median, _] = medians(self.mean.size(), self.traffic.tail_index);
        Ok(ShortFlow::new(median, q.packet)?)
    }

    /// The loss with a buffer of C T. It tells short transfers from long ones.
    fn loss_with_rule(&self) -> f64 {
        let bdp = self.link.bdp();
        let loss = match self.assumes_shares() {
            true => self.loss.loss(bdp).ok().map(Probability::get),
            false => self.effect(bdp).and_then(|effect| effect.loss),
        };
        loss.unwrap_or(1.0)
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

/// The median sizes of all transfers and of bulk transfers, if sizes with this mean are Pareto distributed.
fn medians(mean: Bytes, tail_index: f64) -> [Bytes; 2] {
    let double = libm::exp2(1.0 / tail_index);
    let all = mean.scaled((tail_index - 1.0) / tail_index * double).max(Bytes::new(1));
    [all, mean.scaled(BULK * double)]
}

/// The median transfers of a simulation, which draws sizes with the mean size `mean`.
pub(super) fn simulated_transfers(q: &RouterQuestion, mean: Bytes) -> [Bytes; 2] {
    medians(mean, q.parameters.tail_index.unwrap_or(TYPICAL_TAIL))
}

/// The largest share of a queue with which flows reach their rate; 0 if they never do.
fn largest_share(is_reached: impl Fn(f64) -> bool) -> f64 {
    match (is_reached(1.0), is_reached(0.0)) {
        (true, _) => 1.0,
        (false, true) => roots::between(0.0, 1.0, is_reached),
        (false, false) => 0.0,
    }
}

/// The loss form to use.
fn form(q: &RouterQuestion, expected: Option<Form>) -> Result<Form, AdviceError> {
    let p = &q.parameters;
    let by_hand = p.loss_a.is_some() || p.loss_b.is_some();
    let form = match &q.measurement {
        Some(measured) => measured.form(expected.unwrap_or(Form::PowerLaw)),
        None if by_hand => p.loss_form.or(expected).unwrap_or(Form::PowerLaw),
        // At small buffers, from which the choice is made, the power law describes loss at any ratio: in the simulator, its
        // choice is better than the exponential's.
        None => Form::PowerLaw,
    };
    if q.measurement.is_none() && p.loss_a.is_some() != p.loss_b.is_some() {
        let (what, why) = match p.loss_a {
            Some(_) => {
                ("loss_a", "a loss form needs both parameters; add loss_b, or fit measurements")
            }
            None => {
                ("loss_b", "a loss form needs both parameters; add loss_a, or fit measurements")
            }
        };
        return Err(AdviceError::Impossible { what, given: "alone".to_owned(), why });
    }
    Ok(form)
}

/// The paper's form; `None` in the gray zone, where neither form fits well.
fn expected_form(ratio: CapacityRatio, tail_index: f64) -> Result<Option<Form>, AdviceError> {
    use sweetspot_theory::TheoryError::NotCovered;
    match ratio.form(tail_index) {
        Ok(form) => Ok(Some(form)),
        Err(NotCovered { .. }) => Ok(None),
        Err(other) => Err(other.into()),
    }
}

fn traffic(q: &RouterQuestion, ratio: CapacityRatio, mean: &ShortFlow, bdp: Packets) -> Traffic {
    let fill = flows_to_fill(mean, bdp, ratio);
    Traffic {
        gamma: ratio.gamma(),
        tail_index: q.parameters.tail_index.unwrap_or(TYPICAL_TAIL),
        load: q.load.unwrap_or(HEAVY_LOAD),
        // A buffer is sized for times when the link is full (router-buffer §III-B).
        flows: q.flows.map_or(2.0 * fill, |n| (n as f64).max(fill)).max(1.0),
        bdp,
        size: (mean.size().as_f64() / q.packet.as_f64()).max(1.0),
    }
}

// Little's law: C / s transfers begin per second. Each lasts D T_o, or the time that its input link takes.
/// The number of flows that fill the link without loss and queueing.
fn flows_to_fill(mean: &ShortFlow, bdp: Packets, ratio: CapacityRatio) -> f64 {
    let rounds = mean.slow_start_rtts() as f64 * bdp.get() / mean.segments() as f64;
    rounds.max(ratio.gamma())
}
