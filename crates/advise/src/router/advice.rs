//! The answer to the question.

use sweetspot_theory::Packets;
use sweetspot_theory::router::capacity_ratio::Form;
use sweetspot_theory::router::traffic::Outside;
use sweetspot_units::{Bytes, Duration, Rate};

use super::simulated::Simulated;
use super::{Favour, RouterQuestion, TwoRules};
use crate::Formula;
use crate::text::three_digits;

/// Where the recommended buffer comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// The inputs together cannot exceed the output.
    NothingQueues,
    /// The formula's optimum.
    Optimum,
    /// The smallest buffer of the range, or the size of bursts: for latency.
    RangeLow,
    /// The measured exponential says none; this many packets were best in the paper's simulations.
    Simulation,
    /// The formula's optimum is larger than a bandwidth-delay product; beyond that, long transfers gain only at the expense of
    /// short ones.
    BandwidthDelay,
    /// Flows that persist, by the size of their transfers or by their number: C T / sqrt(n).
    SquareRoot,
    /// Flows that may persist, between C T / sqrt(n) and the best buffer for transfers that come and go.
    BetweenRules,
    /// C T / sqrt(n), as the link idles with the smaller buffer that a closed form asks for.
    Floor,
    /// Between the best buffer of the nearest link within the regression's range and the closed form's.
    Edge,
    /// Between the formula's optimum and C T, as an overloaded link in the simulator gains little by more.
    Crowd,
    /// A buffer that the simulator found better than the formula's.
    Simulator,
}

/// The buffers within which throughput stays above 90 % of the best; `None` where it has no end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BufferRange {
    /// The smallest.
    pub low: Packets,
    /// The largest.
    pub high: Option<Packets>,
}

/// The source of a buffer's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Closed forms, the regression, or the loss form given or fitted.
    Formula,
    /// The simulation, interpolated between the buffers tried.
    Simulation,
}

/// The rule that gives a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// The advice.
    Recommended,
    /// The formula's optimum, before a simulation.
    Formula,
    /// The buffer that the device has.
    Available,
    /// The best for transfers that come and go.
    Transfers,
    /// The best for long flows (Prasad et al., eq. 11).
    LongFlows,
    /// 2 C T.
    TwiceBandwidthDelay,
    /// C T.
    BandwidthDelay,
    /// C T / sqrt(n).
    SquareRoot,
    /// C T / sqrt(n) for CUBIC.
    Cubic,
    /// C T / sqrt(n) for BBR.
    Bbr,
    /// A few packets, however fast the link is.
    Tiny,
    /// Prasad et al.'s, for inputs slower than the output.
    SlowInputs,
}

impl Rule {
    /// Its name in tables and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Rule::Recommended => "recommended",
            Rule::Formula => "formula",
            Rule::Available => "available",
            Rule::Transfers => "transfers",
            Rule::LongFlows => "L-model",
            Rule::TwiceBandwidthDelay => "2 BDP",
            Rule::BandwidthDelay => "BDP",
            Rule::SquareRoot => "BDP/sqrt(n)",
            Rule::Cubic => "Cubic",
            Rule::Bbr => "BBR",
            Rule::Tiny => "tiny",
            Rule::SlowInputs => "paper",
        }
    }

    /// Whether it divides C T by the square root of the number of flows.
    fn counts_flows(self) -> bool {
        matches!(self, Rule::SquareRoot | Rule::Cubic | Rule::Bbr)
    }
}

/// A buffer and its effect on the link.
#[derive(Debug, Clone, PartialEq)]
pub struct BufferChoice {
    /// The source of the numbers.
    pub source: Source,
    /// Its rule.
    pub rule: Rule,
    /// The buffer.
    pub buffer: Packets,
    /// The buffer in bytes.
    pub bytes: Bytes,
    /// The delay of a full buffer.
    pub worst_delay: Duration,
    /// The mean queueing delay, where it is predicted.
    pub mean_delay: Option<Duration>,
    /// The loss, where it is predicted and the form reaches so far.
    pub loss: Option<f64>,
    /// Share of the link that is used, where it is predicted.
    pub used: Option<f64>,
    /// Flows that are active at a time.
    pub flows: u64,
    /// The mean throughput of these flows, where it is predicted: together they use that share of the link.
    pub flow: Option<Rate>,
    /// Throughput of a short transfer.
    pub short: Option<Rate>,
    /// Throughput of a bulk transfer.
    pub bulk: Option<Rate>,
    /// The standard errors of both, if they are simulated.
    pub errors: Option<[Rate; 2]>,
}

/// The answer.
#[derive(Debug, Clone, PartialEq)]
pub struct RouterAdvice {
    /// The question.
    pub question: RouterQuestion,
    /// C_out / C_in.
    pub gamma: f64,
    /// Flows that are active at a time: given, or as many as fill the link.
    pub flows: u64,
    /// The loss form that is reckoned with.
    pub form: Form,
    /// The form that the capacity ratio and the tail call for; `None` where neither is good.
    pub expected: Option<Form>,
    /// Where the buffer comes from.
    pub basis: Basis,
    /// The recommended buffer.
    pub recommended: BufferChoice,
    /// The formula's buffer.
    pub by_formula: BufferChoice,
    /// The most to recommend: C T, and for short transfers the buffer in favour of bulk ones.
    pub most: Packets,
    /// The simulation's results, if there was one.
    pub simulated: Option<Simulated>,
    /// The reason why no simulation checked it, if one was wanted.
    pub unsimulated: Option<String>,
    /// Around it, the buffers that keep 90 % of the formula's best throughput; `None` where there is no such range.
    pub range: Option<BufferRange>,
    /// The transfers to report throughputs for: a short one and a bulk one.
    pub transfers: [Bytes; 2],
    /// The mean size of a transfer: given, typical, or as large as the flows need to fill the link.
    pub size_mean: Bytes,
    /// Share of the link that the flows use if nothing is lost or queued; above 1 they fill it.
    pub offered: f64,
    /// Whether closed forms would give the loss and the rates of flows that persist where flows come and go, or of a full link where it
    /// has room, so that they give none.
    pub assumes_shares: bool,
    /// Whether a quarter more flows would get a larger buffer by formula, as their assumed size is smaller.
    pub grows_with_flows: bool,
    /// The rules for persistent flows and for transfers, if both may hold.
    pub two_rules: Option<TwoRules>,
    /// The other rules' buffers.
    pub rules: Vec<BufferChoice>,
    /// The device's buffer.
    pub available: Option<BufferChoice>,
    /// Inputs outside the prediction's range.
    pub outside: Vec<Outside>,
    /// Assumptions.
    pub assumptions: Vec<String>,
    /// How each number came about.
    pub formulas: Vec<Formula>,
}

impl BufferChoice {
    /// The rate of the transfers that `favour` is about.
    pub(super) fn rate(&self, favour: Favour) -> Option<Rate> {
        if favour == Favour::Throughput { self.bulk } else { self.short }
    }

    /// The standard error of that rate; zero for a formula's.
    pub(super) fn error(&self, favour: Favour) -> Rate {
        let [short, bulk] = self.errors.unwrap_or_default();
        if favour == Favour::Throughput { bulk } else { short }
    }

    /// The bytes of the whole packets that are printed; a device's own buffer as it was given.
    pub(super) fn whole_bytes(&self) -> Bytes {
        let packets = libm::round(self.buffer.get()).max(1.0);
        match self.rule {
            Rule::Available => self.bytes,
            _ => self.bytes.scaled(packets / self.buffer.get()),
        }
    }

    /// The delay of a full buffer to three digits, as the table prints it.
    pub(super) fn full_delay(&self) -> Duration {
        Duration::from_secs_f64(three_digits(self.worst_delay.as_secs_f64()))
    }

    /// The buffer with its numbers in `simulated`; without numbers if none of its size was tried.
    pub(super) fn simulated(&self, simulated: &Simulated) -> BufferChoice {
        let found = simulated.at(self.buffer);
        let link = simulated.rate.scaled(1.0 / simulated.scale);
        let flows = found.as_ref().map(|found| libm::round(found.flows).max(1.0) as u64);
        BufferChoice {
            source: Source::Simulation,
            mean_delay: found.as_ref().map(|found| found.mean_delay),
            loss: found.as_ref().map(|found| found.loss),
            used: found.as_ref().map(|found| found.used),
            flows: flows.unwrap_or(self.flows),
            flow: found
                .as_ref()
                .zip(flows)
                .map(|(found, flows)| link.scaled(found.used / flows as f64)),
            short: found.as_ref().and_then(|found| found.short.known()),
            bulk: found.as_ref().and_then(|found| found.bulk.known()),
            errors: found.map(|found| [found.short.error, found.bulk.error]),
            ..self.clone()
        }
    }

    /// The buffer on a link where nothing queues.
    pub(super) fn without_queue(self) -> BufferChoice {
        let mean_delay = Some(Duration::ZERO);
        BufferChoice { mean_delay, loss: Some(0.0), ..self.unpredicted() }
    }

    /// The buffer without its numbers.
    fn unpredicted(self) -> BufferChoice {
        BufferChoice {
            mean_delay: None,
            loss: None,
            used: None,
            flow: None,
            short: None,
            bulk: None,
            errors: None,
            ..self
        }
    }
}

impl RouterAdvice {
    /// Whether there is a choice that a simulation could check.
    pub fn can_be_simulated(&self) -> bool {
        self.basis != Basis::NothingQueues
    }

    /// The simulation, if it decided the recommendation.
    pub fn decided(&self) -> Option<&Simulated> {
        self.simulated.as_ref().filter(|simulated| simulated.decides())
    }

    /// The buffer of another rule, if it is among the alternatives.
    pub(super) fn of_rule(&self, rule: Rule) -> Option<&BufferChoice> {
        self.rules.iter().find(|choice| choice.rule == rule)
    }

    /// Whether the recommended buffer is not the formula's.
    pub(super) fn is_moved(&self) -> bool {
        self.by_formula.buffer != self.recommended.buffer
    }

    /// The simulation, if the numbers of the answer are its.
    pub(super) fn source(&self) -> Option<&Simulated> {
        let is_simulated = self.recommended.source == Source::Simulation;
        self.simulated.as_ref().filter(|_| is_simulated)
    }

    /// `choice` with numbers of the same source as the recommended buffer's. A part of a link has no buffer of a rule with sqrt(n): in
    /// proportion, it would be too small.
    pub(super) fn shown(&self, choice: &BufferChoice) -> BufferChoice {
        let Some(simulated) = self.source() else { return choice.clone() };
        match choice.rule.counts_flows() && !simulated.decides() {
            true => BufferChoice { source: Source::Simulation, ..choice.clone().unpredicted() },
            false => choice.simulated(simulated),
        }
    }

    /// The buffers that keep 90 % of throughput, by the source of the answer: for latency of the best, otherwise of the recommended
    /// buffer's.
    pub(super) fn kept(&self) -> Option<BufferRange> {
        match (self.source(), self.question.favour) {
            (Some(simulated), Favour::Latency) => simulated.keeping(Favour::Latency, self.most),
            (Some(simulated), favour) => simulated.range(favour, self.recommended.buffer),
            (None, _) => self.range,
        }
    }

    /// Whether closed forms stand for the regression, which does not cover the link.
    pub fn is_closed_form(&self) -> bool {
        !self.outside.is_empty()
    }

    /// This advice, which no simulation checked, for this reason.
    #[must_use]
    pub fn unsimulated(self, why: String) -> RouterAdvice {
        RouterAdvice { unsimulated: Some(why), ..self }
    }
}
