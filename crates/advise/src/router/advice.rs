//! The router advice and its numbers.

use sweetspot_theory::Packets;
use sweetspot_theory::router::capacity_ratio::Form;
use sweetspot_theory::router::traffic::Outside;
use sweetspot_units::{Bytes, Duration, Rate};

use super::simulated::{Simulated, SimulatedErrors};
use super::{Favour, RouterQuestion, TwoRules};
use crate::Formula;
use crate::text::three_digits;

/// Where the recommended buffer comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// The inputs together cannot exceed the output rate, so nothing queues.
    NothingQueues,
    /// TCP's initial window: too few packets are in flight for the formulas.
    InitialWindow,
    /// The formula's optimum.
    Optimum,
    /// The smallest buffer of the range, or the size of bursts: for latency.
    RangeLow,
    /// The exponential loss form has no positive optimum; the paper's simulations (Table II) favour this many packets.
    Simulation,
    /// The formula's optimum exceeds the bandwidth-delay product C T. Above C T, long transfers gain only at the expense of short
    /// ones.
    BandwidthDelay,
    /// C T / sqrt(n), because the flows persist, judged by the size of their transfers or by their number.
    SquareRoot,
    /// Flows that may persist: between C T / sqrt(n) and the best buffer for transfers that come and go.
    BetweenRules,
    /// C T / sqrt(n), because the link would idle with the smaller buffer of the closed form.
    Floor,
    /// Between the buffer of the closed form and the best buffer of the nearest link within the regression's range.
    Edge,
    /// Between the formula's optimum and C T: on an overloaded link, the simulator gains little from a larger buffer.
    Crowd,
    /// A buffer that the simulator found better than the formula's.
    Simulator,
}

/// The buffers that keep throughput above 90 % of the best; `None` if the range has no upper end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BufferRange {
    /// The smallest buffer of the range.
    pub low: Packets,
    /// The largest buffer of the range.
    pub high: Option<Packets>,
}

/// The source of a buffer's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Closed forms, the regression, or a given or fitted loss form.
    Formula,
    /// The simulation, interpolated between the buffers tried.
    Simulation,
}

/// The rule that determines a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// The recommended buffer.
    Recommended,
    /// The formula's optimum, before a simulation.
    Formula,
    /// The buffer that the device has.
    Available,
    /// The best buffer for transfers that come and go.
    Transfers,
    /// The best buffer for long flows (Prasad et al., eq. 11).
    LongFlows,
    /// 2 C T.
    TwiceBandwidthDelay,
    /// C T.
    BandwidthDelay,
    /// C T / sqrt(n).
    SquareRoot,
    /// The rule C T / sqrt(n), adapted to CUBIC.
    Cubic,
    /// The rule C T / sqrt(n), adapted to BBR.
    Bbr,
    /// A few packets, at any link rate.
    Tiny,
    /// The rule of Prasad et al. for inputs slower than the output.
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

/// A buffer and its effect on the link's traffic.
#[derive(Debug, Clone, PartialEq)]
pub struct BufferChoice {
    /// The source of the numbers.
    pub source: Source,
    /// The rule that gives the buffer.
    pub rule: Rule,
    /// The buffer.
    pub buffer: Packets,
    /// The buffer in bytes.
    pub bytes: Bytes,
    /// The delay of a full buffer.
    pub worst_delay: Duration,
    /// The mean queueing delay, if predicted.
    pub mean_delay: Option<Duration>,
    /// The loss rate, if predicted and within the model's range.
    pub loss: Option<f64>,
    /// The share of the link in use, if predicted.
    pub used: Option<f64>,
    /// The number of flows active at a time.
    pub flows: u64,
    /// The mean throughput of these flows, if predicted; together they use that share of the link.
    pub flow: Option<Rate>,
    /// Throughput of a short transfer.
    pub short: Option<Rate>,
    /// Throughput of a long transfer.
    pub bulk: Option<Rate>,
    /// The standard errors of `short` and `bulk`, if simulated.
    pub errors: Option<[Rate; 2]>,
    /// The standard errors of the other numbers, if simulated.
    pub noise: Option<SimulatedErrors>,
}

/// The router advice.
#[derive(Debug, Clone, PartialEq)]
pub struct RouterAdvice {
    /// The question.
    pub question: RouterQuestion,
    /// C_out / C_in.
    pub gamma: f64,
    /// The number of flows active at a time: given, or enough to fill the link.
    pub flows: u64,
    /// The loss form used.
    pub form: Form,
    /// The form that the capacity ratio and the tail call for; `None` if neither fits well.
    pub expected: Option<Form>,
    /// The origin of the recommended buffer.
    pub basis: Basis,
    /// The recommended buffer.
    pub recommended: BufferChoice,
    /// The formula's buffer.
    pub by_formula: BufferChoice,
    /// The largest buffer to recommend: C T, or for short transfers the buffer recommended for bulk transfers.
    pub most: Packets,
    /// The results of a simulation, if one ran.
    pub simulated: Option<Simulated>,
    /// The reason why a requested simulation did not run.
    pub unsimulated: Option<String>,
    /// The buffers that keep 90 % of the best throughput by formula; `None` if there is no such range.
    pub range: Option<BufferRange>,
    /// Sizes of the short and the bulk transfer in `short` and `bulk`.
    pub transfers: [Bytes; 2],
    /// The mean size of a transfer: given, typical, or large enough for the flows to fill the link.
    pub size_mean: Bytes,
    /// The share of the link that the flows could use without loss and queueing; above 1 they fill it.
    pub offered: f64,
    /// Whether the closed forms for loss and rates do not hold, and are therefore omitted: they assume persistent flows on a full
    /// link.
    pub assumes_shares: bool,
    /// Whether a quarter more flows would get a larger buffer by formula, because their assumed size is smaller.
    pub grows_with_flows: bool,
    /// The rules for persistent flows and for transfers, if both may apply.
    pub two_rules: Option<TwoRules>,
    /// The buffers of the other rules.
    pub rules: Vec<BufferChoice>,
    /// The device's buffer and its effect, if given.
    pub available: Option<BufferChoice>,
    /// Inputs outside the regression's range.
    pub outside: Vec<Outside>,
    /// The assumptions behind the numbers, as sentences.
    pub assumptions: Vec<String>,
    /// The formula behind each number.
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

    /// The size as printed: in whole packets, except for a device's own buffer, which is printed as given.
    pub(super) fn whole_bytes(&self) -> Bytes {
        let packets = libm::round(self.buffer.get()).max(1.0);
        match self.rule {
            Rule::Available => self.bytes,
            _ => self.bytes.scaled(packets / self.buffer.get()),
        }
    }

    /// The delay of a full buffer, of the size and to the digits that the table prints.
    pub(super) fn full_delay(&self) -> Duration {
        // Among very many flows, a rule's buffer may be less than a byte.
        let whole = self.whole_bytes().as_f64() / self.bytes.max(Bytes::new(1)).as_f64();
        Duration::from_secs_f64(three_digits(self.worst_delay.as_secs_f64() * whole))
    }

    /// This buffer with the numbers of `simulated`; without numbers if it lies outside the buffers tried.
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
            errors: found.as_ref().map(|found| [found.short.error, found.bulk.error]),
            noise: found.map(|found| found.errors),
            ..self.clone()
        }
    }

    /// This buffer on a link where nothing queues.
    pub(super) fn without_queue(self) -> BufferChoice {
        let mean_delay = Some(Duration::ZERO);
        BufferChoice { mean_delay, loss: Some(0.0), ..self.unpredicted() }
    }

    /// This buffer without predictions.
    pub(super) fn unpredicted(self) -> BufferChoice {
        BufferChoice {
            mean_delay: None,
            loss: None,
            used: None,
            flow: None,
            short: None,
            bulk: None,
            errors: None,
            noise: None,
            ..self
        }
    }
}

impl RouterAdvice {
    /// Whether a simulation could check the choice.
    pub fn can_be_simulated(&self) -> bool {
        self.has_predictions()
    }

    /// Whether the answer has loss, queue and rates, and not the buffer alone.
    pub(super) fn has_predictions(&self) -> bool {
        !matches!(self.basis, Basis::NothingQueues | Basis::InitialWindow)
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

    /// The simulation, if it is the source of the numbers in the answer.
    pub(super) fn source(&self) -> Option<&Simulated> {
        let is_simulated = self.recommended.source == Source::Simulation;
        self.simulated.as_ref().filter(|_| is_simulated)
    }

    /// `choice` with numbers from the source used for the recommended buffer. A simulation of a scaled-down link has no
    /// numbers for a rule with sqrt(n), because a buffer scaled in proportion would be too small.
    pub(super) fn shown(&self, choice: &BufferChoice) -> BufferChoice {
        let Some(simulated) = self.source() else { return choice.clone() };
        match choice.rule.counts_flows() && !simulated.decides() {
            true => BufferChoice { source: Source::Simulation, ..choice.clone().unpredicted() },
            false => choice.simulated(simulated),
        }
    }

    /// Whether the numbers of `choice` are interpolated between simulated buffers.
    pub(super) fn is_interpolated(&self, choice: &BufferChoice) -> bool {
        let simulated = self.source().filter(|_| choice.used.is_some());
        simulated.is_some_and(|simulated| !simulated.is_tried(choice.buffer))
    }

    /// The buffers that keep 90 % of throughput, from the source of the answer: of the best throughput for latency, otherwise of
    /// the recommended buffer's.
    pub(super) fn kept(&self) -> Option<BufferRange> {
        match (self.source(), self.question.favour) {
            (Some(simulated), Favour::Latency) => simulated.keeping(Favour::Latency, self.most),
            (Some(simulated), favour) => simulated.range(favour, self.recommended.buffer),
            (None, _) => self.range,
        }
    }

    /// Whether closed forms replace the regression, which does not cover the link.
    pub fn is_closed_form(&self) -> bool {
        !self.outside.is_empty()
    }

    /// This advice, with the reason why no simulation checked it.
    #[must_use]
    pub fn unsimulated(self, why: String) -> RouterAdvice {
        RouterAdvice { unsimulated: Some(why), ..self }
    }
}
