//! Computes the buffer from the question.

use sweetspot_theory::router::capacity_ratio::Form;
use sweetspot_theory::router::optimum::{Best, optimum};
use sweetspot_theory::router::per_flow::{Favoured, Router};
use sweetspot_theory::router::rules::{self, CongestionResponse};
use sweetspot_theory::router::sensitivity::tolerance;
use sweetspot_theory::{Packets, TheoryError};
use sweetspot_units::{Bytes, Duration, Rate};

use super::model::LinkModel;
use super::{Favour, RouterQuestion};
use crate::error::possible;
use crate::{AdviceError, Formula};

/// Share of the best throughput that every buffer in the range keeps.
const KEPT_THROUGHPUT: f64 = 0.9;

/// Where the recommended buffer comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// The inputs together cannot exceed the output.
    NothingQueues,
    /// The formula's optimum.
    Optimum,
    /// For latency: the smallest buffer of the range, or what bursts need.
    RangeLow,
    /// The formula gives no buffer; this many packets were best in the paper's simulations.
    Simulation,
    /// The formula has no upper bound; the paper's simulations leave its range at a bandwidth-delay
    /// product.
    Unbounded,
}

/// The buffers within which throughput stays above 90 % of the best; `None` where it has no end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BufferRange {
    /// The smallest.
    pub low: Packets,
    /// The largest.
    pub high: Option<Packets>,
}

/// A buffer and its effect on the link.
#[derive(Debug, Clone, PartialEq)]
pub struct BufferChoice {
    /// Name of the rule.
    pub name: &'static str,
    /// The rule.
    pub rule: &'static str,
    /// The buffer.
    pub buffer: Packets,
    /// The buffer in bytes.
    pub bytes: Bytes,
    /// The delay of a full buffer.
    pub worst_delay: Duration,
    /// The loss, where it is known.
    pub loss: Option<f64>,
    /// Throughput of the favoured flows over that with the recommended buffer.
    pub share: Option<f64>,
}

/// The router buffer advice.
#[derive(Debug, Clone, PartialEq)]
pub struct RouterAdvice {
    /// The question.
    pub question: RouterQuestion,
    /// C_out / C_in.
    pub gamma: f64,
    /// The loss form that holds.
    pub form: Form,
    /// Where the buffer comes from.
    pub basis: Basis,
    /// The recommended buffer.
    pub recommended: BufferChoice,
    /// Around it, the buffers that keep 90 % of throughput; `None` where loss is not known.
    pub range: Option<BufferRange>,
    /// The throughput of a favoured flow, where it is known.
    pub per_flow: Option<Rate>,
    /// The buffers that other rules give.
    pub rules: Vec<BufferChoice>,
    /// The device's own buffer, if given.
    pub available: Option<BufferChoice>,
    /// What was assumed.
    pub assumptions: Vec<String>,
    /// The formula behind each number.
    pub formulas: Vec<Formula>,
}

/// Answers `question`.
///
/// # Errors
/// If a quantity is impossible, or neither loss form holds for the traffic.
pub fn advise(question: &RouterQuestion) -> Result<RouterAdvice, AdviceError> {
    let q = question;
    possible(q.rate > Rate::ZERO, "--rate", q.rate, "a link has a rate above zero")?;
    possible(q.rtt > Duration::ZERO, "--rtt", q.rtt, "a path has an RTT above zero")?;
    possible(q.rtt <= Duration::from_secs(120), "--rtt", q.rtt, "it must be 120s or less")?;
    possible(q.input_rate > Rate::ZERO, "--input-rate", q.input_rate, "it must be above zero")?;
    possible(q.inputs != Some(0), "--inputs", 0, "a link that nothing feeds needs no buffer")?;
    possible(q.flows != Some(0), "--flows", 0, "it must be 1 or more")?;
    possible((64..=65_535).contains(&q.packet.get()), "--packet", q.packet, "64B to 65535B")?;

    possible(q.available != Some(Bytes::ZERO), "--available", "0 B", "a device holds a packet")?;
    let p = &q.parameters;
    for (name, given) in [("--loss-a", p.loss_a), ("--loss-b", p.loss_b), ("--delay-f", p.delay_f)]
    {
        let good = given.is_none_or(|n| n.is_finite() && n > 0.0);
        possible(good, name, given.unwrap_or_default(), "it must be a number above zero")?;
    }

    let model = LinkModel::new(q)?;
    let flows = favoured(q, &model)?;
    let router = model.loss.map(|loss| Router { link: model.link, loss, favoured: flows });
    let (buffer, basis, range) =
        choose(q, &model, router.as_ref()).map_err(|e| blame_the_form(e, &model))?;
    let evaluation = BufferEvaluation { model: &model, router: router.as_ref(), reference: buffer };
    let available = q
        .available
        .map(|bytes| evaluation.option("available", "the device's", bytes))
        .transpose()?;
    Ok(RouterAdvice {
        gamma: model.ratio.gamma(),
        form: model.form,
        basis,
        recommended: evaluation.packets("recommended", "", buffer)?,
        range,
        per_flow: router.and_then(|r| r.throughput(buffer).ok()),
        rules: other_rules(q, &evaluation)?,
        available,
        assumptions: model.assumptions(q),
        formulas: super::show::formulas(q, &model, router.as_ref(), buffer),
        question: q.clone(),
    })
}

/// Replaces an error about a buffer by one about the loss form: if the form exceeds 1 where the
/// formula searches its optimum, the form is at fault.
fn blame_the_form(error: AdviceError, model: &LinkModel) -> AdviceError {
    match (error, model.loss) {
        (AdviceError::Theory(TheoryError::OutOfDomain { quantity: "buffer", .. }), Some(loss)) => {
            AdviceError::Impossible {
                what: "a loss form with a and b of",
                given: format!("{} and {}", loss.a(), loss.b()),
                why: "near the best buffer it gives a loss above 1; see --loss-a, --loss-b, --fit",
            }
        }
        (error, _) => error,
    }
}

fn favoured(q: &RouterQuestion, model: &LinkModel) -> Result<Favoured, AdviceError> {
    // How long a flow counts as short depends on the loss, here that of a whole BDP of buffer.
    let loss = model.loss_at(model.link.bdp()).unwrap_or(0.001);
    Ok(match q.favour {
        Favour::Throughput => Favoured::Long,
        Favour::Short | Favour::Latency => Favoured::Short(q.mix.short_flow(loss, q.packet)?),
    })
}

fn choose(
    q: &RouterQuestion,
    model: &LinkModel,
    router: Option<&Router>,
) -> Result<(Packets, Basis, Option<BufferRange>), AdviceError> {
    if q.inputs.is_some_and(|n| !model.ratio.can_queue(n)) {
        return Ok((Packets::ZERO, Basis::NothingQueues, None));
    }
    // Router-buffer Table II: 30 packets for long flows, 20 for short ones.
    let simulated = if q.favour == Favour::Throughput { 30.0 } else { 20.0 };
    let Some(router) = router else {
        return Ok((Packets::new(simulated)?, Basis::Simulation, None));
    };
    let range = match tolerance(router, KEPT_THROUGHPUT) {
        Ok(t) => Some(BufferRange { low: t.low, high: t.high }),
        Err(TheoryError::NotCovered { .. }) => None,
        Err(other) => return Err(other.into()),
    };
    Ok(match (optimum(router)?.best, range) {
        (Best::At(_), Some(range)) if q.favour == Favour::Latency => {
            // The formula neglects the bursts of single flows, which Table II shows.
            let low = range.low.get().max(simulated);
            (Packets::new(low)?, Basis::RangeLow, Some(range))
        }
        (Best::At(buffer), range) => (buffer, Basis::Optimum, range),
        (Best::Zero, range) => (Packets::new(simulated)?, Basis::Simulation, range),
        (Best::Unbounded, range) => (model.link.bdp(), Basis::Unbounded, range),
    })
}

fn other_rules(
    q: &RouterQuestion,
    evaluation: &BufferEvaluation<'_>,
) -> Result<Vec<BufferChoice>, AdviceError> {
    let mut all =
        vec![evaluation.option("BDP", "C x T", rules::bandwidth_delay(q.rate, q.rtt)?)?];
    if let Some(n) = q.flows {
        let root = rules::square_root(q.rate, q.rtt, n)?;
        all.push(evaluation.option("BDP/sqrt(n)", "Appenzeller", root)?);
        let cubic = rules::updated(q.rate, q.rtt, n, CongestionResponse::Cubic)?;
        all.push(evaluation.option("Cubic", "3/7 of that, Spang", cubic)?);
        let bbr = rules::updated(q.rate, q.rtt, n, CongestionResponse::Bbr)?;
        all.push(evaluation.option("BBR", "1/4 of it, Spang", bbr)?);
    }
    let tiny = Packets::new(rules::TINY as f64)?;
    all.push(evaluation.packets("tiny", "paced, Enachescu", tiny)?);
    Ok(all)
}

/// Compares buffers with the recommended one.
struct BufferEvaluation<'a> {
    model: &'a LinkModel,
    router: Option<&'a Router>,
    reference: Packets,
}

impl BufferEvaluation<'_> {
    fn option(
        &self,
        name: &'static str,
        rule: &'static str,
        bytes: Bytes,
    ) -> Result<BufferChoice, AdviceError> {
        self.packets(name, rule, Packets::of(bytes, self.model.link.packet())?)
    }

    fn packets(
        &self,
        name: &'static str,
        rule: &'static str,
        buffer: Packets,
    ) -> Result<BufferChoice, AdviceError> {
        let rate = |b: Packets| self.router.and_then(|r| r.throughput(b).ok());
        let share = match (rate(buffer), rate(self.reference)) {
            (Some(this), Some(best)) if best > Rate::ZERO => Some(this.as_f64() / best.as_f64()),
            _ => None,
        };
        Ok(BufferChoice {
            name,
            rule,
            buffer,
            bytes: buffer.in_bytes(self.model.link.packet()),
            worst_delay: self.model.link.worst_delay(buffer),
            loss: self.model.loss_at(buffer),
            share,
        })
    }
}
