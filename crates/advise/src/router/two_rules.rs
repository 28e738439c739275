//! Flows of unknown size: two rules that hold for different traffic, and the way between them.

use sweetspot_theory::Packets;
use sweetspot_theory::TheoryError;

use super::{Basis, BufferChoice, Favour, RouterAdvice, RouterQuestion};

/// The buffers of two rules. The number of flows alone does not tell which of them holds.
#[derive(Debug, Clone, PartialEq)]
pub struct TwoRules {
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

/// 0 if transfers come and go, 1 if the flows persist, and between that in proportion to the logarithm of C T per flow; `None` if
/// the sizes are known or bulk transfers are not favoured.
pub(super) fn persistence(q: &RouterQuestion, bdp: Packets) -> Option<f64> {
    let flows = q.flows.filter(|_| q.mean_size().is_none() && q.favour == Favour::Throughput)?;
    let each = bdp.get() / flows as f64;
    Some((libm::log(each / COME_AND_GO) / libm::log(PERSIST / COME_AND_GO)).clamp(0.0, 1.0))
}

/// The buffer at `share` of the way from `one` to `other`, by ratio.
pub(super) fn between(other: Packets, one: Packets, share: f64) -> Result<Packets, TheoryError> {
    Packets::new(one.get() * libm::pow(other.get() / one.get(), share))
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
    /// The rule behind each buffer, and the cost of the wrong one.
    pub(super) fn rules_words(&self) -> String {
        let Some(two) = self.two_rules.as_ref() else { return String::new() };
        let (small, large) = (&two.persistent, &two.transfers);
        let (n, few) = (self.flows, small.buffer.get());
        let (many, bulk) = (large.buffer.get(), self.transfers[1]);
        match self.basis {
            Basis::BetweenRules => format!(
                " If all persist, C T / sqrt(n), {few:.0} packets, keeps the link almost full, and {many:.0} packets only \
                 add up to {} of delay. If they come and go, {many:.0} packets are best for bulk transfers of {bulk}{}. \
                 The use of the link at busy times tells which holds.",
                large.worst_delay,
                two.cost()
            ),
            Basis::SquareRoot => format!(
                " If transfers come and go instead, bulk ones want more, up to C T, {many:.0} packets ({} when full); \
                 no formula covers so few. The use of the link at busy times tells which holds.",
                large.worst_delay
            ),
            _ if few < many => format!(
                " If all {n} flows persist instead, C T / sqrt(n), {few:.0} packets, keeps the link almost full, and \
                 more only adds delay."
            ),
            _ => String::new(),
        }
    }

    /// The verdict about the device's buffer.
    pub(super) fn available_words(&self) -> String {
        let Some(a) = &self.available else { return String::new() };
        let verdict = match (&self.two_rules, self.kept()) {
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
            (None, None) => "not more than recommended".to_owned(),
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
