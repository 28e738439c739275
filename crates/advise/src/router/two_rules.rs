//! Two rules that hold for different traffic, and the way between them.

use sweetspot_theory::Packets;
use sweetspot_theory::TheoryError;

use super::{Basis, BufferChoice, Favour, RouterAdvice, size};

/// The buffers of two rules. The number of flows and the size of their transfers decide how far each of them holds.
#[derive(Debug, Clone, PartialEq)]
pub struct TwoRules {
    /// 0 if all transfers come and go, 1 if all flows persist.
    pub persistence: f64,
    /// C T / sqrt(n): keeps the link almost full if all flows persist (Appenzeller et al.).
    pub persistent: BufferChoice,
    /// The best buffer by formula for bulk transfers that come and go (Prasad et al.).
    pub transfers: BufferChoice,
}

/// The buffer at `share` of the way from `one` to `other`, by ratio.
pub(super) fn between(other: Packets, one: Packets, share: f64) -> Result<Packets, TheoryError> {
    Packets::new(one.get() * libm::pow(other.get() / one.get(), share))
}

/// The larger of two buffers.
pub(super) fn larger(one: Packets, other: Packets) -> Packets {
    if one > other { one } else { other }
}

impl RouterAdvice {
    /// The rules that lead to the recommended buffer of flows that persist, or may.
    pub(super) fn persistent_why(&self) -> String {
        let (n, size) = (self.flows, self.size_mean);
        let Some(two) = &self.two_rules else { return String::new() };
        let (few, many) = (two.persistent.buffer.get(), two.transfers.buffer.get());
        if n == 1 && self.basis == Basis::SquareRoot {
            return "A single flow needs C x T to keep the link busy while it recovers from a loss. More only adds delay."
                .to_owned();
        }
        let is_known = self.question.mean_size().is_some();
        if self.basis == Basis::BetweenRules {
            let between = match is_known {
                true => format!("{n} flows of {size} lie between."),
                false => {
                    format!("The sizes of the {n} flows are not known: --size-mean would decide.")
                }
            };
            return format!(
                "C T / sqrt(n), {few:.0} packets, keeps the link almost full if flows persist; {many:.0} packets suit \
                 transfers that come and go. {between}"
            );
        }
        let persist = match is_known {
            false => format!("{n} flows fill this link only if they persist"),
            true => format!("The {n} flows, of {size} on average, last long enough to persist"),
        };
        // A packet of the simulated link is no difference.
        if self.recommended.buffer.get() <= 1.05 * few {
            return format!(
                "{persist}. C T / sqrt(n) keeps the link almost full then, and more only adds delay."
            );
        }
        let rule = format!("C T / sqrt(n), {few:.0} packets,");
        match self.decided().and_then(|found| found.at(two.persistent.buffer)) {
            Some(small) => format!(
                "{persist}. In the simulator {rule} would use {:.1} % of the link.",
                small.used * 100.0
            ),
            None => format!("{persist}. {rule} would not hold the bursts of single flows."),
        }
    }

    /// The reason why more flows get a larger buffer, if they do.
    pub(super) fn more_flows_words(&self) -> &'static str {
        match self.grows_with_flows {
            true => {
                " More flows would need a larger buffer: they fill the link with shorter transfers, which come and go, and \
                 to those a loss costs more."
            }
            false => "",
        }
    }

    /// The rule for the other case, and the cost of the wrong one.
    pub(super) fn rules_words(&self) -> String {
        let Some(two) = self.two_rules.as_ref() else { return self.crowd_words() };
        let many = two.transfers.buffer.get();
        if self.basis != Basis::SquareRoot || self.flows == 1 {
            return String::new();
        }
        if self.question.mean_size().is_some() {
            return self.synchronised_words(many);
        }
        format!(
            " If the link is not full at busy times, transfers come and go: then take up to {many:.0} packets ({} when \
             full).",
            two.transfers.worst_delay
        )
    }

    // Appenzeller, Keslassy, McKeown 2004: flows in step are common below 100 and very rare above 500.
    /// The remark that the rule for persistent flows may be too small for a few of them.
    fn synchronised_words(&self, bdp: f64) -> String {
        let is_rule = self.basis == Basis::SquareRoot && self.decided().is_none();
        if !is_rule || !(2..100).contains(&self.flows) {
            return String::new();
        }
        format!(
            " Fewer than a hundred flows often lose packets in step: if the link is not full at busy times, take up to \
             C T, {bdp:.0} packets."
        )
    }

    /// The remark that transfers persist if enough flows share the link.
    fn crowd_words(&self) -> String {
        let q = &self.question;
        let is_bulk = q.favour == Favour::Throughput && self.basis != Basis::NothingQueues;
        match q.flows {
            None if is_bulk && size::may_persist(q, self.size_mean) => {
                " If n such flows share the link, C T / sqrt(n) is enough: their number would decide.".to_owned()
            }
            Some(n) if is_bulk && q.mean_size().is_none() => format!(
                " If all {n} flows persist instead, C T / sqrt(n) keeps the link almost full, and more only adds delay."
            ),
            _ => String::new(),
        }
    }

    /// The buffers for flows that persist and for transfers that come and go, if either may hold.
    fn bounds(&self) -> Option<[Packets; 2]> {
        let root = self.rules.iter().find(|rule| rule.name == "BDP/sqrt(n)")?.buffer;
        let q = &self.question;
        let is_unknown = q.mean_size().is_none() && q.favour == Favour::Throughput;
        let [one, other] = match &self.two_rules {
            Some(two) => [two.persistent.buffer, two.transfers.buffer],
            None if is_unknown && q.flows.is_some() => [root, self.recommended.buffer],
            None => return None,
        };
        Some(if one < other { [one, other] } else { [other, one] })
    }

    /// The verdict about the device's buffer.
    pub(super) fn verdict(&self, a: &BufferChoice) -> &'static str {
        if let Some([low, high]) = self.bounds() {
            return match a.buffer {
                buffer if buffer < low => "too small by both rules: the link idles at times",
                buffer if buffer > high => "more than either rule asks for: configure less",
                buffer if buffer < self.recommended.buffer => {
                    "between the two rules: enough if all flows persist"
                }
                _ => "enough",
            };
        }
        match self.kept() {
            Some(range) if a.buffer < range.low => "too small: the rate is below 90 % of its best",
            Some(range) if range.high.is_some_and(|h| a.buffer > h) => {
                "more than is good: the rate is below 90 % of its best; configure less"
            }
            Some(_) => "within the range",
            None if a.buffer > self.recommended.buffer => "more than needed: configure less",
            None if a.buffer < self.recommended.buffer => "less than recommended",
            None => "enough",
        }
    }
}
