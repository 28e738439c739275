//! The table of alternatives to the recommended buffer, with the cost of each.

use sweetspot_units::{Duration, Rate, Significant};

use super::lines::RARE_LOSS;
use super::model::{BULK, HEAVY_LOAD};
use super::simulated::{FULL_LOAD_SHARE, SimulatedErrors};
use super::{BufferChoice, Mix, RouterAdvice, Rule, Source};
use crate::text::{labelled, row, table, two_digits, wrap};

/// The number of columns for a buffer's name, its size and its delay when full.
const BUFFER_COLUMNS: usize = 4;

/// The origin of a number of flows that was not given.
const FILLING: &str = " assumed, as many as fill the link (--flows)";

/// Width of a term in the legend, in columns.
const KEY: usize = 15;
/// The headings of a table of buffers.
const HEAD: [&str; 9] =
    ["rule", "packets", "bytes", "full", "mean", "loss %", "used %", "short", "bulk"];

impl RouterAdvice {
    /// The recommended buffer and the alternatives, with numbers from one source.
    pub(super) fn rows(&self) -> Vec<BufferChoice> {
        let recommended = BufferChoice { rule: Rule::Recommended, ..self.recommended.clone() };
        let formula = Some(&self.by_formula).filter(|_| self.is_moved());
        let others = formula.into_iter().chain(&self.available).chain(&self.rules);
        core::iter::once(recommended).chain(others.map(|other| self.shown(other))).collect()
    }

    pub(super) fn alternatives(&self, width: usize) -> String {
        let rows: Vec<BufferChoice> =
            self.rows().into_iter().map(|row| self.without_assumed_use(row)).collect();
        let source = wrap(&format!("Buffers, by {}:", self.source_words()), width, 0);
        let legend = self.legend(&rows).into_iter();
        let legend = legend.map(|(name, words)| labelled(KEY, &format!("  {name}"), &words, width));
        // The empty line keeps a narrow terminal from folding the legend into the table.
        format!("{source}{}\n{}", self.cells(&rows), legend.collect::<String>())
    }

    /// The table of the same buffers by formula, printed beside a simulation.
    pub(super) fn alternatives_by_formula(&self, width: usize) -> String {
        let rows: Vec<BufferChoice> = [&self.by_formula]
            .into_iter()
            .chain(&self.available)
            .chain(&self.rules)
            .map(|row| self.without_assumed_use(row.clone()))
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
        format!("The same by {by} alone:\n{}{unknown}", self.cells(&rows))
    }

    /// Whether closed forms assume `choice` to fill almost all of the link, and predict nothing.
    pub(super) fn assumes_use(&self, choice: &BufferChoice) -> bool {
        let assumed = FULL_LOAD_SHARE * self.question.load.unwrap_or(HEAVY_LOAD);
        let is_assumed = choice.used.is_some_and(|used| (used - assumed).abs() < f64::EPSILON);
        choice.source == Source::Formula && self.is_closed_form() && is_assumed
    }

    fn without_assumed_use(&self, choice: BufferChoice) -> BufferChoice {
        let used = choice.used.filter(|_| !self.assumes_use(&choice));
        BufferChoice { used, ..choice }
    }

    /// Explanations of the columns and rows shown.
    fn legend(&self, rows: &[BufferChoice]) -> Vec<(&'static str, String)> {
        if !is_predicted(rows) {
            let full = ("full", "delay of a full buffer, ms".to_owned());
            return core::iter::once(full).chain(self.rules_legend(false)).collect();
        }
        let is_simulated = self.source().is_some();
        let unknown = match is_simulated {
            true => "not simulated, or too few finished",
            false => "not predicted",
        };
        let lacks = |row: &BufferChoice| {
            let rates = row.short.is_none() || row.bulk.is_none();
            rates || row.loss.is_none() || row.mean_delay.is_none() || row.used.is_none()
        };
        let unknown = rows.iter().any(lacks).then(|| ("-", unknown.to_owned()));
        let delays = ("full, mean", "queueing delay, ms".to_owned());
        let rates = self.rates_legend(rows);
        let sizes = rates.as_ref().map(|_| ("sizes", self.sizes_legend(rows)));
        let between = rows.iter().any(|row| self.is_interpolated(row));
        let between = between.then(|| ("~", "interpolated between simulated buffers".to_owned()));
        let all = core::iter::once(delays).chain(rates).chain(sizes);
        let all = all.chain(between).chain(self.noise_legend(rows));
        all.chain(self.rules_legend(true)).chain(unknown).collect()
    }

    /// The legend of the rate columns, if a row has a rate.
    fn rates_legend(&self, rows: &[BufferChoice]) -> Option<(&'static str, String)> {
        let [small, large] = self.transfers;
        let has_bulk = has_bulk(rows);
        rows.iter().find(|row| row.short.is_some())?;
        let (name, sizes) = match has_bulk {
            true => ("short, bulk", format!("{small} and {large}")),
            false => ("short", small.to_string()),
        };
        let whose = match self.source() {
            Some(_) => format!("median rate of transfers like {sizes}"),
            None if self.persists() => "a flow's equal share".to_owned(),
            None => format!("rate of transfers of {sizes}"),
        };
        Some((name, format!("{whose}, Mbit/s")))
    }

    /// The 95 % intervals of the recommended buffer's numbers, and the widest of each column.
    fn noise_legend(&self, rows: &[BufferChoice]) -> Option<(&'static str, String)> {
        let interval = self.source()?.interval();
        let noise = |of: fn(&SimulatedErrors) -> f64| {
            rows.iter().map(move |row| row.noise.as_ref().map(of)).collect::<Vec<_>>()
        };
        let rate = |which: usize, of: fn(&BufferChoice) -> Option<Rate>| {
            let known = rows.iter().map(move |row| of(row).and(row.errors));
            known.map(|errors| Some(errors?[which].as_f64() / 1e6)).collect::<Vec<_>>()
        };
        let columns = [
            ("mean", noise(|all| all.mean_delay.as_secs_f64() * 1e3)),
            ("loss", noise(|all| all.loss * 100.0)),
            ("used", noise(|all| all.used * 100.0)),
            ("short", rate(0, |row| row.short)),
            ("bulk", rate(1, |row| row.bulk)),
        ];
        let shown = |error: f64| Significant::<2>(error * interval);
        let words = columns.iter().filter_map(|(name, errors)| {
            let widest = errors.iter().flatten().copied().fold(0.0, f64::max);
            Some(format!("{name} +- {} ({})", shown((*errors.first()?)?), shown(widest)))
        });
        let words: Vec<String> = words.collect();
        let all = words.join(", ");
        Some(("+-", format!("95 % intervals of the recommended row (and the widest): {all}")))
    }

    /// The origin of the sizes of the short and the bulk transfer.
    fn sizes_legend(&self, rows: &[BufferChoice]) -> String {
        let short = match self.question.mix {
            // A simulation draws Pareto sizes instead.
            Mix::Sizes(_) if self.source().is_none() => "the file's short transfers",
            _ => "all transfers",
        };
        let bulk = match has_bulk(rows) {
            true => format!(" and of those above {BULK} x the mean"),
            false => String::new(),
        };
        format!("the medians of {short}{bulk} (mean: {})", self.size_mean)
    }

    /// The legend of the rules with a name that needs an explanation.
    fn rules_legend(&self, has_results: bool) -> impl Iterator<Item = (&'static str, String)> {
        let formula = Some(&self.by_formula).filter(|_| self.is_moved());
        formula.into_iter().chain(&self.rules).filter_map(move |choice| {
            let (name, words) = match choice.rule {
                Rule::LongFlows => ("L-model", "Prasad et al.'s optimum for long flows under their loss model (eq. 11)"),
                Rule::BandwidthDelay => ("BDP", "C x T, the rate of the link times the RTT"),
                Rule::SquareRoot => return Some(("n", self.flows_legend())),
                Rule::Formula => ("formula", "the first buffer, before the simulation"),
                Rule::Cubic if !has_results => {
                    ("Cubic, BBR", "3/7 and 1/4 of BDP/sqrt(n), advised for Cubic or BBR flows")
                }
                Rule::Cubic => (
                    "Cubic, BBR",
                    "3/7 and 1/4 of BDP/sqrt(n), advised for Cubic or BBR flows; the results are for flows that halve their window",
                ),
                Rule::Tiny => ("tiny", "for paced senders or slow inputs (Enachescu et al.)"),
                Rule::SlowInputs => (
                    "paper",
                    "Prasad et al.'s, for inputs slower than the output: holds the bursts of single flows, not the queue of flows that \
                     fill the link together",
                ),
                _ => return None,
            };
            Some((name, words.to_owned()))
        })
    }

    /// The legend of n, the number of flows that the rules use.
    fn flows_legend(&self) -> String {
        let flows = if self.flows == 1 { "flow" } else { "flows" };
        let assumed = match (self.question.flows, self.source()) {
            (None, Some(_)) if self.flows == self.recommended.flows => ", as simulated".to_owned(),
            (None, Some(_)) => {
                let simulated = two_digits(self.recommended.flows as f64);
                format!("{FILLING}; simulated: about {simulated}")
            }
            (None, None) => FILLING.to_owned(),
            (Some(_), _) => String::new(),
        };
        format!("{} {flows}{assumed}", self.flows)
    }

    /// Whether all flows persist, so that each has the same rate.
    pub(super) fn persists(&self) -> bool {
        self.two_rules.as_ref().is_some_and(|two| two.persistence == 1.0)
    }
}

fn has_bulk(rows: &[BufferChoice]) -> bool {
    rows.iter().any(|row| row.bulk.is_some())
}

/// The name of a row. The numbers of a rule for other congestion controls are for flows that halve their window.
fn name(rule: Rule) -> String {
    match rule {
        Rule::Cubic | Rule::Bbr => format!("{} rule", rule.name()),
        _ => rule.name().to_owned(),
    }
}

/// A rate in Mbit/s, as printed in the table.
fn mbit(rate: Rate) -> Significant<3> {
    Significant(rate.as_f64() / 1e6)
}

/// The number printed in the table for `rate`, with the precision of its `source`.
pub(super) fn printed(rate: Rate, source: Source) -> f64 {
    let rate = mbit(rate);
    match source {
        Source::Formula => rate.to_string().parse().unwrap_or(rate.0),
        Source::Simulation => two_digits(rate.0),
    }
}

/// Whether a row has a prediction. Without any, the table shows only the buffers.
fn is_predicted(rows: &[BufferChoice]) -> bool {
    rows.iter().any(|choice| choice.used.or(choice.loss).is_some() || choice.mean_delay.is_some())
}

impl RouterAdvice {
    /// The table of `choices`.
    fn cells(&self, choices: &[BufferChoice]) -> String {
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
                &name(c.rule),
                &format!("{}{:.0}", if self.is_interpolated(c) { "~" } else { "" }, c.buffer.get()),
                &c.whole_bytes(),
                &ms(c.full_delay()),
                &c.mean_delay.map_or("-".to_owned(), |d| {
                    match d > c.worst_delay.scaled(RARE_LOSS) {
                        true => ms(Duration::from_secs_f64(digits(d.as_secs_f64()))),
                        false => "~0".to_owned(),
                    }
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
}
