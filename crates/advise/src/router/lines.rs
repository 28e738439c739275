//! The labelled lines of the answer: buffer, queueing delay, loss, utilisation of the link, and rate per flow.

use sweetspot_theory::Packets;
use sweetspot_units::{Duration, Rate, Significant};

use super::model::BULK;
use super::simulated::OVERLOAD_LOSS;
use super::{Basis, BufferChoice, Favour, Mix, RouterAdvice, Rule, Simulated};
use crate::text::{labelled, percent, three_digits, two_digits, with_error};

/// Loss rate at which one transfer of 80 kB in 200 loses a packet.
pub(super) const RARE_LOSS: f64 = 1e-4;
/// Width of a line's label, in columns.
const LABEL: usize = 8;

impl RouterAdvice {
    pub(super) fn in_lines(&self, width: usize) -> String {
        let r = &self.recommended;
        // The mix alone does not tell for which transfers.
        let whom = match self.question.mix {
            Mix::Sizes(_) if self.has_predictions() => format!(" for {}", self.class()),
            _ => String::new(),
        };
        let buffer = format!("{}{whom}, {}", size(r), self.rule());
        let mut lines = vec![("buffer", buffer)];
        if self.basis == Basis::InitialWindow {
            lines.push(("queue", self.queue_of_link()));
        }
        if self.has_predictions() {
            lines.extend([
                ("queue", self.queue()),
                ("loss", self.loss()),
                ("use", self.use_of_link()),
                ("rate", self.rates()),
                ("source", self.source_line()),
            ]);
            lines.extend(
                self.question
                    .measurement
                    .as_ref()
                    .map(|fit| ("fit", fit.line(self.form, &self.question.parameters))),
            );
        }
        let device = self.available.as_ref().map(|device| self.shown(device));
        lines.extend(device.map(|a| ("device", self.device(&a))));
        lines.iter().map(|(name, words)| labelled(LABEL, name, words, width)).collect()
    }

    fn device(&self, device: &BufferChoice) -> String {
        format!("{}: {}", size(device), self.verdict(device))
    }

    /// The rule behind the buffer, in a few words.
    fn rule(&self) -> &'static str {
        match self.basis {
            Basis::NothingQueues => "one for each input",
            Basis::InitialWindow => "TCP's initial window",
            _ if self.is_minimum() => "for the bursts of single flows",
            Basis::Optimum if self.is_closed_form() => "by closed form",
            Basis::Optimum => "by formula the best",
            Basis::RangeLow if self.is_moved() => "the smallest for 90 % of the best rate",
            Basis::RangeLow => "by formula the smallest for 90 % of the best rate",
            Basis::Simulation => "as in the paper's simulations",
            Basis::BandwidthDelay => "C x T: rate x RTT",
            Basis::SquareRoot if self.flows == 1 => "C x T: rate x RTT",
            Basis::BetweenRules | Basis::Edge | Basis::Crowd if self.is_whole_product() => {
                "C x T: rate x RTT"
            }
            Basis::SquareRoot if self.exceeds_square_root() => {
                "for the bursts of single flows, more than C T / sqrt(n)"
            }
            Basis::SquareRoot | Basis::Floor => "C T / sqrt(n): rate x RTT / sqrt(flows)",
            Basis::BetweenRules => {
                "between C T / sqrt(n) and the buffer for transfers that come and go"
            }
            Basis::Edge => "between a regression's and a closed form's",
            Basis::Crowd => "between the formula's and C x T",
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
                let sizes = match q.mix {
                    Mix::Sizes(_) => ", Pareto sizes with the mean of the file",
                    Mix::Short | Mix::Bulk => "",
                };
                format!(
                    "simulation of {link}{sizes}, {} runs of {} s for each buffer",
                    found.seeds, found.seconds
                )
            }
            None if q.parameters.loss_a.is_some() && q.parameters.loss_b.is_some() => {
                "the loss form given".to_owned()
            }
            None if q.measurement.is_some() => {
                format!("a loss form fitted to the measurements{}", self.given_in_words())
            }
            None if self.basis == Basis::Edge => {
                "closed forms and the nearest link of a regression".to_owned()
            }
            None if self.is_closed_form() => "closed forms".to_owned(),
            None => "a regression over simulated links".to_owned(),
        }
    }

    /// The parameter that overrides the fit.
    fn given_in_words(&self) -> String {
        let p = &self.question.parameters;
        match (p.loss_a, p.loss_b) {
            (Some(a), None) => format!(", with your a = {a}"),
            (None, Some(b)) => format!(", with your b = {b}"),
            _ => String::new(),
        }
    }

    /// The source, and how accurate its numbers are.
    fn source_line(&self) -> String {
        let errors = match self.recommended.errors {
            Some(_) if self.has_errors() => "; +-: 95 % interval",
            Some(_) => "",
            None if self.assumes_shares && self.unsimulated.is_none() => {
                "; --verify sim measures loss and rates"
            }
            None if self.is_rough_for_bulk() => match self.unsimulated {
                Some(_) => "; estimate only: bulk rates may be several times too low",
                None => {
                    "; estimate only: bulk rates may be several times too low; without --verify none, a simulation checks them"
                }
            },
            None => "",
        };
        format!("{}{errors}", self.source_words())
    }

    /// Whether the answer has a median that is printed with its interval.
    fn has_errors(&self) -> bool {
        let r = &self.recommended;
        r.short.is_some() || r.bulk.is_some()
    }

    /// Half the width of a 95 % interval in standard errors; 0 without a simulation.
    pub(super) fn interval(&self) -> f64 {
        self.source().map_or(0.0, Simulated::interval)
    }

    /// Whether the rate of bulk transfers follows from a formula's loss, not from a measured one. Persistent flows have their
    /// share of the link instead, as have flows that all reach the same rate.
    fn is_rough_for_bulk(&self) -> bool {
        let q = &self.question;
        let is_measured = q.parameters.loss_a.is_some() || q.measurement.is_some();
        let r = &self.recommended;
        let has_own_rate = r.bulk.is_some() && r.bulk != r.flow;
        !is_measured && has_own_rate && self.basis != Basis::SquareRoot
    }

    /// Whether the recommended buffer is C x T in whole packets.
    fn is_whole_product(&self) -> bool {
        let whole = |buffer: Packets| libm::round(buffer.get());
        let rule = self.of_rule(Rule::BandwidthDelay);
        rule.is_some_and(|rule| whole(rule.buffer) == whole(self.recommended.buffer))
    }

    fn queue(&self) -> String {
        self.queue_of_link() + self.shorter_queue()
    }

    /// A remark about the option for a smaller buffer: whether it would help, if the recommended buffer is all of C x T, or
    /// that it did not.
    fn shorter_queue(&self) -> &'static str {
        let rule = self.of_rule(Rule::BandwidthDelay);
        let is_full = rule.is_some_and(|rule| self.recommended.buffer >= rule.buffer);
        match self.question.favour {
            Favour::Latency if self.recommended.buffer >= self.most => {
                "; --favour latency gains nothing on this link"
            }
            Favour::Throughput if is_full && self.is_smaller_for_latency() => {
                "; for less: --favour latency"
            }
            _ => "",
        }
    }

    fn queue_of_link(&self) -> String {
        let r = &self.recommended;
        let full = r.full_delay();
        let known = |delay: Duration| Duration::from_secs_f64(self.digits(delay.as_secs_f64()));
        match r.mean_delay.map(known) {
            Some(delay) if delay <= r.worst_delay.scaled(RARE_LOSS) => {
                format!("almost none on average, {full} when full")
            }
            Some(delay) => format!("{delay} on average, {full} when full"),
            None => format!("{full} when full"),
        }
    }

    fn loss(&self) -> String {
        match self.recommended {
            BufferChoice { loss: None, .. } if self.assumes_shares => {
                let why = match self.question.flows {
                    _ if self.question.has_room() => ": its flows do not fill it",
                    None => " or --flows",
                    Some(_) => ": its transfers are too short for closed forms",
                };
                // The warning says why there is no simulation.
                let without = if self.unsimulated.is_some() { "" } else { " without a simulation" };
                format!("not predicted on this link{without}{why}")
            }
            BufferChoice { loss: None, used: Some(_), mean_delay: None, .. } => {
                "not predicted: only bursts queue".to_owned()
            }
            BufferChoice { loss: None, used: Some(_), .. } => {
                format!("above {}, where no closed form holds", percent(Some(OVERLOAD_LOSS)))
            }
            BufferChoice { loss: None, .. } => "not predicted".to_owned(),
            BufferChoice { loss: Some(loss), .. } if loss < RARE_LOSS => {
                format!("less than {} %", RARE_LOSS * 100.0)
            }
            BufferChoice { loss: Some(loss), .. } => self.percent(loss),
        }
    }

    /// A loss rate with the digits that are significant for its source.
    pub(super) fn percent(&self, loss: f64) -> String {
        match self.source() {
            Some(_) => format!("{} %", Significant::<2>(loss * 100.0)),
            None => format!("{} %", Significant::<3>(loss * 100.0)),
        }
    }

    /// A number with the digits that are significant for its source.
    pub(super) fn digits(&self, number: f64) -> f64 {
        if self.source().is_some() { two_digits(number) } else { three_digits(number) }
    }

    fn use_of_link(&self) -> String {
        match self.recommended.used {
            Some(used) if self.recommended.mean_delay.is_none() && !self.assumes_shares => {
                format!("about {:.1} % of the link", used * 100.0)
            }
            Some(used) if self.assumes_use(&self.recommended) => {
                format!("about {:.1} % of the link (assumed)", used * 100.0)
            }
            Some(used) => format!("{:.1} % of the link", used * 100.0),
            None if self.recommended.mean_delay.is_some() => {
                "not predicted: at the measured loss and queue, so few flows do not fill the link"
                    .to_owned()
            }
            None => "not predicted: below C T / sqrt(n) the link idles at times".to_owned(),
        }
    }

    /// The mean rate of a flow, or the medians of the simulation.
    fn rates(&self) -> String {
        let r = &self.recommended;
        let [small, large] = self.transfers;
        let assumed = if self.question.flows.is_none() { " assumed" } else { "" };
        let shown = |rate: Rate| Rate::from_f64(three_digits(rate.as_f64()));
        let flow = r.flow.map(|flow| match (r.flows, self.source()) {
            (n, Some(_)) => {
                let flow = Rate::from_f64(two_digits(flow.as_f64()));
                format!("{flow} on average for each of about {} flows", two_digits(n as f64))
            }
            (1, None) => format!("{} for the flow{assumed}", shown(flow)),
            (n, None) => format!("{} for each of {n} flows{assumed}", shown(flow)),
        });
        let transfers = [(small, r.short, 0), (large, r.bulk, 1)];
        // In congestion avoidance the rate does not depend on the size.
        let differs = transfers.iter().any(|(_, rate, _)| rate.is_some() && *rate != r.flow);
        let transfers = transfers.map(|(size, rate, which)| {
            let rate = rate.filter(|_| differs)?;
            let rate = match r.errors {
                Some(errors) => with_error(rate, errors[which].scaled(self.interval())),
                None => shown(rate).to_string(),
            };
            Some(format!("{rate} for a transfer of {size}"))
        });
        let lacks_bulk = transfers[0].is_some() && transfers[1].is_none();
        let lacking = match lacks_bulk && self.source().is_some() {
            true => format!("; too few transfers above {BULK} x the mean finished for a median"),
            false => String::new(),
        };
        let transfers = transfers.into_iter().flatten().collect::<Vec<String>>().join("; ");
        match (flow, transfers.as_str(), self.source()) {
            (None, "", _) => "not predicted".to_owned(),
            (Some(flow), "", None) => flow,
            (Some(flow), "", Some(_)) => {
                format!("{flow}; too few transfers finished for a median")
            }
            (Some(flow), transfers, None) => format!("{flow}; {transfers}"),
            (Some(flow), transfers, Some(_)) => {
                let sizes = match self.question.mix {
                    Mix::Sizes(_) => "medians of Pareto sizes",
                    Mix::Short | Mix::Bulk => "medians",
                };
                format!("{flow}; {sizes}: {transfers}{lacking}")
            }
            (None, transfers, _) => transfers.to_owned(),
        }
    }
}

/// A buffer's size in packets and in bytes.
fn size(choice: &BufferChoice) -> String {
    let unit = if choice.buffer.get() == 1.0 { "packet" } else { "packets" };
    format!("{} {unit} ({})", libm::round(choice.buffer.get()), choice.whole_bytes())
}
