use serde::Serialize;
use sweetspot_scenario::{Engine, EngineError, NoRecorder, Scenario};
use sweetspot_sizing::Sizing;
use sweetspot_theory::engine::Theory;
use sweetspot_units::{Bytes, Volume};

use crate::AnswerError;

/// R(S) from the closed forms.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ThroughputCurve {
    /// Goodput at each window, bit/s; `None` where no closed form is known.
    pub goodput_bps: Vec<Option<f64>>,
    /// The reason why the first window without a value has none.
    pub because: Option<String>,
    /// The smallest window with full throughput, bytes.
    pub sweet_from_bytes: Option<u64>,
    /// The largest window without loss, bytes.
    pub sweet_to_bytes: Option<u64>,
}

/// Fraction of the best throughput that counts as full: closed forms round to whole packets.
const FULL_THROUGHPUT_SHARE: f64 = 0.995;

impl ThroughputCurve {
    /// The curve of the first transfer of `scenario` at these windows.
    pub fn of(scenario: &Scenario, windows_bytes: &[u64]) -> Result<ThroughputCurve, AnswerError> {
        if scenario.transfers.is_empty() {
            return Err(AnswerError::NoTransfer);
        }
        let mut paper = ClosedForms(scenario.clone());
        let mut curve = ThroughputCurve {
            goodput_bps: Vec::with_capacity(windows_bytes.len()),
            because: None,
            sweet_from_bytes: None,
            sweet_to_bytes: None,
        };
        for &window in windows_bytes {
            match paper.at(window) {
                Ok(answered) => curve.goodput_bps.push(Some(answered.goodput_bps)),
                Err(error) => {
                    curve.goodput_bps.push(None);
                    curve.because.get_or_insert(reason(error));
                }
            }
        }
        if let Some((from, to)) = paper.sweet_spot() {
            (curve.sweet_from_bytes, curve.sweet_to_bytes) = (Some(from), Some(to));
        }
        Ok(curve)
    }
}

/// The reason alone if no closed form covers a scenario, without a sentence around it.
fn reason(error: EngineError) -> String {
    match error {
        EngineError::NotCovered { because } => because,
        error => error.to_string(),
    }
}

/// A scenario evaluated by closed forms at various windows.
struct ClosedForms(Scenario);

struct Answered {
    goodput_bps: f64,
    loss_rate: f64,
}

impl ClosedForms {
    fn at(&mut self, window_bytes: u64) -> Result<Answered, EngineError> {
        self.0.transfers[0].sizing = Sizing::Fixed(Volume::Bytes(Bytes::new(window_bytes)));
        let outcome = Theory.run(&self.0, &mut NoRecorder)?;
        let answered = &outcome.transfers[0];
        Ok(Answered { goodput_bps: answered.goodput_bps, loss_rate: answered.loss_rate })
    }

    /// The range from the smallest window with (nearly) the goodput of the largest loss-free one up
    /// to that window, in whole packets. `None` if the path loses packets in any case, or if no
    /// closed form covers it.
    fn sweet_spot(&mut self) -> Option<(u64, u64)> {
        let packet = self.0.path.packet.get();
        let lossless = |answered: &Result<Answered, EngineError>| {
            answered.as_ref().is_ok_and(|answered| answered.loss_rate == 0.0)
        };
        if !lossless(&self.at(packet)) {
            return None;
        }
        let narrow = self.0.path.narrow();
        let max = self.0.path.bdp() + narrow.buffer.in_bytes(self.0.path.packet);
        // The upper bound of the search exceeds any loss-free window.
        let max = 2 * max.get() / packet + 2;
        let to = last(1, max, |packets| lossless(&self.at(packets * packet)));
        let best = self.at(to * packet).ok()?.goodput_bps;
        let too_small = |answered: Result<Answered, EngineError>| {
            answered.is_ok_and(|answered| answered.goodput_bps < FULL_THROUGHPUT_SHARE * best)
        };
        let from = if too_small(self.at(packet)) {
            last(1, to, |packets| too_small(self.at(packets * packet))) + 1
        } else {
            1
        };
        Some((from * packet, to * packet))
    }
}

/// The largest number from `low` on for which `holds` is true; it is true for `low` and false for
/// `high`.
fn last(mut low: u64, mut high: u64, mut holds: impl FnMut(u64) -> bool) -> u64 {
    while high - low > 1 {
        let middle = low.midpoint(high);
        if holds(middle) { low = middle } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(more: &str) -> Scenario {
        let text = format!(
            "duration = \"10s\"\n[path]\nrate = \"50Mbit/s\"\nrtt = \"100ms\"\nbuffer = \"313pkt\"\n\
             access_rate = \"1000Gbit/s\"\n{more}\n[[transfer]]\nsizing = \"max\""
        );
        Scenario::parse(&text).expect("it is a scenario")
    }

    #[test]
    fn the_sweet_spot_extends_from_the_bdp_to_the_bdp_plus_buffer() {
        // C T_m = 625 packets of 1000 B plus the one being sent, less half a per cent of tolerance;
        // the buffer of 313 includes that one, too.
        let curve = ThroughputCurve::of(&scenario(""), &[100_000, 700_000, 2_000_000]).unwrap();
        assert!((622_000..=627_000).contains(&curve.sweet_from_bytes.unwrap()));
        assert_eq!(curve.sweet_to_bytes, Some(938_000));
        // 100 kB / 100.16 ms = 7.99 Mbit/s; then C; then less, because the buffer is half of C T_m.
        let rates: Vec<f64> = curve.goodput_bps.iter().map(|rate| rate.unwrap()).collect();
        assert!((7.97e6..8.0e6).contains(&rates[0]) && rates[1] == 50e6 && rates[2] < 49e6);
    }

    #[test]
    fn the_sweet_spot_and_formulas_end_when_elephants_overflow_the_buffer() {
        let elephants = "[[cross]]\nkind = \"elephants\"\ncount = 20\nwindow = \"22pkt\"";
        let curve = ThroughputCurve::of(&scenario(elephants), &[100_000, 2_000_000]).unwrap();
        let (from, to) = (curve.sweet_from_bytes.unwrap(), curve.sweet_to_bytes.unwrap());
        assert!(from < to && to < 938_000, "{from} {to}");
        assert!(curve.goodput_bps[0].is_some() && curve.goodput_bps[1].is_none());
        assert!(curve.because.unwrap().starts_with("a window above"));
    }

    #[test]
    fn a_curve_without_a_closed_form_is_empty() {
        let mice =
            "[[cross]]\nkind = \"mice\"\ncount = 10\npackets = [10, 100]\nsleep = [\"1s\", \"2s\"]";
        let curve = ThroughputCurve::of(&scenario(mice), &[100_000]).unwrap();
        assert_eq!((curve.sweet_from_bytes, &curve.goodput_bps[..]), (None, &[None][..]));
    }
}
