//! The alternatives to the recommended buffer, with the cost of each.

use sweetspot_units::{Duration, Rate, Significant};

use super::lines::RARE_LOSS;
use super::{BufferChoice, RouterAdvice, Source};
use crate::text::{row, table, two_digits, wrap};

/// The columns of a buffer's name, its size and the delay when it is full.
const BUFFER_COLUMNS: usize = 4;

/// The columns of a table of buffers.
const HEAD: [&str; 9] =
    ["rule", "packets", "bytes", "full", "mean", "loss %", "used %", "short", "bulk"];

impl RouterAdvice {
    /// The recommended buffer and the others, with numbers of one source.
    pub(super) fn rows(&self) -> Vec<BufferChoice> {
        let recommended = BufferChoice { name: "recommended", ..self.recommended.clone() };
        let formula = Some(&self.by_formula).filter(|_| self.is_moved());
        let others = formula.into_iter().chain(&self.available).chain(&self.rules);
        core::iter::once(recommended).chain(others.map(|other| self.shown(other))).collect()
    }

    pub(super) fn alternatives(&self, width: usize) -> String {
        let rows = self.rows();
        let legend = self.legend(is_predicted(&rows));
        let source = wrap(&format!("Buffers, by {}:", self.source_words()), width, 0);
        format!("{source}{}{}", cells(&rows), wrap(&format!("  {legend}"), width, 2))
    }

    /// The same buffers by formula, beside a simulation.
    pub(super) fn alternatives_by_formula(&self, width: usize) -> String {
        let rows: Vec<BufferChoice> = [&self.by_formula]
            .into_iter()
            .chain(&self.available)
            .chain(&self.rules)
            .cloned()
            .collect();
        let by = if self.is_closed_form() { "closed forms" } else { "formula" };
        let unknown = match is_predicted(&rows) {
            true => wrap(
                "  -: not predicted. Rates: Prasad et al., eq. (2), with the loss and the queue of the row.",
                width,
                2,
            ),
            false => String::new(),
        };
        format!("The same by {by} alone:\n{}{unknown}", cells(&rows))
    }

    /// The rows and columns that are shown, explained.
    fn legend(&self, is_predicted: bool) -> String {
        let [small, large] = self.transfers;
        let columns = match (is_predicted, self.source()) {
            (true, Some(_)) => {
                let rows = self.rows();
                let [short, bulk] = [
                    rows.iter().any(|row| row.short.is_some()),
                    rows.iter().any(|row| row.bulk.is_some()),
                ];
                let medians = match (short, bulk) {
                    (true, true) => format!(
                        " short, bulk: Mbit/s, medians of transfers like {small} and {large}, to two digits."
                    ),
                    (true, false) => {
                        format!(" short: Mbit/s, the median of transfers like {small}, to two digits.")
                    }
                    (false, _) => String::new(),
                };
                format!(
                    "full, mean: queueing delay, ms.{medians} Numbers between the buffers tried are interpolated. -: not simulated, \
                     or too few finished."
                )
            }
            (true, None) if self.recommended.short.is_none() => {
                "full, mean: queueing delay, ms. -: not predicted.".to_owned()
            }
            (true, None) if self.persists() => {
                "full, mean: queueing delay, ms. short, bulk: Mbit/s, a flow's equal share. -: not predicted."
                    .to_owned()
            }
            (true, None) => format!(
                "full, mean: queueing delay, ms. short, bulk: Mbit/s of a transfer of {small} and of one of {large}. -: not predicted."
            ),
            (false, _) => "full: delay of a full buffer, ms.".to_owned(),
        };
        let mut all = vec![columns];
        let flows = if self.flows == 1 { "flow" } else { "flows" };
        let assumed = match (self.question.flows, self.source()) {
            (None, Some(_)) => {
                let simulated = two_digits(self.recommended.flows as f64);
                format!(", assumed by the rules (simulated: about {simulated})")
            }
            (None, None) => ", assumed".to_owned(),
            (Some(_), _) => String::new(),
        };
        all.extend(self.rules.iter().filter_map(|rule| match rule.name {
            "L-model" => Some("L-model: best for long flows (Prasad et al., eq. 11).".to_owned()),
            "BDP/sqrt(n)" => Some(format!("n: {} {flows}{assumed}.", self.flows)),
            "Cubic" => Some("Cubic: 3/7 of BDP/sqrt(n), BBR: 1/4.".to_owned()),
            "tiny" => Some("tiny: 20 packets.".to_owned()),
            "paper" => {
                Some("paper: Prasad et al.'s, for inputs slower than the output.".to_owned())
            }
            _ => None,
        }));
        all.join(" ")
    }
}

impl RouterAdvice {
    /// Whether all flows persist, so that each has the same rate.
    fn persists(&self) -> bool {
        self.two_rules.as_ref().is_some_and(|two| two.persistence == 1.0)
    }
}

/// A rate in Mbit/s as the table prints it.
fn mbit(rate: Rate) -> Significant<3> {
    Significant(rate.as_f64() / 1e6)
}

/// The number that the table prints for `rate`, which comes from `source`.
pub(super) fn printed(rate: Rate, source: Source) -> f64 {
    let rate = mbit(rate);
    match source {
        Source::Formula => rate.to_string().parse().unwrap_or(rate.0),
        Source::Simulation => two_digits(rate.0),
    }
}

/// Without a prediction only the buffers are left.
fn is_predicted(rows: &[BufferChoice]) -> bool {
    rows.iter().any(|choice| choice.used.is_some())
}

fn cells(choices: &[BufferChoice]) -> String {
    let mut rows = vec![HEAD.map(str::to_owned).to_vec()];
    let ms = |delay: Duration| Significant::<3>(delay.as_secs_f64() * 1e3).to_string();
    let percent = |share: Option<f64>, shown: fn(f64) -> String| {
        share.map_or("-".to_owned(), |share| shown(share * 100.0))
    };
    rows.extend(choices.iter().map(|c| {
        let digits = |number: f64| match c.source {
            Source::Formula => number,
            Source::Simulation => two_digits(number),
        };
        let known = |rate: Option<Rate>| {
            rate.map_or("-".to_owned(), |rate| {
                Significant::<3>(printed(rate, c.source)).to_string()
            })
        };
        let loss = c.loss.map(digits);
        row([
            &c.name,
            &format!("{:.0}", c.buffer.get()),
            &c.bytes,
            &ms(c.worst_delay),
            &c.mean_delay.map_or("-".to_owned(), |d| match d > c.worst_delay.scaled(RARE_LOSS) {
                true => ms(Duration::from_secs_f64(digits(d.as_secs_f64()))),
                false => "~0".to_owned(),
            }),
            &percent(loss, |loss| match loss < RARE_LOSS * 100.0 {
                true => format!("<{}", RARE_LOSS * 100.0),
                false => Significant::<3>(loss).to_string(),
            }),
            &percent(c.used, |used| format!("{used:.1}")),
            &known(c.short),
            &known(c.bulk),
        ])
    }));
    let columns = if is_predicted(choices) { HEAD.len() } else { BUFFER_COLUMNS };
    rows.iter_mut().for_each(|row| row.truncate(columns));
    table(1, &rows)
}
