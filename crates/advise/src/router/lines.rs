//! The buffer, the queueing delay, the loss, the use of the link, the rate per flow: a line each.

use sweetspot_units::{Duration, Rate, Significant};

use super::simulated::OVERLOAD_LOSS;
use super::{Basis, BufferChoice, RouterAdvice};
use crate::text::{labelled, percent, two_digits, with_error};

/// Less is no number to plan with: at 10 Gbit/s, a packet in ten seconds or more.
const RARE_LOSS: f64 = 1e-7;
/// Columns of a line's name.
const LABEL: usize = 8;

impl RouterAdvice {
    pub(super) fn in_lines(&self, width: usize) -> String {
        let r = &self.recommended;
        let unit = if r.buffer.get() == 1.0 { "packet" } else { "packets" };
        let buffer = format!("{:.0} {unit} ({}), {}", r.buffer.get(), r.bytes, self.rule());
        let mut lines = vec![("buffer", buffer)];
        if self.basis != Basis::NothingQueues {
            lines.extend([
                ("queue", self.queue()),
                ("loss", self.loss()),
                ("use", self.use_of_link()),
                ("rate", self.rates()),
                ("source", self.source_line()),
            ]);
        }
        let device = self.available.as_ref().map(|device| self.shown(device));
        lines.extend(device.map(|a| ("device", format!("{}: {}", a.bytes, self.verdict(&a)))));
        lines.iter().map(|(name, words)| labelled(LABEL, name, words, width)).collect()
    }

    /// The rule behind the buffer, in few words.
    fn rule(&self) -> &'static str {
        match self.basis {
            Basis::NothingQueues => "one for each input",
            Basis::Optimum if self.is_closed_form() => "sqrt(2 M C T / D)",
            Basis::Optimum => "the formula's",
            Basis::RangeLow => "the smallest for 90 % of the rate",
            Basis::Simulation => "as in the paper's simulations",
            Basis::BandwidthDelay => "C x T",
            Basis::SquareRoot if self.flows == 1 => "C x T",
            Basis::SquareRoot | Basis::Floor => "C T / sqrt(n)",
            Basis::BetweenRules => "between two rules",
            Basis::Edge => "between formula and closed form",
            Basis::Crowd => "between formula and C x T",
            Basis::Simulator => "by simulation",
        }
    }

    /// The source of all numbers in the answer.
    pub(super) fn source_words(&self) -> String {
        let q = &self.question;
        match self.source() {
            Some(found) => {
                let link = match found.scale < 1.0 {
                    true => format!(
                        "{} in place of {}, with flows and buffers in proportion",
                        found.rate, q.rate
                    ),
                    false => "the whole link".to_owned(),
                };
                format!(
                    "simulation of {link}, {} runs of {} s for each buffer",
                    found.seeds, found.seconds
                )
            }
            None if q.parameters.loss_a.is_some() || q.parameters.loss_b.is_some() => {
                "the loss form given".to_owned()
            }
            None if q.measurement.is_some() => "a loss form fitted to the measurements".to_owned(),
            None if self.is_closed_form() => "closed forms".to_owned(),
            None => "a regression over simulated links".to_owned(),
        }
    }

    /// The source, and how far its numbers can be trusted.
    fn source_line(&self) -> String {
        let errors = match self.recommended.errors {
            Some(_) => "; +-: standard errors, other numbers to two digits",
            None if self.is_rough_for_bulk() => {
                "; in the simulator, bulk transfers may be several times as fast"
            }
            None => "",
        };
        format!("{}{errors}", self.source_words())
    }

    /// Whether the rate of bulk transfers is a formula's, of a loss that was not measured. Flows that persist have their share.
    fn is_rough_for_bulk(&self) -> bool {
        let q = &self.question;
        let is_measured = q.parameters.loss_a.is_some() || q.measurement.is_some();
        !is_measured && self.recommended.bulk.is_some() && self.basis != Basis::SquareRoot
    }

    fn queue(&self) -> String {
        let r = &self.recommended;
        match r.mean_delay.map(|delay| self.known(delay)) {
            Some(Duration::ZERO) => format!("none on average, {} when full", r.worst_delay),
            Some(delay) => format!("{delay} on average, {} when full", r.worst_delay),
            None => format!("{} when full", r.worst_delay),
        }
    }

    fn loss(&self) -> String {
        match self.recommended {
            BufferChoice { loss: None, used: Some(_), mean_delay: None, .. } => {
                "not predicted: only bursts queue".to_owned()
            }
            BufferChoice { loss: None, used: Some(_), .. } => {
                format!("above {}, where no closed form holds", percent(Some(OVERLOAD_LOSS)))
            }
            BufferChoice { loss: None, .. } => "not predicted".to_owned(),
            BufferChoice { loss: Some(loss), .. } if loss > 0.0 && loss < RARE_LOSS => {
                format!("less than {}", percent(Some(RARE_LOSS)))
            }
            BufferChoice { loss: Some(loss), .. } if self.source().is_some() => {
                format!("{} %", Significant::<2>(loss * 100.0))
            }
            BufferChoice { loss, .. } => percent(loss),
        }
    }

    /// A delay with the digits that its source knows.
    fn known(&self, delay: Duration) -> Duration {
        match self.source() {
            Some(_) => Duration::from_secs_f64(two_digits(delay.as_secs_f64())),
            None => delay,
        }
    }

    fn use_of_link(&self) -> String {
        match self.recommended.used {
            Some(used) if self.recommended.mean_delay.is_none() => {
                format!("{:.1} % of the link at most", used * 100.0)
            }
            Some(used) => format!("{:.1} % of the link", used * 100.0),
            None => "not predicted: below C T / sqrt(n) the link idles at times".to_owned(),
        }
    }

    /// The mean rate of a flow, or the medians of the simulation.
    fn rates(&self) -> String {
        let r = &self.recommended;
        let [small, large] = self.transfers;
        let assumed = if self.question.flows.is_none() { " assumed" } else { "" };
        let flow = r.flow.map(|flow| match (r.flows, self.source()) {
            (n, Some(_)) => {
                let flow = Rate::from_f64(two_digits(flow.as_f64()));
                format!("{flow} on average for each of about {} flows", two_digits(n as f64))
            }
            (1, None) => format!("{flow} for the flow{assumed}"),
            (n, None) => format!("{flow} for each of {n} flows{assumed}"),
        });
        let transfers = [(small, r.short, 0), (large, r.bulk, 1)];
        // In congestion avoidance the size does not matter.
        let transfers = transfers.map(|(size, rate, which)| {
            let rate = rate.filter(|rate| r.flow != Some(*rate))?;
            let rate = match r.errors {
                Some(errors) => with_error(rate, errors[which]),
                None => rate.to_string(),
            };
            Some(format!("{rate} for a transfer of {size}"))
        });
        let transfers = transfers.into_iter().flatten().collect::<Vec<String>>().join("; ");
        match (flow, transfers.as_str(), self.source()) {
            (None, "", _) => "not predicted".to_owned(),
            (Some(flow), "", None) => flow,
            (Some(flow), "", Some(_)) => {
                format!("{flow}; too few transfers finished for a median")
            }
            (Some(flow), transfers, None) => format!("{flow}; {transfers}"),
            (Some(flow), transfers, Some(_)) => format!("{flow}; medians: {transfers}"),
            (None, transfers, _) => transfers.to_owned(),
        }
    }
}
