//! Two rules for different kinds of traffic, and the transition between them.

use core::cmp::Ordering;

use sweetspot_theory::Packets;
use sweetspot_units::Rate;

use super::simulated::SHARE;
use super::table::printed;
use super::{Basis, BufferChoice, Favour, RouterAdvice, Rule, size};

/// The buffers of two rules. The number of flows and the size of their transfers decide how far each rule applies.
#[derive(Debug, Clone, PartialEq)]
pub struct TwoRules {
    /// 0 if all transfers come and go, 1 if all flows persist.
    pub persistence: f64,
    /// C T / sqrt(n): keeps the link almost full if all flows persist (Appenzeller et al.).
    pub persistent: BufferChoice,
    /// The best buffer by formula for bulk transfers that come and go (Prasad et al.).
    pub transfers: BufferChoice,
}

/// The rates of `one` and `other` for `favour`, as printed in the table; equal if chance explains the difference.
fn compared(one: &BufferChoice, other: &BufferChoice, favour: Favour) -> Option<(f64, f64)> {
    let (rate, own) = one.rate(favour).zip(other.rate(favour))?;
    // A difference within two standard errors may be chance.
    let chance = 2.0 * libm::hypot(one.error(favour).as_f64(), other.error(favour).as_f64());
    let differ = libm::fabs(rate.as_f64() - own.as_f64()) > chance;
    let rate = if differ { rate } else { own };
    Some((printed(rate, one.source), printed(own, other.source)))
}

impl RouterAdvice {
    /// The reasons for a recommended buffer of flows that persist, or may.
    pub(super) fn persistent_why(&self) -> Vec<String> {
        let (n, size) = (self.flows, self.size_mean);
        let Some(two) = &self.two_rules else { return Vec::new() };
        let (few, many) = (two.persistent.buffer.get(), two.transfers.buffer.get());
        if n == 1 && self.basis == Basis::SquareRoot {
            return vec![
                "A single flow needs C x T to keep the link busy while it recovers from a loss."
                    .to_owned(),
                "More only adds delay.".to_owned(),
            ];
        }
        let is_known = self.question.mean_size().is_some();
        if self.basis == Basis::BetweenRules {
            let between = match is_known {
                true => format!("{n} flows of {size} lie between."),
                false => {
                    format!("The sizes of the {n} flows are not known: --size-mean would decide.")
                }
            };
            return vec![
                format!(
                    "C T / sqrt(n), {few:.0} packets, keeps the link almost full if flows persist{}; {many:.0} packets suit \
                     transfers that come and go.",
                    if self.source().is_some() {
                        ", which the simulation does not test"
                    } else {
                        ""
                    }
                ),
                between,
            ];
        }
        let persist = match is_known {
            false => format!("{n} flows fill this link only if they persist"),
            true => format!("The {n} flows, of {size} on average, last long enough to persist"),
        };
        if !self.exceeds_square_root() {
            let rule = "C T / sqrt(n) keeps the link almost full then, and more only adds delay.";
            return vec![format!("{persist}."), rule.to_owned()];
        }
        let rule = format!("C T / sqrt(n), {few:.0} packets,");
        let small = match self.decided().and_then(|found| found.at(two.persistent.buffer)) {
            Some(small) => {
                format!(
                    "In the simulator {rule} would use {:.1} % of the link.",
                    small.used * 100.0
                )
            }
            None => format!("{rule} would not hold the bursts of single flows."),
        };
        vec![format!("{persist}."), small]
    }

    /// Whether the buffer of persistent flows is larger than C T / sqrt(n). One packet more of the simulated link does not matter.
    pub(super) fn exceeds_square_root(&self) -> bool {
        let own = self.recommended.buffer.get();
        self.two_rules.as_ref().is_some_and(|two| own > 1.05 * two.persistent.buffer.get())
    }

    /// The remark that more flows get a larger buffer, if they do.
    pub(super) fn more_flows_words(&self) -> Option<String> {
        self.grows_with_flows.then(|| {
            "More flows would need a larger buffer: they fill the link with shorter transfers, which come and go, and \
             losses cost those more."
                .to_owned()
        })
    }

    /// The buffer of the other rule, and the cost of choosing the wrong one.
    pub(super) fn rules_words(&self) -> Option<String> {
        let Some(two) = self.two_rules.as_ref() else { return self.crowd_words() };
        let many = two.transfers.buffer.get();
        if self.basis != Basis::SquareRoot || self.flows == 1 {
            return None;
        }
        if self.question.mean_size().is_some() {
            return self.synchronised_words(many);
        }
        Some(format!(
            "If the link is not full at busy times, transfers come and go: then take up to {many:.0} packets ({} when \
             full).",
            two.transfers.worst_delay
        ))
    }

    // Appenzeller, Keslassy, McKeown 2004: synchronised flows are common below 100 flows and very rare above 500.
    /// The remark that the rule for persistent flows may give too small a buffer for a few flows.
    fn synchronised_words(&self, bdp: f64) -> Option<String> {
        let is_rule = self.basis == Basis::SquareRoot && self.decided().is_none();
        if !is_rule || !(2..100).contains(&self.flows) {
            return None;
        }
        Some(format!(
            "Fewer than a hundred flows often lose packets in step: if the link is not full at busy times, take up to \
             C T, {bdp:.0} packets."
        ))
    }

    /// The remark that transfers persist if enough flows share the link.
    fn crowd_words(&self) -> Option<String> {
        let q = &self.question;
        let is_bulk = q.favour == Favour::Throughput && self.has_predictions();
        match q.flows {
            None if is_bulk && size::may_persist(q, self.size_mean) => {
                Some("If n such flows share the link, C T / sqrt(n) is enough: their number would decide.".to_owned())
            }
            Some(_) if is_bulk && q.mean_size().is_some() => self.come_and_go_words(),
            Some(n) if is_bulk && q.mean_size().is_none() => Some(format!(
                "If all {n} flows persist instead, C T / sqrt(n) keeps the link almost full, and more only adds delay."
            )),
            _ => None,
        }
    }

    /// The remark that transfers of the given size are too short for the rule for persistent flows.
    fn come_and_go_words(&self) -> Option<String> {
        let root = self.of_rule(Rule::SquareRoot)?.buffer;
        let rule = self.of_rule(Rule::BandwidthDelay)?.buffer;
        let lasting = size::lasting(&self.question, rule)?;
        (root < self.recommended.buffer).then(|| {
            format!(
                "Transfers of {} come and go; C T / sqrt(n), {:.0} packets, is enough for {} of {lasting} or more.",
                self.size_mean,
                root.get(),
                if self.flows == 1 { "one".to_owned() } else { format!("{} flows", self.flows) },
            )
        })
    }

    /// The buffers for persistent flows and for transfers that come and go, if either rule may apply.
    fn bounds(&self) -> Option<[Packets; 2]> {
        let root = self.of_rule(Rule::SquareRoot)?.buffer;
        let q = &self.question;
        let is_unknown = q.mean_size().is_none() && q.favour == Favour::Throughput;
        let [one, other] = match &self.two_rules {
            Some(two) => [two.persistent.buffer, two.transfers.buffer],
            None if is_unknown && q.flows.is_some() => [root, self.recommended.buffer],
            None => return None,
        };
        Some(if one < other { [one, other] } else { [other, one] })
    }

    /// The verdict on the device's buffer.
    pub(super) fn verdict(&self, a: &BufferChoice) -> String {
        if !self.has_predictions() {
            let is_small = a.buffer < self.recommended.buffer;
            return if is_small { "too small" } else { "enough" }.to_owned();
        }
        if let Some([low, high]) = self.bounds() {
            return match a.buffer {
                buffer if buffer < low => format!(
                    "too small by both rules ({:.0} and {:.0} packets): the link idles at times",
                    low.get(),
                    high.get()
                ),
                buffer if buffer > high => {
                    format!("more than either rule asks for: {}", self.trade(a))
                }
                buffer if buffer < self.recommended.buffer => {
                    let tested = match self.source() {
                        Some(_) => ", which the simulation does not test",
                        None => "",
                    };
                    format!(
                        "between C T / sqrt(n) and the buffer for transfers that come and go: enough if all flows persist{tested}"
                    )
                }
                _ => self.enough().to_owned(),
            };
        }
        let r = &self.recommended;
        let rate = |choice: &BufferChoice| choice.rate(self.question.favour).map(Rate::as_f64);
        // Uses the rates in the table. For latency, the recommended buffer itself keeps only 90 % of the best rate.
        let (share, best) = match self.question.favour {
            Favour::Latency => (1.0, "their best rate"),
            _ => (SHARE, "their rate with the recommended buffer"),
        };
        let keeps = rate(a).zip(rate(r)).map(|(rate, own)| rate >= share * own);
        let words = match (keeps, a.buffer.partial_cmp(&r.buffer)) {
            (None, _) if self.source().is_none() && a.used.is_none() => {
                "too small: below C T / sqrt(n) the link idles at times"
            }
            (Some(false), Some(Ordering::Less)) => {
                return format!("too small: {} get less than 90 % of {best}", self.class());
            }
            (_, Some(Ordering::Greater)) if r.buffer.get() >= SHARE * a.buffer.get() => {
                return format!("{}; {:.0} would do", self.enough(), r.buffer.get());
            }
            (_, Some(Ordering::Greater)) => {
                return format!("more than recommended: {}", self.trade(a));
            }
            (None, Some(Ordering::Less)) => return self.cost_of_small(a),
            _ => self.enough(),
        };
        words.to_owned()
    }

    /// The verdict on a buffer that suffices. A simulation may contradict a formula.
    fn enough(&self) -> &'static str {
        match self.source().is_none() && !self.question.is_measured() && self.can_be_simulated() {
            true => "enough by this estimate; simulate it to be sure",
            false => "enough",
        }
    }

    /// The effect of a buffer smaller than the recommended one, if its rates are unknown.
    fn cost_of_small(&self, smaller: &BufferChoice) -> String {
        let losses = smaller.loss.zip(self.recommended.loss);
        let effect = match losses {
            Some((loss, own)) => {
                format!("loses {} instead of {}", self.percent(loss), self.percent(own))
            }
            None => "no formula predicts the rates".to_owned(),
        };
        format!("less than recommended: {effect}")
    }

    /// The larger buffer of the table with the best rate, if it is faster than the recommended one, with its gain and its cost.
    pub(super) fn larger_words(&self) -> Option<String> {
        let (r, favour) = (&self.recommended, self.question.favour);
        let rows = self.rows();
        let faster = rows.iter().filter(|row| {
            row.buffer > r.buffer && compared(row, r, favour).is_some_and(|(rate, own)| rate > own)
        });
        let best = faster.max_by_key(|row| row.rate(favour))?;
        Some(format!("With {:.0} packets, {}.", best.buffer.get(), self.trade(best)))
    }

    /// The gain and the cost of a larger buffer than the recommended one, by the numbers in the table.
    fn trade(&self, larger: &BufferChoice) -> String {
        let r = &self.recommended;
        let (whom, favour) = (self.class(), self.question.favour);
        let less = self.cost_of_less(larger);
        // Rates of closed forms are too rough to compare.
        let is_rough = self.is_closed_form() && self.source().is_none();
        let rates = compared(larger, r, favour).filter(|_| !is_rough);
        let delay = format!(
            "when full it delays all traffic by {} instead of {}",
            larger.full_delay(),
            r.full_delay()
        );
        match rates {
            Some((rate, own)) if rate > own => {
                format!("{whom} get {rate} instead of {own} Mbit/s, but {delay}")
            }
            Some((rate, own)) if rate < own => {
                format!("{whom} get {rate} instead of {own} Mbit/s, and {delay}; {less}")
            }
            Some(_) => format!("{whom} are no faster, and {delay}; {less}"),
            None => format!("{delay}; {less}"),
        }
    }

    /// The advice to configure less than `larger`, and what this costs bulk transfers.
    fn cost_of_less(&self, larger: &BufferChoice) -> String {
        let r = &self.recommended;
        match compared(larger, r, Favour::Throughput) {
            Some((large, own)) if own < large => {
                format!("configure less, although bulk transfers fall from {large} to {own} Mbit/s")
            }
            Some(_) => "configure less".to_owned(),
            None => "configure less; the cost to bulk transfers is not predicted".to_owned(),
        }
    }
}
