//! Computes the recommended buffer.

use sweetspot_theory::Packets;
use sweetspot_theory::TheoryError;
use sweetspot_theory::reno::s_model::ShortFlow;
use sweetspot_theory::router::capacity_ratio::Form;
use sweetspot_theory::router::optimum::{Best, optimum};
use sweetspot_theory::router::per_flow::{Favoured, Router};
use sweetspot_theory::router::rules::{self, CongestionResponse};
use sweetspot_theory::router::sensitivity::tolerance;
use sweetspot_units::{Bytes, Duration, Percent, Rate, Significant};

use super::advice::{Basis, BufferChoice, BufferRange, RouterAdvice, Rule, Source};
use super::formulas::formulas;
use super::model::LinkModel;
use super::simulated::PACKETS_IN_FLIGHT;
use super::{Favour, RouterQuestion, TwoRules, buffers, size};
use crate::AdviceError;
use crate::error::possible;
use crate::limit::INITIAL_WINDOW_PACKETS;

/// The share of the best throughput that the buffers in the range keep.
const SHARE: f64 = 0.9;

/// The smallest buffer for `favour`: enough for the bursts of single flows, or C T if that is less.
pub(super) fn smallest(favour: Favour, bdp: Packets) -> Result<Packets, TheoryError> {
    Packets::new(bursts(favour).min(bdp.get()))
}

/// The effect of `buffer`, computed by formula.
pub(super) fn by_formula(
    question: &RouterQuestion,
    buffer: Packets,
) -> Result<BufferChoice, AdviceError> {
    let model = LinkModel::new(question)?;
    BufferEvaluation::new(&model, question)?.packets(Rule::Formula, buffer)
}

/// Answers `question`.
///
/// # Errors
/// If a quantity is impossible.
pub fn advise(question: &RouterQuestion) -> Result<RouterAdvice, AdviceError> {
    let q = question;
    check(q)?;
    let model = LinkModel::new(q)?;
    let has_short = q.favour == Favour::Throughput
        || !size::none_is_short(q, model.mean.size(), model.link.bdp());
    let why = "flows of this size persist, and none is a short transfer; write throughput, or give the --size-mean of the short ones";
    possible(has_short, "favour", q.favour, why)?;
    let judge = BufferEvaluation::new(&model, q)?;
    let Chosen { buffer, basis, range, two_rules, most } =
        choose(q, &model).map_err(|e| or_form_error(e, &model))?;
    let two_rules = two_rules.map(|two| judge.two_rules(two)).transpose()?;
    let available = q.available.map(|bytes| judge.option(Rule::Available, bytes)).transpose()?;
    let recommended = judge.packets(Rule::Formula, buffer)?;
    if matches!(basis, Basis::NothingQueues | Basis::InitialWindow) {
        return Ok(alone(q, &model, &judge, basis, recommended, available));
    }
    Ok(RouterAdvice {
        by_formula: recommended.clone(),
        most,
        recommended,
        gamma: model.ratio.gamma(),
        flows: model.flows(),
        form: model.form,
        expected: model.expected,
        basis,
        simulated: None,
        unsimulated: None,
        range,
        transfers: [judge.short.size(), judge.bulk.size()],
        size_mean: model.mean.size(),
        offered: model.offered(),
        assumes_shares: model.assumes_shares(),
        grows_with_flows: grows_with_flows(q, model.mean.size(), buffer),
        two_rules,
        rules: other_rules(q, &model, &judge)?,
        available,
        outside: model.outside(),
        assumptions: model.assumptions(q),
        formulas: formulas(q, &model, &judge.router(q.favour), buffer),
        question: q.clone(),
    })
}

/// The answer if the inputs cannot exceed the output, or too few packets are in flight: a buffer without other numbers.
fn alone(
    q: &RouterQuestion,
    model: &LinkModel,
    judge: &BufferEvaluation<'_>,
    basis: Basis,
    recommended: BufferChoice,
    available: Option<BufferChoice>,
) -> RouterAdvice {
    let effect = match basis {
        Basis::NothingQueues => BufferChoice::without_queue,
        _ => BufferChoice::unpredicted,
    };
    let recommended = effect(recommended);
    let all = formulas(q, model, &judge.router(q.favour), recommended.buffer);
    RouterAdvice {
        by_formula: recommended.clone(),
        most: recommended.buffer,
        gamma: model.ratio.gamma(),
        flows: model.flows(),
        form: model.form,
        expected: model.expected,
        basis,
        simulated: None,
        unsimulated: None,
        range: None,
        transfers: [judge.short.size(), judge.bulk.size()],
        size_mean: model.mean.size(),
        offered: model.offered(),
        assumes_shares: false,
        grows_with_flows: false,
        two_rules: None,
        rules: Vec::new(),
        available: available.map(effect),
        outside: Vec::new(),
        assumptions: Vec::new(),
        formulas: all.into_iter().take(1).collect(),
        question: q.clone(),
        recommended,
    }
}

fn check(q: &RouterQuestion) -> Result<(), AdviceError> {
    possible(q.rate > Rate::ZERO, "rate", q.rate, "a link has a rate above zero")?;
    possible(q.rtt > Duration::ZERO, "rtt", q.rtt, "a path has an RTT above zero")?;
    possible(q.rtt <= Duration::from_secs(120), "rtt", q.rtt, "it must be 120s or less")?;
    possible(q.input_rate > Rate::ZERO, "input_rate", q.input_rate, "it must be above zero")?;
    possible(q.inputs != Some(0), "inputs", 0, "a link that nothing feeds needs no buffer")?;
    possible(q.flows != Some(0), "flows", 0, "it must be 1 or more")?;
    possible(
        (64..=65_535).contains(&q.packet.get()),
        "packet",
        q.packet,
        "it must lie between 64B and 65535B",
    )?;
    possible(q.available != Some(Bytes::ZERO), "available", "0 B", "a device holds a packet")?;
    possible(q.size_mean != Some(Bytes::ZERO), "size_mean", "0 B", "it must be 1 B or more")?;
    let load = q.load.unwrap_or(1.0);
    let why =
        "write a share above 0 and at most 1, such as 0.8 or 80%; for more demand, give --flows";
    let given = format!("{} ({})", Significant::<4>(load), Percent(load));
    possible(load > 0.0 && load <= 1.0, "load", given, why)?;
    let p = &q.parameters;
    for (name, given) in [("loss_a", p.loss_a), ("loss_b", p.loss_b)] {
        let good = given.is_none_or(|n| n.is_finite() && n > 0.0);
        possible(good, name, given.unwrap_or_default(), "it must be a number above zero")?;
    }
    let share = p.delay_f.unwrap_or(1.0);
    possible(share > 0.0 && share <= 1.0, "delay_f", share, "it must be above 0 and at most 1")?;
    let tail = p.tail_index.unwrap_or(f64::MAX);
    let why = "it must be above 1, or transfers have no mean size";
    possible(tail.is_finite() && tail > 1.0, "tail_index", tail, why)?;
    Ok(())
}

/// Replaces `error` if a loss form exceeds 1 near the formula's optimum: the form is wrong, not the buffer under test.
fn or_form_error(error: AdviceError, model: &LinkModel) -> AdviceError {
    match error {
        AdviceError::Theory(TheoryError::OutOfDomain { quantity: "buffer", .. }) => {
            AdviceError::Impossible {
                what: "a loss form with a and b of",
                given: format!("{} and {}", model.loss.a(), model.loss.b()),
                why: "near the best buffer it gives a loss above 1; choose other parameters, or fit measurements",
            }
        }
        error => error,
    }
}

/// The buffer for bursts of single flows: 30 packets for long flows and 20 for short ones (router-buffer Table II). The formula
/// neglects such bursts and may ask for no buffer at all.
pub(super) fn bursts(favour: Favour) -> f64 {
    if favour == Favour::Throughput { 30.0 } else { 20.0 }
}

/// A chosen buffer with its origin.
struct Chosen {
    buffer: Packets,
    basis: Basis,
    range: Option<BufferRange>,
    /// If both rules may apply: the share of persistent flows, C T / sqrt(n), and the best buffer for transfers.
    two_rules: Option<(f64, [Packets; 2])>,
    /// The largest buffer to recommend.
    most: Packets,
}

/// The buffer for `q`. Short transfers get no more than long ones: beyond the buffer that fills the link, they gain only delay.
fn choose(q: &RouterQuestion, model: &LinkModel) -> Result<Chosen, AdviceError> {
    let own = choose_alone(q, model)?;
    if q.favour == Favour::Throughput {
        return Ok(own);
    }
    let for_bulk = in_favour_of(Favour::Throughput, q, model.mean.size());
    let bulk = choose_alone(&for_bulk, &LinkModel::new(&for_bulk)?)?;
    let most = bulk.buffer;
    Ok(match own.buffer > most {
        true => Chosen { range: None, most, ..bulk },
        false => Chosen { most, ..own },
    })
}

/// The same question for another objective, with the same mean size.
pub(super) fn in_favour_of(favour: Favour, q: &RouterQuestion, mean: Bytes) -> RouterQuestion {
    RouterQuestion { favour, size_mean: Some(mean), ..q.clone() }
}

fn choose_alone(q: &RouterQuestion, model: &LinkModel) -> Result<Chosen, AdviceError> {
    let most = model.link.bdp();
    let alone = |(buffer, basis, range)| Chosen { buffer, basis, range, two_rules: None, most };
    if let Some(inputs) = q.inputs.filter(|n| !model.ratio.can_queue(*n)) {
        // One packet from each input may arrive at once.
        return Ok(alone((Packets::new(inputs as f64)?, Basis::NothingQueues, None)));
    }
    let bdp = model.link.bdp();
    if bdp.get() < PACKETS_IN_FLIGHT {
        let burst = Packets::new(INITIAL_WINDOW_PACKETS as f64)?;
        return Ok(alone((burst, Basis::InitialWindow, None)));
    }
    let found = for_transfers(q, model)?;
    let Some(share) = size::persistence(q, model.mean.size(), bdp) else {
        return Ok(alone(found));
    };
    if share == 0.0 {
        return Ok(alone(found));
    }
    let root = Packets::of(rules::square_root(q.rate, q.rtt, model.flows())?, q.packet)?;
    let lasting = buffers::larger(root, smallest(q.favour, bdp)?);
    let (buffer, basis) = match share == 1.0 {
        true => (lasting, Basis::SquareRoot),
        false => (buffers::between(lasting, found.0, share)?, Basis::BetweenRules),
    };
    let two_rules = Some((share, [root, found.0]));
    Ok(Chosen { buffer, basis, range: None, two_rules, most })
}

/// Whether a quarter more flows, of a smaller assumed size, would get a larger buffer than `buffer`.
fn grows_with_flows(q: &RouterQuestion, mean: Bytes, buffer: Packets) -> bool {
    let Some(flows) = q.flows else { return false };
    let more = RouterQuestion { flows: Some(flows + flows.div_ceil(4)), ..q.clone() };
    let Ok(model) = LinkModel::new(&more) else { return false };
    let chosen = || choose(&more, &model).is_ok_and(|chosen| chosen.buffer > buffer);
    model.mean.size() < mean && chosen()
}

/// A buffer, its origin, and the buffers that keep 90 % of its rate.
type Found = (Packets, Basis, Option<BufferRange>);

/// The best buffer for transfers that come and go. The regression gives it within its range, and the M/M/1/B from twice the
/// distance of the range's edge on. Between them it is interpolated by the logarithm of the distance, so that the buffer does not
/// jump at the edge.
fn for_transfers(q: &RouterQuestion, model: &LinkModel) -> Result<Found, AdviceError> {
    let found = best(q, model)?;
    let fraction = libm::log2(model.traffic.distance());
    if !model.is_closed_form() || fraction >= 1.0 {
        return Ok(found);
    }
    let (near, ..) = best(q, &LinkModel::at_the_edge(q)?)?;
    Ok((buffers::between(found.0, near, fraction)?, Basis::Edge, None))
}

/// The best buffer for transfers that come and go, by the parameters of `model`.
fn best(q: &RouterQuestion, model: &LinkModel) -> Result<Found, AdviceError> {
    let router = &BufferEvaluation::new(model, q)?.router(q.favour);
    let bdp = model.link.bdp();
    let range = match tolerance(router, SHARE) {
        Ok(t) => Some(BufferRange { low: t.low, high: t.high }),
        Err(TheoryError::NotCovered { .. }) => None,
        Err(other) => return Err(other.into()),
    };
    let shown = range.filter(|_| !model.is_closed_form());
    let least = smallest(q.favour, bdp)?;
    let (buffer, basis, range) = match (optimum(router)?.best, range) {
        (Best::At(_), Some(range)) if q.favour == Favour::Latency => {
            // The formula neglects the bursts of single flows, which Table II shows.
            let low = Packets::new(range.low.get().max(bursts(q.favour)))?;
            match low > bdp {
                true => (bdp, Basis::BandwidthDelay, shown),
                false => (low, Basis::RangeLow, shown),
            }
        }
        (Best::At(buffer), _) if buffer > bdp => (bdp, Basis::BandwidthDelay, shown),
        (Best::At(buffer), _) => (buffers::larger(buffer, least), Basis::Optimum, shown),
        (Best::Zero, _) => (Packets::new(bursts(q.favour))?, Basis::Simulation, shown),
        (Best::Unbounded, _) => (bdp, Basis::BandwidthDelay, shown),
    };
    // The M/M/1/B does not model flows that halve their windows.
    let root = buffers::larger(model.root()?, least);
    Ok(match model.is_closed_form() && root > buffer {
        true => (root, Basis::Floor, shown),
        false => (buffer, basis, range),
    })
}

/// The rules that depend on the number of flows, for `n` flows.
pub(super) fn for_flows(q: &RouterQuestion, n: u64) -> Result<[BufferChoice; 3], AdviceError> {
    BufferEvaluation::new(&LinkModel::new(q)?, q)?.for_flows(q, n)
}

fn other_rules(
    q: &RouterQuestion,
    model: &LinkModel,
    judge: &BufferEvaluation<'_>,
) -> Result<Vec<BufferChoice>, AdviceError> {
    let mut all = Vec::new();
    let long = Router { favoured: Favoured::Long, ..judge.router(Favour::Throughput) };
    let best = optimum(&long).map(|found| found.best);
    if let (Form::PowerLaw, false, Ok(Best::At(buffer))) =
        (model.form, model.is_closed_form(), best)
    {
        all.push(judge.packets(Rule::LongFlows, buffer)?);
    }
    let bdp = rules::bandwidth_delay(q.rate, q.rtt)?;
    all.push(judge.option(Rule::TwiceBandwidthDelay, bdp * 2)?);
    all.push(judge.option(Rule::BandwidthDelay, bdp)?);
    all.extend(judge.for_flows(q, model.flows())?);
    all.push(judge.packets(Rule::Tiny, Packets::new(rules::TINY as f64)?)?);
    if q.rate > q.input_rate {
        // For inputs slower than the output (section VI-A, Table II).
        all.push(judge.packets(Rule::SlowInputs, Packets::new(bursts(q.favour))?)?);
    }
    Ok(all)
}

/// Evaluates the effect of buffers on a link.
struct BufferEvaluation<'a> {
    model: &'a LinkModel,
    short: ShortFlow,
    bulk: ShortFlow,
    input_rate: Rate,
}

impl<'a> BufferEvaluation<'a> {
    fn new(model: &'a LinkModel, q: &RouterQuestion) -> Result<BufferEvaluation<'a>, AdviceError> {
        let (short, bulk) = (model.short_flow(q)?, model.bulk_flow(q)?);
        Ok(BufferEvaluation { model, short, bulk, input_rate: q.input_rate })
    }

    /// The router model for `favour`. With the M/M/1/B, bulk transfers count as long flows: it predicts so little loss that eq.
    /// (2) would treat them as short.
    fn router(&self, favour: Favour) -> Router {
        let favoured = match favour {
            Favour::Throughput if self.model.is_closed_form() => Favoured::Long,
            Favour::Throughput => Favoured::Short(self.bulk),
            Favour::Short | Favour::Latency => Favoured::Short(self.short),
        };
        let LinkModel { link, loss, .. } = *self.model;
        Router { link, loss, favoured }
    }

    fn two_rules(
        &self,
        (persistence, [persistent, transfers]): (f64, [Packets; 2]),
    ) -> Result<TwoRules, AdviceError> {
        Ok(TwoRules {
            persistence,
            persistent: self.packets(Rule::SquareRoot, persistent)?,
            transfers: self.packets(Rule::Transfers, transfers)?,
        })
    }

    fn for_flows(&self, q: &RouterQuestion, n: u64) -> Result<[BufferChoice; 3], AdviceError> {
        let updated = |response| rules::updated(q.rate, q.rtt, n, response);
        Ok([
            self.option(Rule::SquareRoot, rules::square_root(q.rate, q.rtt, n)?)?,
            self.option(Rule::Cubic, updated(CongestionResponse::Cubic)?)?,
            self.option(Rule::Bbr, updated(CongestionResponse::Bbr)?)?,
        ])
    }

    fn option(&self, rule: Rule, bytes: Bytes) -> Result<BufferChoice, AdviceError> {
        self.packets(rule, Packets::of(bytes, self.model.link.packet())?)
    }

    fn packets(&self, rule: Rule, buffer: Packets) -> Result<BufferChoice, AdviceError> {
        let link = &self.model.link;
        let effect = self.model.effect(buffer);
        let shared = effect.filter(|_| self.model.divides_link() || !self.model.assumes_shares());
        let flow = shared.and_then(|effect| Some(self.model.flow(effect.used?)));
        let queued = effect.filter(|effect| !effect.is_calm());
        // No transfer is faster than the links that it crosses.
        let rate = |transfer: &ShortFlow| {
            let rate = self.model.rate(transfer, queued.as_ref()?)?;
            Some(rate.min(self.input_rate).min(link.capacity()))
        };
        Ok(BufferChoice {
            source: Source::Formula,
            rule,
            buffer,
            bytes: buffer.in_bytes(link.packet()),
            worst_delay: link.worst_delay(buffer),
            mean_delay: queued.and_then(|effect| effect.delay),
            loss: queued.and_then(|effect| effect.loss),
            used: effect.and_then(|effect| effect.used),
            flows: self.model.flows(),
            flow,
            // By eq. (2) the time of a transfer is concave in its size. By Jensen's inequality, a transfer of up to the mean size
            // is therefore no faster than the mean flow.
            short: rate(&self.short).map(|rate| flow.map_or(rate, |flow| rate.min(flow))),
            bulk: rate(&self.bulk),
            errors: None,
            noise: None,
        })
    }
}
