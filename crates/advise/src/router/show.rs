//! The advice in words.

use sweetspot_theory::router::traffic::Outside;
use sweetspot_units::Significant;

use super::{Basis, Favour, RouterAdvice};
use crate::formula::explained;
use crate::text::{list, wrap};

pub(super) const SOURCES: &str = "Sources: Prasad, Dovrolis, Thottan, \"Router Buffer Sizing for TCP Traffic \
    and the Role of the Output/Input Capacity Ratio\"; Villamizar and Song 1994; Appenzeller, \
    Keslassy, McKeown 2004; Enachescu et al. 2005; Spang, Arslan, McKeown 2021.";

impl RouterAdvice {
    /// The advice as text, prose in at most `width` columns; `explain` adds the formulas with their numbers.
    pub fn text(&self, explain: bool, width: usize) -> String {
        let mut out = self.answer(width);
        out.push('\n');
        out.push_str(&wrap(&self.words(), width, 0));
        out.push('\n');
        out.push_str(&self.alternatives(width));
        if let Some(simulated) = &self.simulated {
            let packet_time = self.question.packet.as_f64() * 8.0 / self.question.rate.as_f64();
            out.push_str(&simulated.text(self.recommended.buffer, packet_time, width));
        }
        if let Some(measured) = &self.question.measurement {
            out.push('\n');
            out.push_str(&measured.text(width));
        }
        out.push_str(&list("Assumed", &self.assumptions, width));
        if explain {
            out.push_str(&explained(&self.formulas, width));
        }
        out.push('\n');
        out.push_str(&wrap(SOURCES, width, 2));
        out
    }

    /// The answer alone: the buffer and its effect, a line each, and the warnings.
    pub fn answer(&self, width: usize) -> String {
        self.in_lines(width) + &self.warnings_text(width)
    }

    /// The reasons.
    fn words(&self) -> String {
        let q = &self.question;
        let link = format!(
            "Output rate over input rate, Gamma: {} / {} = {:.3}.",
            q.rate, q.input_rate, self.gamma
        );
        if self.basis == Basis::NothingQueues {
            return format!("{} {link}", self.why());
        }
        let range = self.range_words().map_or(String::new(), |range| format!(" {range}"));
        format!(
            "{}{}{}{}{range}{}{} {link}",
            self.why(),
            self.closed_form_words(),
            self.rules_words(),
            self.more_flows_words(),
            self.verdict_words(),
            self.input_words(),
        )
    }

    /// With fast outputs the number of inputs decides whether anything queues at all.
    fn input_words(&self) -> String {
        if self.gamma < 1.0 || self.question.inputs.is_some() {
            return String::new();
        }
        let max = libm::floor(self.gamma);
        let send = if max > 1.0 { "such inputs send" } else { "such input sends" };
        format!(
            " Nothing queues unless more than {max:.0} {send} at once; it is assumed that they do."
        )
    }

    /// The transfers that the buffer serves.
    fn whom(&self) -> String {
        let [short, bulk] = self.transfers;
        match self.question.favour {
            Favour::Throughput => format!("bulk transfers of {bulk}"),
            Favour::Short | Favour::Latency => format!("short transfers of {short}"),
        }
    }

    /// The maximised quantity, and the buffer that maximises it.
    fn why(&self) -> String {
        let q = &self.question;
        let whom = self.whom();
        match self.basis {
            Basis::NothingQueues => {
                let n = q.inputs.unwrap_or_default();
                let inputs = if n == 1 { "input" } else { "inputs" };
                format!(
                    "{n} {inputs} of {} cannot exceed {}, so nothing queues beyond the packets that arrive together.",
                    q.input_rate, q.rate
                )
            }
            Basis::Optimum if self.is_closed_form() => format!(
                "For {whom}, of M packets in D round trips of slow start, sqrt(2 M C T / D) balances loss against \
                 queueing in an M/M/1/B queue."
            ),
            Basis::Optimum if self.lacks_bulk() => format!(
                "By formula {whom} are fastest with this buffer. Too few finished in the simulator to compare."
            ),
            Basis::Optimum => format!("By formula {whom} are fastest with this buffer."),
            Basis::Floor => {
                "With a smaller buffer the link idles when flows halve their windows.".to_owned()
            }
            Basis::Edge => format!(
                "The buffer lies between the best one for {whom} of the nearest simulated link and a closed form's."
            ),
            Basis::Crowd => format!(
                "The buffer lies {}: the nearer a link is to overload, the more of a larger buffer is delay and not rate.",
                self.ends_words(&whom)
            ),
            Basis::RangeLow if self.is_near_best() => format!(
                "It is the smallest buffer with which {whom} keep 90 % of their best rate or more, and the bursts of \
                 single flows fit."
            ),
            Basis::RangeLow => "The bursts of single flows fit.".to_owned(),
            Basis::Simulation => format!(
                "The bursts of single flows need it in the paper's simulations. The exponential that was measured \
                 neglects them and asks for no buffer for {whom}."
            ),
            Basis::BandwidthDelay => format!(
                "The rate of {whom} grows with the buffer up to C x T and beyond, but a larger one would favour bulk \
                 transfers at the cost of short ones."
            ),
            Basis::SquareRoot | Basis::BetweenRules => self.persistent_why(),
            Basis::Simulator => format!(
                "In the simulator, no buffer up to C x T makes {whom} faster by more than 5 % and chance."
            ),
        }
    }

    /// The formula's buffer and the rule's, between which the recommended one lies.
    fn ends_words(&self, whom: &str) -> String {
        let Some(simulated) = self.decided() else { return String::new() };
        let at = |i: usize| simulated.buffers.get(i).map_or(0.0, |tried| tried.buffer.get());
        let (formula, rule) = (at(simulated.advised), at(simulated.rule));
        format!("between {formula:.0} packets, by formula best for {whom}, and C x T, {rule:.0}")
    }

    /// Whether bulk transfers are favoured and too few finished in the simulation that decided.
    fn lacks_bulk(&self) -> bool {
        let bulk = self.question.favour == Favour::Throughput;
        bulk && self.decided().is_some_and(|simulated| !simulated.compares_bulk())
    }

    /// Whether the simulation, if it decided, confirms the formula's range.
    fn is_near_best(&self) -> bool {
        let favour = self.question.favour;
        self.decided().is_none_or(|found| found.is_near_best(favour, self.recommended.buffer))
    }

    fn verdict_words(&self) -> String {
        match self.decided() {
            Some(_)
                if matches!(self.basis, Basis::SquareRoot | Basis::BetweenRules | Basis::Crowd) =>
            {
                String::new()
            }
            Some(_) if self.lacks_bulk() => String::new(),
            Some(simulated) if self.question.favour != Favour::Latency => {
                let is_said = self.basis == Basis::Simulator;
                simulated.verdict(self.recommended.buffer, self.question.favour, is_said)
            }
            _ => String::new(),
        }
    }

    /// The quantities outside of the regression's range, and the forms that replace it.
    fn closed_form_words(&self) -> String {
        if !self.is_closed_form() || self.decided().is_some() {
            return String::new();
        }
        let all: Vec<String> = self.outside.iter().map(outside_words).collect();
        format!(
            " This link is outside of the range of the simulated ones: {}. Closed forms therefore replace the regression \
             over them.",
            all.join(", ")
        )
    }

    fn range_words(&self) -> Option<String> {
        if self.basis == Basis::SquareRoot {
            return None;
        }
        let range = self.kept()?;
        let by = if self.decided().is_some() { " in the simulator" } else { "" };
        let low = range.low.get();
        Some(match range.high {
            Some(high) => format!(
                "Between {low:.0} and {:.0} packets it keeps 90 % of its rate{by}.",
                high.get()
            ),
            None => format!("From {low:.0} packets on it keeps 90 % of its rate{by}."),
        })
    }
}

/// A quantity outside the range of the simulated links.
fn outside_words(o: &Outside) -> String {
    let [given, low, high] = [o.given, o.low, o.high].map(Significant::<3>);
    let what = match o.quantity {
        "packets of a mean transfer" => format!("a mean transfer of {given} packets"),
        "flows per packet of C x T" => format!("{given} flows per packet of C x T"),
        "C x T in packets" => format!("a C x T of {given} packets"),
        other => format!("{other} of {given}"),
    };
    format!("{what} ({low} to {high})")
}
