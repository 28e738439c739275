//! From the question to the buffer.

use sweetspot_theory::Packets;
use sweetspot_theory::TheoryError;
use sweetspot_theory::reno::s_model::ShortFlow;
use sweetspot_theory::router::capacity_ratio::Form;
use sweetspot_theory::router::optimum::{Best, optimum};
use sweetspot_theory::router::per_flow::{Favoured, Router};
use sweetspot_theory::router::rules::{self, CongestionResponse};
use sweetspot_theory::router::sensitivity::tolerance;
use sweetspot_units::{Bytes, Duration, Rate};

use super::advice::{Basis, BufferChoice, BufferRange, RouterAdvice};
use super::formulas::formulas;
use super::model::LinkModel;
use super::{Favour, RouterQuestion, TwoRules, two_rules};
use crate::AdviceError;
use crate::error::possible;

/// The share of the best throughput that the range keeps.
const SHARE: f64 = 0.9;

/// The regression's links have no flows as long as those that persist, and where nothing queues there is nothing to predict.
fn predicts(question: &RouterQuestion, basis: Basis) -> bool {
    match basis {
        Basis::SquareRoot | Basis::NothingQueues => false,
        Basis::BetweenRules => question.mean_size().is_none(),
        _ => {
            let largest = question.packet.scaled(two_rules::NOT_COVERED);
            question.mean_size().is_none_or(|size| size <= largest)
        }
    }
}

/// The smallest buffer for `favour`: the bursts of single flows, or C T.
pub(super) fn smallest(favour: Favour, bdp: Packets) -> Result<Packets, TheoryError> {
    Packets::new(bursts(favour).min(bdp.get()))
}

/// The formulas of `question` for `buffer`; `basis` is the advice's own.
pub(super) fn by_formula(
    question: &RouterQuestion,
    basis: Basis,
    buffer: Packets,
) -> Result<BufferChoice, AdviceError> {
    let model = LinkModel::new(question)?;
    let (short, bulk) = (model.short_flow(question)?, model.bulk_flow()?);
    let input_rate = question.input_rate;
    let judge = BufferEvaluation {
        model: &model,
        short,
        bulk,
        input_rate,
        predicts: predicts(question, basis),
    };
    judge.packets("recommended", buffer)
}

/// Answers `question`.
///
/// # Errors
/// If a quantity is impossible.
pub fn advise(question: &RouterQuestion) -> Result<RouterAdvice, AdviceError> {
    let q = question;
    check(q)?;
    let model = LinkModel::new(q)?;
    let (short, bulk) = (model.short_flow(q)?, model.bulk_flow()?);
    let input_rate = q.input_rate;
    let mut judge = BufferEvaluation { model: &model, short, bulk, input_rate, predicts: true };
    let router = judge.router(q.favour);
    let Chosen { buffer, basis, range, two_rules } =
        choose(q, &model, &router).map_err(|e| blame_the_form(e, &model))?;
    judge.predicts = predicts(q, basis);
    let two_rules = two_rules.map(|two| judge.two_rules(two)).transpose()?;
    let available = q.available.map(|bytes| judge.option("available", bytes)).transpose()?;
    let recommended = judge.packets("recommended", buffer)?;
    Ok(RouterAdvice {
        by_formula: recommended.clone(),
        recommended,
        gamma: model.ratio.gamma(),
        flows: model.flows(),
        form: model.form,
        expected: model.expected,
        basis,
        simulated: None,
        range: range.filter(|_| judge.predicts),
        transfers: [judge.short.size(), judge.bulk.size()],
        size_mean: q.packet.scaled(model.traffic.size),
        two_rules,
        rules: other_rules(q, &model, &judge)?,
        available,
        outside: if basis == Basis::NothingQueues { Vec::new() } else { model.outside() },
        assumptions: model.assumptions(q, judge.predicts),
        formulas: formulas(q, &model, &router, buffer, judge.predicts),
        question: q.clone(),
    })
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
    possible(load > 0.0 && load <= 1.0, "load", load, "it must be above 0 and at most 100 %")?;
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
    // Three duplicate ACKs show a loss (RFC 5681).
    let in_flight = q.rate * q.rtt;
    let why = "the formulas need four packets in flight; a packet for each input is buffer enough";
    possible(in_flight >= q.packet * 4, "rate x RTT of", in_flight, why)?;
    Ok(())
}

/// If a loss form exceeds 1 near the formula's optimum, the form is at fault, not the buffer under test.
fn blame_the_form(error: AdviceError, model: &LinkModel) -> AdviceError {
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

/// Router-buffer Table II: 30 packets for long flows, 20 for short ones, where the formula, which neglects the
/// bursts of single flows, asks for none.
fn bursts(favour: Favour) -> f64 {
    if favour == Favour::Throughput { 30.0 } else { 20.0 }
}

/// A buffer with its origin.
struct Chosen {
    buffer: Packets,
    basis: Basis,
    range: Option<BufferRange>,
    /// C T / sqrt(n) and the best buffer for transfers, if both may hold, and how far the first does.
    two_rules: Option<(f64, [Packets; 2])>,
}

fn choose(q: &RouterQuestion, model: &LinkModel, router: &Router) -> Result<Chosen, AdviceError> {
    let alone = |(buffer, basis, range)| Chosen { buffer, basis, range, two_rules: None };
    if let Some(inputs) = q.inputs.filter(|n| !model.ratio.can_queue(*n)) {
        // A packet of each may arrive at once.
        return Ok(alone((Packets::new(inputs as f64)?, Basis::NothingQueues, None)));
    }
    let bdp = model.link.bdp();
    let Some(share) = two_rules::persistence(q, bdp) else {
        return Ok(alone(for_transfers(q, model, router)?));
    };
    let root = Packets::of(rules::square_root(q.rate, q.rtt, model.flows())?, q.packet)?;
    let lasting = two_rules::larger(root, smallest(q.favour, bdp)?);
    if share == 1.0 {
        let two_rules = Some((share, [root, bdp]));
        return Ok(Chosen { buffer: lasting, basis: Basis::SquareRoot, range: None, two_rules });
    }
    let found = for_transfers(q, model, router)?;
    if share == 0.0 && q.mean_size().is_some() {
        return Ok(alone(found));
    }
    let two_rules = Some((share, [root, found.0]));
    if share == 0.0 {
        return Ok(Chosen { two_rules, ..alone(found) });
    }
    let buffer = two_rules::between(lasting, found.0, share)?;
    Ok(Chosen { buffer, basis: Basis::BetweenRules, range: None, two_rules })
}

/// The best buffer for transfers that come and go, by formula.
fn for_transfers(
    q: &RouterQuestion,
    model: &LinkModel,
    router: &Router,
) -> Result<(Packets, Basis, Option<BufferRange>), AdviceError> {
    let bdp = model.link.bdp();
    let range = match tolerance(router, SHARE) {
        Ok(t) => Some(BufferRange { low: t.low, high: t.high }),
        Err(TheoryError::NotCovered { .. }) => None,
        Err(other) => return Err(other.into()),
    };
    Ok(match (optimum(router)?.best, range) {
        (Best::At(_), Some(range)) if q.favour == Favour::Latency => {
            // The formula neglects the bursts of single flows, which Table II shows.
            let low = range.low.get().max(bursts(q.favour));
            (Packets::new(low)?, Basis::RangeLow, Some(range))
        }
        (Best::At(buffer), range) if buffer > bdp => (bdp, Basis::BandwidthDelay, range),
        (Best::At(buffer), range) => {
            let buffer = two_rules::larger(buffer, smallest(q.favour, bdp)?);
            (buffer, Basis::Optimum, range)
        }
        (Best::Zero, range) => (Packets::new(bursts(q.favour))?, Basis::Simulation, range),
        (Best::Unbounded, range) => (bdp, Basis::BandwidthDelay, range),
    })
}

fn other_rules(
    q: &RouterQuestion,
    model: &LinkModel,
    judge: &BufferEvaluation<'_>,
) -> Result<Vec<BufferChoice>, AdviceError> {
    let mut all = Vec::new();
    let long = Router { favoured: Favoured::Long, ..judge.router(Favour::Throughput) };
    let best = optimum(&long).map(|found| found.best);
    if let (Form::PowerLaw, true, Ok(Best::At(buffer))) = (model.form, judge.predicts, best) {
        all.push(judge.packets("L-model", buffer)?);
    }
    let bdp = rules::bandwidth_delay(q.rate, q.rtt)?;
    all.push(judge.option("2 BDP", bdp * 2)?);
    all.push(judge.option("BDP", bdp)?);
    let n = model.flows();
    all.push(judge.option("BDP/sqrt(n)", rules::square_root(q.rate, q.rtt, n)?)?);
    all.push(judge.option("Cubic", rules::updated(q.rate, q.rtt, n, CongestionResponse::Cubic)?)?);
    all.push(judge.option("BBR", rules::updated(q.rate, q.rtt, n, CongestionResponse::Bbr)?)?);
    all.push(judge.packets("tiny", Packets::new(rules::TINY as f64)?)?);
    if q.rate > q.input_rate {
        // With inputs slower than the output (section VI-A, Table II).
        all.push(judge.packets("paper", Packets::new(bursts(q.favour))?)?);
    }
    Ok(all)
}

/// The effect of a buffer on the link.
struct BufferEvaluation<'a> {
    model: &'a LinkModel,
    short: ShortFlow,
    bulk: ShortFlow,
    input_rate: Rate,
    /// Whether the formulas cover the link.
    predicts: bool,
}

impl BufferEvaluation<'_> {
    fn router(&self, favour: Favour) -> Router {
        let flow = if favour == Favour::Throughput { self.bulk } else { self.short };
        let LinkModel { link, loss, .. } = *self.model;
        Router { link, loss, favoured: Favoured::Short(flow) }
    }

    fn two_rules(
        &self,
        (persistence, [persistent, transfers]): (f64, [Packets; 2]),
    ) -> Result<TwoRules, AdviceError> {
        Ok(TwoRules {
            persistence,
            persistent: self.packets("BDP/sqrt(n)", persistent)?,
            transfers: self.packets("transfers", transfers)?,
        })
    }

    fn option(&self, name: &'static str, bytes: Bytes) -> Result<BufferChoice, AdviceError> {
        self.packets(name, Packets::of(bytes, self.model.link.packet())?)
    }

    fn packets(&self, name: &'static str, buffer: Packets) -> Result<BufferChoice, AdviceError> {
        let link = &self.model.link;
        let used = self.predicts.then(|| self.model.used_at(buffer));
        let flow = used.map(|used| link.capacity().scaled(used / self.model.flows() as f64));
        // No transfer is faster than the links that it crosses.
        let rate = |favour| {
            let rate = self.router(favour).throughput(buffer).ok().filter(|_| self.predicts);
            rate.map(|rate| rate.min(self.input_rate).min(link.capacity()))
        };
        let worst_delay = link.worst_delay(buffer);
        Ok(BufferChoice {
            name,
            buffer,
            bytes: buffer.in_bytes(link.packet()),
            worst_delay,
            mean_delay: self.predicts.then(|| worst_delay.scaled(link.delay_slope())),
            loss: self.model.loss_at(buffer).filter(|_| self.predicts),
            used,
            flow: flow.map(|flow| flow.min(self.input_rate)),
            // By eq. (2) the time of a transfer is concave in its size, so that one of up to the mean size is no faster than the mean
            // flow (Jensen), and one far above it is no slower.
            short: rate(Favour::Short).map(|rate| flow.map_or(rate, |flow| rate.min(flow))),
            bulk: rate(Favour::Throughput).map(|rate| flow.map_or(rate, |flow| rate.max(flow))),
        })
    }
}
