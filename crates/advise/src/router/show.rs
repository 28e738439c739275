//! The advice in words, as a table, and as JSON.

use serde_json::{Value, json};
use sweetspot_theory::Packets;
use sweetspot_theory::router::capacity_ratio::Form;
use sweetspot_theory::router::traffic::Outside;
use sweetspot_units::{Percent, Significant};

use super::simulated::{OVERLOAD_LOSS, PACKETS_IN_FLIGHT};
use super::{Basis, BufferChoice, Favour, RouterAdvice, RouterQuestion};
use crate::Formula;
use crate::formula::explained;
use crate::text::{list, percent, row, table, wrap};

const SOURCES: &str = "Sources: Prasad, Dovrolis, Thottan, \"Router Buffer Sizing for TCP Traffic \
    and the Role of the Output/Input Capacity Ratio\"; Villamizar and Song 1994; Appenzeller, \
    Keslassy, McKeown 2004; Enachescu et al. 2005; Spang, Arslan, McKeown 2021.";

/// The columns of a buffer's name, its size and the delay when it is full.
const BUFFER_COLUMNS: usize = 4;

impl RouterAdvice {
    /// The advice as text, prose in at most `width` columns; `explain` adds the formulas with their numbers.
    pub fn text(&self, explain: bool, width: usize) -> String {
        let mut out = wrap(&self.words(), width, 0);
        for warning in self.warnings() {
            out.push_str(&wrap(&warning, width, 2));
        }
        out.push('\n');
        out.push_str(&self.table(width));
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

    /// The answer alone: the buffer, its effect, and the other rule's buffer.
    pub fn answer(&self, width: usize) -> String {
        let words = match self.basis {
            Basis::NothingQueues => self.why(),
            _ => format!(
                "{}{}{}{}",
                self.why(),
                self.rules_words(),
                self.outcome_words(),
                self.available_words()
            ),
        };
        let warnings = [self.overload(), self.too_few_flows()];
        let warnings = warnings.into_iter().flatten().map(|warning| wrap(&warning, width, 2));
        wrap(&words, width, 0) + &warnings.collect::<String>()
    }

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
            "{}{}{range}{}{}{} {link}{}",
            self.why(),
            self.rules_words(),
            self.outcome_words(),
            self.verdict_words(),
            self.available_words(),
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

    /// The maximised quantity, and the buffer that maximises it.
    fn why(&self) -> String {
        let q = &self.question;
        let r = &self.recommended;
        let buffer =
            format!("{:.0} packets ({}, {} when full)", r.buffer.get(), r.bytes, r.worst_delay);
        let [short, bulk] = self.transfers;
        let whom = match q.favour {
            Favour::Throughput => format!("a bulk transfer of {bulk}"),
            Favour::Short | Favour::Latency => format!("a short transfer of {short}"),
        };
        match self.basis {
            Basis::NothingQueues => {
                let n = q.inputs.unwrap_or_default();
                let inputs = if n == 1 { "input" } else { "inputs" };
                format!(
                    "Take the smallest buffer that holds {n} packets: {n} {inputs} of {} cannot exceed {}, so nothing \
                     queues beyond the packets that arrive together.",
                    q.input_rate, q.rate
                )
            }
            Basis::Optimum if self.decided().is_none() => {
                format!("Take {buffer}: by formula {whom} is fastest with it.")
            }
            Basis::Optimum if self.lacks_bulk() => format!(
                "Take {buffer}: by formula {whom} is fastest with it. Too few finished in the simulator to compare."
            ),
            Basis::Optimum => format!("Take {buffer}: {whom} is fastest with it."),
            Basis::Crowd => format!(
                "Take {buffer}, {}: the nearer a link is to overload, the more of a larger buffer is delay and not rate.",
                self.ends_words(&whom)
            ),
            Basis::RangeLow if self.is_near_best() => format!(
                "Take {buffer} for latency: {whom} keeps 90 % of its best rate or more, and the bursts of \
                 single flows fit."
            ),
            Basis::RangeLow => {
                format!("Take {buffer} for latency: the bursts of single flows fit.")
            }
            Basis::Simulation => format!(
                "Take {buffer}: the bursts of single flows need it in the paper's simulations. The exponential \
                 that was measured neglects them and asks for no buffer for {whom}."
            ),
            Basis::BandwidthDelay => format!(
                "Take {buffer}, a bandwidth-delay product. The rate of {whom} grows with the buffer up to it and \
                 beyond, but a larger one would favour bulk transfers at the cost of short ones."
            ),
            Basis::SquareRoot | Basis::BetweenRules => self.persistent_why(&buffer),
            Basis::Simulator => {
                format!(
                    "Take {buffer}: in the simulator, no buffer up to C x T makes {whom} faster by more than 5 % and \
                     chance."
                )
            }
        }
    }

    /// The formula's buffer and the rule's, between which the recommended one lies.
    fn ends_words(&self, whom: &str) -> String {
        let Some(simulated) = self.decided() else { return String::new() };
        let at = |i: usize| simulated.buffers.get(i).map_or(0.0, |tried| tried.buffer.get());
        let (formula, rule) = (at(simulated.advised), at(simulated.rule));
        format!("between {formula:.0}, by formula best for {whom}, and C x T, {rule:.0}")
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

    /// The predicted effect.
    fn outcome_words(&self) -> String {
        let r = &self.recommended;
        let (Some(delay), Some(used)) = (r.mean_delay, r.used) else { return String::new() };
        let [small, large] = self.transfers;
        let rates = match (r.short, r.bulk) {
            (Some(short), Some(bulk)) => {
                format!(" A transfer of {small} then gets {short}, one of {large} {bulk}.")
            }
            _ => String::new(),
        };
        let flow = match (r.flow, self.flows) {
            (Some(flow), n) if n > 1 && self.question.flows.is_none() => {
                format!(", {flow} for each of the {n} flows assumed")
            }
            (Some(flow), n) if n > 1 => format!(", {flow} for each of {n} flows"),
            _ => String::new(),
        };
        let is_either = self.basis == Basis::BetweenRules && self.decided().is_none();
        let is_far = !self.outside.is_empty() && self.decided().is_none();
        let expect = match (is_either, is_far) {
            (false, false) => "Expect",
            (false, true) => "By extrapolation, expect",
            (true, false) => "Then expect",
            (true, true) => "Then, by extrapolation, expect",
        };
        format!(
            " {expect} {} of loss, {delay} of queueing on average, {:.1} % of the link used{flow}.{rates}",
            percent(r.loss),
            used * 100.0
        )
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

    fn warnings(&self) -> Vec<String> {
        let mut all: Vec<String> = self.outside_words().into_iter().collect();
        all.extend(self.overload());
        all.extend(self.too_few_flows());
        if let Some(part) = self.simulated.as_ref().filter(|simulated| !simulated.decides()) {
            all.push(format!(
                "Warning: only {:.2} % of the link could be simulated, with too few flows to stand for all. \
                 The recommendation is by closed forms.",
                part.scale * 100.0
            ));
        }
        if self.expected.is_none() && self.question.measurement.is_none() {
            all.push(
                "Warning: with sizes that are hardly heavy-tailed and a ratio of one or less the paper found \
                 neither of its loss forms good. Fit the formulas to measurements of the link."
                    .to_owned(),
            );
        }
        all
    }

    /// The quantities outside the range of the simulated links.
    fn outside_words(&self) -> Option<String> {
        let all: Vec<String> = self.outside.iter().map(outside_words).collect();
        let so = match self.by_formula.used {
            Some(_) => "The formulas are those of the nearest link within it",
            None => "No formula predicts loss or delay",
        };
        let all = all.join(", ");
        (!all.is_empty()).then(|| format!("Warning: outside the simulated range: {all}. {so}."))
    }

    /// The remark that flows have too few packets in flight whatever the buffer.
    fn overload(&self) -> Option<String> {
        let rule = self.rules.iter().find(|rule| rule.name == "BDP")?;
        let loss = match self.decided() {
            Some(simulated) => simulated.loss_with_rule(),
            // Pipe and buffer hold C T each.
            None if self.basis == Basis::NothingQueues => None,
            None if self.by_formula.used.is_none() => {
                let in_flight = 2.0 * rule.buffer.get() / self.flows as f64;
                return (in_flight < PACKETS_IN_FLIGHT).then(|| {
                    "Warning: the link is overloaded. Even a buffer of C x T leaves the flows fewer than four packets each in \
                     flight, so they wait for timeouts. No buffer helps; fewer flows or a faster link do."
                        .to_owned()
                });
            }
            None => rule.loss,
        };
        let loss = loss.filter(|loss| *loss > OVERLOAD_LOSS)?;
        Some(format!(
            "Warning: the link is overloaded. Even a buffer of C x T loses {} of the packets, so flows have fewer than \
             four in flight and wait for timeouts. No buffer helps; fewer flows or a faster link do.",
            percent(Some(loss))
        ))
    }

    /// The remark that the flows given cannot fill the link.
    fn too_few_flows(&self) -> Option<String> {
        let RouterQuestion { flows, rate, input_rate, .. } = self.question;
        let n = flows.filter(|n| *n as f64 <= self.gamma && self.basis != Basis::NothingQueues)?;
        let flows = if n == 1 { "flow" } else { "flows" };
        Some(format!(
            "Warning: {n} {flows} of {input_rate} or less cannot exceed {rate}, so nothing queues. The buffer is for \
             times with more flows."
        ))
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

    fn table(&self, width: usize) -> String {
        let head = ["rule", "packets", "bytes", "full", "mean", "loss", "used", "short", "bulk"];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        let all = [&self.by_formula].into_iter().chain(&self.available).chain(&self.rules);
        let mbit = |rate: Option<sweetspot_units::Rate>| {
            rate.map_or("-".to_owned(), |rate| Significant::<3>(rate.as_f64() / 1e6).to_string())
        };
        let ms = |delay: sweetspot_units::Duration| {
            Significant::<3>(delay.as_secs_f64() * 1e3).to_string()
        };
        let own = if self.decided().is_some() { "by formula" } else { self.by_formula.name };
        rows.extend(all.map(|c: &BufferChoice| {
            row([
                if c.name == self.by_formula.name { &own } else { &c.name },
                &format!("{:.0}", c.buffer.get()),
                &c.bytes,
                &ms(c.worst_delay),
                &c.mean_delay.map_or("-".to_owned(), ms),
                &percent(c.loss),
                &c.used.map_or("-".to_owned(), |used| format!("{:.1}", Percent(used))),
                &mbit(c.short),
                &mbit(c.bulk),
            ])
        }));
        // Without a prediction only the buffers are left.
        let columns = if self.by_formula.used.is_some() { head.len() } else { BUFFER_COLUMNS };
        rows.iter_mut().for_each(|row| row.truncate(columns));
        format!("{}{}", table(1, &rows), wrap(&format!("  {}", self.legend()), width, 2))
    }

    /// The rows and columns that are shown, explained.
    fn legend(&self) -> String {
        let [small, large] = self.transfers;
        let columns = match self.by_formula.used {
            Some(_) => format!(
                "By formula. full, mean: queueing delay, ms. used: share of the link, which all flows share. short, bulk: \
                 Mbit/s of one transfer of {small} and of one of {large} among them, with the RTT, the queueing and the loss \
                 (S-model, eq. 2)."
            ),
            None => "full: delay of a full buffer, ms.".to_owned(),
        };
        let mut all = vec![columns];
        if self.decided().is_some() {
            all.push("by formula: the recommended buffer, simulated below.".to_owned());
        }
        let flows = if self.flows == 1 { "flow" } else { "flows" };
        let assumed = if self.question.flows.is_none() { ", assumed" } else { "" };
        all.extend(self.rules.iter().filter_map(|rule| match rule.name {
            "L-model" => Some("L-model: eq. (11).".to_owned()),
            "BDP/sqrt(n)" => Some(format!("n: {} {flows}{assumed}.", self.flows)),
            "Cubic" => Some("Cubic: 3/7 of BDP/sqrt(n), BBR: 1/4.".to_owned()),
            "tiny" => Some("tiny: 20 packets.".to_owned()),
            "paper" => Some("paper: its buffer for inputs slower than the output.".to_owned()),
            _ => None,
        }));
        all.join(" ")
    }

    /// The advice as JSON.
    pub fn json(&self) -> Value {
        let packet = self.question.packet;
        let range = self.range.map(|r| {
            json!({
                "low_packets": r.low.get(),
                "high_packets": r.high.map(Packets::get),
                "low_bytes": r.low.in_bytes(packet).get(),
                "high_bytes": r.high.map(|h| h.in_bytes(packet).get()),
            })
        });
        let rules: serde_json::Map<String, Value> =
            self.rules.iter().map(|c| (c.name.to_owned(), choice(c))).collect();
        let basis = match self.basis {
            Basis::NothingQueues => "nothing_queues",
            Basis::Optimum => "optimum",
            Basis::RangeLow => "range_low",
            Basis::Simulation => "simulation",
            Basis::BandwidthDelay => "bandwidth_delay",
            Basis::SquareRoot => "square_root",
            Basis::BetweenRules => "between_rules",
            Basis::Crowd => "crowd",
            Basis::Simulator => "simulator",
        };
        let form = |form: Form| match form {
            Form::PowerLaw => "PL",
            Form::Exponential => "EX",
        };
        let maximised = match self.question.favour {
            Favour::Throughput => "bulk",
            Favour::Short | Favour::Latency => "short",
        };
        let outside: Vec<Value> = self
            .outside
            .iter()
            .map(|o| json!({ "quantity": o.quantity, "given": o.given, "low": o.low, "high": o.high }))
            .collect();
        let formulas: Vec<Value> = self.formulas.iter().map(Formula::json).collect();
        json!({
            "gamma": self.gamma,
            "flows": self.flows,
            "form": form(self.form),
            "form_of_ratio": self.expected.map(form),
            "basis": basis,
            "maximised": maximised,
            "transfer_bytes": { "short": self.transfers[0].get(), "bulk": self.transfers[1].get() },
            "buffer_packets": self.recommended.buffer.get(),
            "buffer_bytes": self.recommended.bytes.get(),
            "buffer_delay_s": self.recommended.worst_delay.as_secs_f64(),
            "delay_s": self.recommended.mean_delay.map(|d| d.as_secs_f64()),
            "loss": self.recommended.loss,
            "utilisation": self.recommended.used,
            "flow_bps": self.recommended.flow.map(|r| r.bits_per_second()),
            "short_bps": self.recommended.short.map(|r| r.bits_per_second()),
            "bulk_bps": self.recommended.bulk.map(|r| r.bits_per_second()),
            "size_mean_bytes": self.size_mean.get(),
            "two_rules": self.two_rules.as_ref().map(|two| {
                json!({ "persistent": choice(&two.persistent), "transfers": choice(&two.transfers) })
            }),
            "range_90_percent": range,
            "rules": rules,
            "available": self.available.as_ref().map(choice),
            "fit": self.question.measurement.as_ref().map(super::LinkMeasurement::json),
            "simulation": self.simulated.as_ref().map(super::Simulated::json),
            "outside": outside,
            "warnings": self.warnings(),
            "assumptions": self.assumptions,
            "formulas": formulas,
            "sources": SOURCES,
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

fn choice(c: &BufferChoice) -> Value {
    json!({
        "packets": c.buffer.get(),
        "bytes": c.bytes.get(),
        "worst_delay_s": c.worst_delay.as_secs_f64(),
        "delay_s": c.mean_delay.map(|d| d.as_secs_f64()),
        "loss": c.loss,
        "utilisation": c.used,
        "flow_bps": c.flow.map(|r| r.bits_per_second()),
        "short_bps": c.short.map(|r| r.bits_per_second()),
        "bulk_bps": c.bulk.map(|r| r.bits_per_second()),
    })
}
