//! Two rules that hold for different traffic, and the way between them.

use sweetspot_theory::Packets;
use sweetspot_theory::TheoryError;
use sweetspot_theory::router::closed_loop::size_to_fill;

use super::{Basis, BufferChoice, Favour, RouterAdvice, RouterQuestion};

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

/// Packets of C T per flow up to which transfers that come and go fill the link: n flows do with 2 C T log2(M) / n packets on
/// average, and the largest mean simulated is M = 200.
const COME_AND_GO: f64 = 13.0;
/// From here on transfers would need more than 2400 packets on average, and flows count as persistent.
const PERSIST: f64 = 8.0 * COME_AND_GO;

/// The largest mean transfer that was simulated, in packets.
const LARGEST_MEAN: f64 = 200.0;
/// Transfers of this many times the size with which they fill the link count as persistent. In the simulator C T / sqrt(n) then uses
/// 95 % of the link or more (8 to 200 flows, C T of 250 and 1000 packets).
const LASTING: f64 = 50.0;
/// From this mean size on, in packets, no formula holds: it is the size with which flows of unknown size persist.
pub(super) const NOT_COVERED: f64 = 2400.0;

/// 0 if transfers come and go, 1 if the flows persist, and between that in proportion to a logarithm: of the mean size over the size
/// with which the flows fill the link in slow start, or of C T per flow where no size is known. `None` if the number of flows is
/// not known or bulk transfers are not favoured.
pub(super) fn persistence(q: &RouterQuestion, bdp: Packets) -> Option<f64> {
    let flows = q.flows.filter(|_| q.favour == Favour::Throughput)? as f64;
    let (ratio, end) = match q.mean_size() {
        None => (bdp.get() / flows / COME_AND_GO, PERSIST / COME_AND_GO),
        Some(size) => {
            let filling = size_to_fill(flows, q.load.unwrap_or(1.0), bdp, LARGEST_MEAN);
            (size.as_f64() / q.packet.as_f64() / filling, LASTING)
        }
    };
    Some((libm::log(ratio) / libm::log(end)).clamp(0.0, 1.0))
}

/// The buffer at `share` of the way from `one` to `other`, by ratio.
pub(super) fn between(other: Packets, one: Packets, share: f64) -> Result<Packets, TheoryError> {
    Packets::new(one.get() * libm::pow(other.get() / one.get(), share))
}

/// The larger of two buffers.
pub(super) fn larger(one: Packets, other: Packets) -> Packets {
    if one > other { one } else { other }
}

/// A share as whole percents.
fn whole(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

impl TwoRules {
    fn bounds(&self) -> [Packets; 2] {
        let [one, other] = [self.persistent.buffer, self.transfers.buffer];
        if one < other { [one, other] } else { [other, one] }
    }

    /// The share that the bulk transfers' rate with `buffer` is of the best.
    fn share_of_best(&self, buffer: &BufferChoice) -> Option<f64> {
        Some(buffer.bulk?.as_f64() / self.transfers.bulk?.as_f64())
    }

    fn cost(&self) -> String {
        let small = &self.persistent;
        match (self.share_of_best(small), small.used) {
            (Some(share), Some(used)) => format!(
                "; {:.0} packets give them {} of that rate and use {} of the link",
                small.buffer.get(),
                whole(share),
                whole(used)
            ),
            _ => String::new(),
        }
    }
}

impl RouterAdvice {
    /// The rules that lead to the recommended `buffer` of flows that persist, or may.
    pub(super) fn persistent_why(&self, buffer: &str) -> String {
        let n = self.flows;
        let Some(two) = &self.two_rules else { return format!("Take {buffer}.") };
        let (few, many) = (two.persistent.buffer.get(), two.transfers.buffer.get());
        let size = self.question.mean_size().map(|_| self.size_mean);
        if n == 1 && self.basis == Basis::SquareRoot {
            return format!(
                "Take {buffer}, C T: a single flow needs that much to keep the link busy while it recovers from a loss. \
                 More only adds delay."
            );
        }
        let persist = match (self.basis, size) {
            (Basis::BetweenRules, None) => {
                return format!(
                    "Take {buffer}, between two rules, as the sizes of the {n} flows are not known: their mean would \
                     decide."
                );
            }
            (Basis::BetweenRules, Some(size)) => {
                return format!(
                    "Take {buffer}, between two rules: {many:.0} packets suit transfers that come and go, and \
                     C T / sqrt(n), {few:.0} packets, flows that persist. {n} flows of {size} lie between."
                );
            }
            (_, None) => format!("{n} flows fill this link only if they persist"),
            (_, Some(size)) => {
                format!("the {n} flows, of {size} on average, last long enough to persist")
            }
        };
        // A packet of the simulated link is no difference.
        if self.recommended.buffer.get() <= 1.05 * few {
            return format!(
                "Take {buffer}, C T / sqrt(n): {persist}. That keeps the link almost full, and more only adds delay."
            );
        }
        let rule = format!("C T / sqrt(n), {few:.0} packets,");
        match self.decided().and_then(|found| found.at(two.persistent.buffer)) {
            Some(small) => format!(
                "Take {buffer}: {persist}. In the simulator {rule} would use {:.1} % of the link.",
                small.used * 100.0
            ),
            None => format!(
                "Take {buffer}: {persist}. {rule} would not hold the bursts of single flows."
            ),
        }
    }

    /// The rule behind each buffer, and the cost of the wrong one.
    pub(super) fn rules_words(&self) -> String {
        let Some(two) = self.two_rules.as_ref() else { return self.crowd_words() };
        let (small, large) = (&two.persistent, &two.transfers);
        let (n, few) = (self.flows, small.buffer.get());
        let (many, bulk) = (large.buffer.get(), self.transfers[1]);
        if self.question.mean_size().is_some() {
            return self.synchronised_words(many);
        }
        match self.basis {
            Basis::BetweenRules => format!(
                " If all persist, C T / sqrt(n), {few:.0} packets, keeps the link almost full. If they come and go, {many:.0} packets \
                 are best for bulk transfers of {bulk}{}.",
                two.cost()
            ),
            Basis::SquareRoot if n == 1 => String::new(),
            Basis::SquareRoot => format!(
                " If the link is not full at busy times, transfers come and go: then take up to C T, {many:.0} packets \
                 ({} when full).",
                large.worst_delay
            ),
            _ if few < many => format!(
                " If all {n} flows persist instead, C T / sqrt(n), {few:.0} packets, keeps the link almost full, and \
                 more only adds delay."
            ),
            _ => String::new(),
        }
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

    /// The remark that large transfers persist if more flows than fill the link share it.
    fn crowd_words(&self) -> String {
        let is_large = self.by_formula.used.is_none() && self.question.flows.is_none();
        let is_bulk = self.question.favour == Favour::Throughput;
        if !is_large || !is_bulk || self.basis == Basis::NothingQueues {
            return String::new();
        }
        " If n such flows share the link, C T / sqrt(n) is enough: their number would decide."
            .to_owned()
    }

    /// The verdict about the device's buffer.
    pub(super) fn available_words(&self) -> String {
        let Some(a) = &self.available else { return String::new() };
        let verdict = match (&self.two_rules, self.kept()) {
            (Some(two), _) if self.question.mean_size().is_some() => {
                let [low, high] = two.bounds();
                match a.buffer {
                    buffer if buffer < low => "too small: the link idles at times",
                    buffer if buffer > high => "more than is good: configure less",
                    buffer if buffer < self.recommended.buffer => "less than recommended",
                    _ => "enough",
                }
                .to_owned()
            }
            (Some(two), range) => two.verdict(a, range.map(|range| range.low)),
            (None, Some(range)) if a.buffer < range.low => {
                "too small: the rate is below 90 % of its best".to_owned()
            }
            (None, Some(range)) if range.high.is_some_and(|h| a.buffer > h) => {
                "more than is good: the rate is below 90 % of its best; configure less".to_owned()
            }
            (None, Some(_)) => "within the range".to_owned(),
            (None, None) if a.buffer > self.recommended.buffer => {
                "more than needed: configure less".to_owned()
            }
            (None, None) if a.buffer < self.recommended.buffer => {
                "less than recommended".to_owned()
            }
            (None, None) => "enough".to_owned(),
        };
        format!(" The device's {} is {verdict}.", a.bytes)
    }
}

impl TwoRules {
    /// The verdict about the buffer `a`; from `enough` on transfers that come and go keep 90 % of their best rate.
    fn verdict(&self, a: &BufferChoice, enough: Option<Packets>) -> String {
        let [low, high] = self.bounds();
        if a.buffer < low {
            return "too small by both rules".to_owned();
        }
        if a.buffer > high {
            return "more than either rule asks for: configure less".to_owned();
        }
        if enough.is_some_and(|enough| a.buffer >= enough) {
            return "enough by both rules".to_owned();
        }
        let share = self.share_of_best(a).map_or(String::new(), |share| {
            format!("; transfers that come and go get {} of their best rate", whole(share))
        });
        format!("between the two rules: enough if all flows persist{share}")
    }
}
