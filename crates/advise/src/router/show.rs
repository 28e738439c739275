//! The advice as text.

use sweetspot_theory::Packets;
use sweetspot_theory::router::traffic::Outside;
use sweetspot_units::{Duration, Percent, Significant};

use super::plan::bursts;
use super::simulated::PACKETS_IN_FLIGHT;
use super::table::printed;
use super::{Basis, BufferChoice, Favour, Mix, RouterAdvice, Rule};
use crate::formula::explained;
use crate::limit::INITIAL_WINDOW_PACKETS;
use crate::text::{list, percent, three_digits, two_digits, wrap};

pub(super) const SOURCES: &str = "Sources: Prasad, Dovrolis, Thottan, \"Router Buffer Sizing for TCP Traffic \
    and the Role of the Output/Input Capacity Ratio\"; Villamizar and Song 1994; Appenzeller, \
    Keslassy, McKeown 2004; Enachescu et al. 2005; Spang, Arslan, McKeown 2021.";

/// The number of reasons printed without `explain`.
const MAIN_REASONS: usize = 3;

impl RouterAdvice {
    /// The advice as text, with prose in at most `width` columns: the answer, its main reasons, and the alternatives. `explain`
    /// adds all reasons, tables, assumptions and formulas.
    pub fn text(&self, explain: bool, width: usize) -> String {
        let reasons = self.reasons();
        let count = if explain { reasons.len() } else { MAIN_REASONS };
        let reasons: Vec<String> = reasons.into_iter().take(count).collect();
        let mut out = format!("{}\n{}", self.answer(width), wrap(&reasons.join(" "), width, 0));
        if self.has_predictions() {
            out.push('\n');
            out.push_str(&self.alternatives(width));
            if let Some(measured) = &self.question.measurement {
                out.push('\n');
                out.push_str(&measured.beside_the_fit(self.form));
            }
            if explain {
                out.push_str(&self.explanation(width));
            }
        }
        out
    }

    /// The tables of the simulation, the formulas and the measurements, then the assumptions and the formulas themselves.
    fn explanation(&self, width: usize) -> String {
        let mut out = String::new();
        if let Some(simulated) = &self.simulated {
            let packet_time = self.question.packet.as_f64() * 8.0 / self.question.rate.as_f64();
            out.push_str(&simulated.text(self.recommended.buffer, packet_time, width));
            if self.source().is_some() {
                out.push('\n');
                out.push_str(&self.alternatives_by_formula(width));
            }
        }
        if let Some(measured) = &self.question.measurement {
            out.push('\n');
            out.push_str(&measured.text(width));
        }
        out.push_str(&list("Assumed", &self.assumptions, width));
        out.push_str(&explained(&self.formulas, width));
        out.push('\n');
        out.push_str(&wrap(SOURCES, width, 2));
        out
    }

    /// Only the answer: the buffer and its effect, one per line, and the warnings.
    pub fn answer(&self, width: usize) -> String {
        self.in_lines(width) + &self.warnings_text(width)
    }

    /// The reasons, one sentence each, the main reasons first.
    fn reasons(&self) -> Vec<String> {
        let q = &self.question;
        let link = format!(
            "Output rate over input rate, Gamma: {} / {} = {:.3}.",
            q.rate, q.input_rate, self.gamma
        );
        let mut all = self.why();
        all.extend(self.mix_words());
        if !self.has_predictions() {
            return all;
        }
        all.extend(self.comparison());
        all.extend(self.rules_words());
        all.extend(self.verdict_words());
        all.extend(self.input_queue_words());
        all.extend(self.closed_form_words());
        all.extend(self.range_words());
        all.extend(self.more_flows_words());
        all.push(link);
        all
    }

    /// The comparison of the recommended buffer with the other rows of the table, by the printed rates. `None` where a simulation
    /// compared the buffers, where two rules disagree on purpose, where only closed forms
    /// know the rates, or where the aim is not the highest rate.
    fn comparison(&self) -> Option<String> {
        let favour = self.question.favour;
        // Rates of closed forms are too rough to compare.
        let is_settled =
            self.decided().is_some() || self.two_rules.is_some() || self.is_closed_form();
        if is_settled || favour == Favour::Latency {
            return None;
        }
        let whom = self.whom();
        let own = self.recommended.rate(favour)?;
        let rows = self.rows();
        let rows = rows.iter().filter_map(|row| Some((row, row.rate(favour)?)));
        let (best, rate) = rows.max_by_key(|(_, rate)| *rate)?;
        let with = match self.of_rule(Rule::BandwidthDelay) {
            // Up to C T, the formula's loss decides, not the table's.
            Some(rule) if self.source().is_none() && best.buffer > rule.buffer => {
                "By the rates in the table, with"
            }
            _ => "With",
        };
        Some(match printed(rate, best.source) > printed(own, self.recommended.source) {
            false => format!("No other buffer in the table makes {whom} faster."),
            true => format!(
                "{with} {:.0} packets {whom} would have {rate} instead of {own}, but a full buffer would delay all traffic by {}.",
                best.buffer.get(),
                best.full_delay()
            ),
        })
    }

    /// A file's sizes, and the share of its bytes in long flows that decides between short and bulk transfers.
    fn mix_words(&self) -> Vec<String> {
        let q = &self.question;
        let Mix::Sizes(sizes) = &q.mix else { return Vec::new() };
        let loss = self.loss_with_rule();
        let source = match self.decided() {
            Some(_) => "simulated for C x T",
            None if self.is_closed_form() => "a rough closed form's for C x T",
            None => "predicted for C x T",
        };
        let long = format!(
            "The buffer is sized for {}: {} of the file's bytes are in transfers that would have five losses or more at a loss of \
             {}, {source}. Above 50 %, bulk transfers count, or else short ones (--favour).",
            self.class(),
            Percent(q.mix.long_share(loss, q.packet)),
            percent(Some(loss))
        );
        // Nearest rank.
        let at = |share: f64| sizes[(libm::ceil(share * sizes.len() as f64) as usize).max(1) - 1];
        let own = format!(
            "The file has a median of {}, a 90th percentile of {} and a maximum of {}; the simulation draws Pareto sizes with \
             its mean, {}, instead.",
            at(0.5),
            at(0.9),
            at(1.0),
            self.size_mean
        );
        let own = self.source().map(|_| own);
        core::iter::once(long).chain(own).collect()
    }

    /// The transfers that the buffer is sized for, with their size.
    fn whom(&self) -> String {
        let [short, bulk] = self.transfers;
        match self.question.favour {
            Favour::Throughput => format!("bulk transfers of {bulk}"),
            // The median: half of all transfers are smaller, even if this size is large.
            Favour::Short | Favour::Latency => format!("transfers of {short}"),
        }
    }

    /// The class of transfers that the buffer is sized for.
    pub(super) fn class(&self) -> &'static str {
        match self.question.favour {
            Favour::Throughput => "bulk transfers",
            Favour::Short | Favour::Latency => "short transfers",
        }
    }

    /// The objective, and the buffer that maximises it.
    fn why(&self) -> Vec<String> {
        let q = &self.question;
        let whom = self.whom();
        if self.is_minimum() {
            return self.minimum_why();
        }
        vec![match self.basis {
            Basis::NothingQueues => {
                let n = q.inputs.unwrap_or_default();
                let inputs = if n == 1 { "input" } else { "inputs" };
                format!(
                    "{n} {inputs} of {} cannot exceed {}, so nothing queues beyond the packets that arrive together.",
                    q.input_rate, q.rate
                )
            }
            Basis::InitialWindow => {
                format!(
                    "Rate x RTT is {}, fewer than the {PACKETS_IN_FLIGHT} packets in flight that the formulas need. A new connection sends \
                     {INITIAL_WINDOW_PACKETS} packets at once (RFC 6928), which this buffer holds.",
                    q.rate * q.rtt
                )
            }
            Basis::Optimum if self.is_closed_form() => {
                format!("The closed form for {whom} gives this buffer.")
            }
            Basis::Optimum if self.lacks_transfers() => format!(
                "The formula's optimum for {whom}, too few of which finished in the simulator for a comparison."
            ),
            Basis::Optimum => {
                format!("For {whom} the formula balances loss against queueing at this buffer.")
            }
            Basis::Floor if self.question.favour == Favour::Latency => {
                "Below C T / sqrt(n) the link idles at times, and no closed form predicts the rate."
                    .to_owned()
            }
            Basis::Floor => {
                "With a smaller buffer the link idles when flows halve their windows.".to_owned()
            }
            Basis::Edge => format!(
                "The regression over simulated links does not cover {}, so the buffer lies between its best one for {whom} on the \
                 nearest link that it covers and a closed form's.",
                self.outside_words()
            ),
            Basis::Crowd => format!(
                "The buffer lies {}: the nearer a link is to overload, the more of a larger buffer is delay and not rate.",
                self.ends_words(&whom)
            ),
            Basis::RangeLow if self.decided().is_some_and(|_| self.is_moved()) => {
                let words = format!(
                    "In the simulator it is the smallest buffer with which {whom} keep 90 % of their best rate."
                );
                return [Some(words), self.best_words()].into_iter().flatten().collect();
            }
            Basis::RangeLow => {
                let words = format!(
                    "By formula it is the smallest buffer with which {whom} keep 90 % of their best rate."
                );
                return [Some(words), self.kept_words()].into_iter().flatten().collect();
            }
            Basis::Simulation => format!(
                "The bursts of single flows need it in the paper's simulations. The exponential that was measured \
                 neglects them and asks for no buffer for {whom}."
            ),
            Basis::BandwidthDelay if self.leaves_idle() => format!(
                "C x T keeps a link of persistent flows busy; these flows use {:.1} % of it, as they often wait for data or timeouts.",
                self.recommended.used.unwrap_or_default() * 100.0
            ),
            Basis::BandwidthDelay if self.is_closed_form() => {
                "C x T keeps the link busy while a flow halves its window; a larger buffer can delay all traffic by more than an RTT."
                    .to_owned()
            }
            Basis::BandwidthDelay => {
                "The formula asks for C x T or more, but a larger buffer can delay all traffic by more than an RTT."
                    .to_owned()
            }
            Basis::SquareRoot | Basis::BetweenRules => return self.persistent_why(),
            Basis::Simulator => format!(
                "In the simulator, no buffer up to C x T makes {whom} significantly faster."
            ),
        }]
    }

    /// The buffer with the best rate, and its cost.
    fn best_words(&self) -> Option<String> {
        let best = self.decided()?.fastest(self.question.favour, self.most)?;
        let full = best.buffer.in_bytes(self.question.packet) / self.question.rate;
        Some(format!(
            "With {:.0} packets they reach that best rate, at a loss of {} and up to {} of queue.",
            best.buffer.get(),
            self.percent(best.loss),
            Duration::from_secs_f64(three_digits(full.as_secs_f64()))
        ))
    }

    /// The formula's buffer and the rule's; the recommended buffer lies between them.
    fn ends_words(&self, whom: &str) -> String {
        let Some(simulated) = self.decided() else { return String::new() };
        let at = |i: usize| simulated.buffers.get(i).map_or(0.0, |tried| tried.buffer.get());
        let (formula, rule) = (at(simulated.advised), at(simulated.rule));
        format!("between {formula:.0} packets, by formula best for {whom}, and C x T, {rule:.0}")
    }

    /// Whether too few transfers of the favoured class finished in the simulation that decided.
    fn lacks_transfers(&self) -> bool {
        self.decided().is_some_and(|simulated| !simulated.compares(self.question.favour, self.most))
    }

    /// Whether a rule asks for less than the bursts of single flows need, so that the buffer holds just these bursts.
    pub(super) fn is_minimum(&self) -> bool {
        let is_rule = matches!(self.basis, Basis::RangeLow | Basis::Optimum | Basis::Floor);
        is_rule && self.recommended.buffer.get() == bursts(self.question.favour)
    }

    fn minimum_why(&self) -> Vec<String> {
        let bursts = bursts(self.question.favour);
        let words = format!(
            "The rule asks for less than the {bursts} packets that hold the bursts of single flows (Prasad et al., Table II)."
        );
        [Some(words), self.kept_words()].into_iter().flatten().collect()
    }

    /// The share of the best rate in the table that the recommended buffer keeps.
    fn kept_words(&self) -> Option<String> {
        let favour = self.question.favour;
        let rate = |row: &BufferChoice| Some(printed(row.rate(favour)?, row.source));
        let best = self.rows().iter().filter_map(rate).fold(0.0, f64::max);
        let own = rate(&self.recommended)?;
        Some(format!(
            "With {:.0} packets, {} keep {:.0} % of the best rate in the table.",
            self.recommended.buffer.get(),
            self.whom(),
            libm::floor(own / best * 100.0)
        ))
    }

    fn verdict_words(&self) -> Vec<String> {
        match self.decided() {
            Some(_) if self.lacks_transfers() => match self.basis {
                // Persistent flows do not finish, and an optimum already says this.
                Basis::SquareRoot | Basis::Optimum => Vec::new(),
                _ => vec![format!(
                    "Too few {} finished in the simulator for a comparison.",
                    self.class()
                )],
            },
            Some(_)
                if matches!(self.basis, Basis::SquareRoot | Basis::BetweenRules | Basis::Crowd) =>
            {
                self.larger_words().into_iter().collect()
            }
            Some(simulated) if self.question.favour != Favour::Latency => {
                let is_mentioned = self.basis == Basis::Simulator;
                let (packet, rate) = (self.question.packet, self.question.rate);
                let delay = |buffer: Packets| buffer.in_bytes(packet) / rate;
                let favour = self.question.favour;
                simulated.verdict(self.recommended.buffer, favour, is_mentioned, delay)
            }
            _ => Vec::new(),
        }
    }

    /// The quantities outside the regression's range, and the closed forms that replace it.
    fn closed_form_words(&self) -> Option<String> {
        // The reason for a buffer at the edge of the range names these quantities.
        if !self.is_closed_form() || self.decided().is_some() || self.basis == Basis::Edge {
            return None;
        }
        Some(format!(
            "Closed forms give the buffer, as the regression over simulated links does not cover {}.",
            self.outside_words()
        ))
    }

    pub(super) fn outside_words(&self) -> String {
        let all: Vec<String> = self.outside.iter().map(outside_words).collect();
        all.join(" and ")
    }

    /// The remark that a larger buffer in the table uses less of the link, apart from chance. Its losses no longer limit the windows,
    /// which grow until flows that share a slow input queue there and wait for each other.
    fn input_queue_words(&self) -> Option<String> {
        let simulated = self.source().filter(|simulated| simulated.users > simulated.inputs)?;
        let r = &self.recommended;
        let (used, noise) = (r.used?, r.noise?);
        // A difference within two standard errors may be chance.
        let is_less = |row: &BufferChoice| {
            let error = row.noise.map_or(0.0, |other| libm::hypot(noise.used, other.used));
            row.buffer > r.buffer && row.used.is_some_and(|less| less + 2.0 * error < used)
        };
        let rows = self.rows();
        let row = rows.iter().find(|row| self.gamma >= 1.0 && is_less(row))?;
        Some(format!(
            "With {:.0} packets the link uses {:.1} % instead of {:.1} %: losses no longer limit the windows, so flows queue at their \
             {} inputs instead, where they wait for each other.",
            row.buffer.get(),
            row.used? * 100.0,
            used * 100.0,
            simulated.inputs
        ))
    }

    fn range_words(&self) -> Option<String> {
        if self.basis == Basis::SquareRoot {
            return None;
        }
        // The formula's range refers to its own rates, while the link's utilisation caps the rates in the table.
        let simulated = self.source()?;
        let range = self.kept()?;
        if self.question.favour == Favour::Latency {
            // Closed forms choose the buffer, not the simulation of a scaled-down link.
            self.decided().filter(|_| self.basis == Basis::RangeLow)?;
            return Some(format!("The best rate holds up to {:.0} packets.", range.high?.get()));
        }
        if !simulated.tells_share(self.question.favour, self.recommended.buffer) {
            return None;
        }
        let low = two_digits(range.low.get());
        // Then the range only shows that no buffer tried is worse.
        if range.high.is_none() && low >= self.recommended.buffer.get() {
            return None;
        }
        let buffers = match range.high {
            Some(high) => {
                format!("About {low:.0} to {:.0} packets", two_digits(high.get()))
            }
            None => format!("About {low:.0} packets or more"),
        };
        Some(format!(
            "{buffers} give {} at least 90 % of the rate that they get with the recommended buffer (simulated).",
            self.class()
        ))
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
