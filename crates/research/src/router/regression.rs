//! The regression of a, b and f over random links: its coefficients, and its error on links excluded from the fit.

use core::fmt::Write;

use sweetspot_advise::router::{Favour, Mix, Parameters, RouterQuestion, advise};
use sweetspot_theory::Packets;
use sweetspot_theory::router::capacity_ratio::Form;
use sweetspot_theory::router::traffic::{Prediction, Traffic};
use sweetspot_theory::router::{FEATURES, PARAMETERS};

use super::analysis::Fits;
use super::situations::{Situation, parse};
use crate::markdown::MarkdownTable;
use sweetspot_experiment::StudyError;
use sweetspot_experiment::router::measure::{BufferMeasured, MedianThroughput};
use sweetspot_statistics::{Line, Sorted};

const TABLE: &str = include_str!("../../data/router_situations.csv");

/// Links with their fitted parameters, and the regression over them.
#[derive(Debug)]
pub struct Regression {
    links: Vec<Described>,
    /// Number of links that could not be described: too few buffers with loss.
    undescribed: usize,
    /// (X' X)^-1.
    inverse: Vec<Vec<f64>>,
}

/// A class of flows.
type ThroughputOf = fn(&BufferMeasured) -> &MedianThroughput;

#[derive(Debug)]
struct Described {
    situation: Situation,
    traffic: Traffic,
    parameters: [f64; PARAMETERS],
}

/// The names of the parameters in tables.
const NAMES: [&str; PARAMETERS] =
    ["ln a, PL", "ln b, PL", "ln a, EX", "ln(b C T), EX", "ln(f / (1 - f))", "h", "ln k"];

/// The index of f's parameter.
const LOGIT_F: usize = 4;

impl Regression {
    /// The regression for the table compiled into the program.
    ///
    /// # Errors
    /// If the table cannot be parsed, which a test rules out.
    pub fn embedded() -> Result<Regression, StudyError> {
        Regression::of(TABLE)
    }

    /// The regression for a table written by `sweetspot-research bench router`.
    ///
    /// # Errors
    /// If the table cannot be parsed, or has too few links to determine the coefficients.
    pub fn of(table: &str) -> Result<Regression, StudyError> {
        let situations = parse(table)?;
        let all = situations.len();
        let links: Vec<Described> = situations.into_iter().filter_map(Described::of).collect();
        let mut normal = vec![vec![0.0; FEATURES]; FEATURES];
        for link in &links {
            let x = link.traffic.features();
            for (row, a) in normal.iter_mut().zip(x) {
                row.iter_mut().zip(x).for_each(|(sum, b)| *sum += a * b);
            }
        }
        let inverse = inverse(normal).ok_or_else(|| StudyError::Reference {
            table: "router_situations.csv",
            line: 1,
            reason: format!("{} links that can be described are too few", links.len()),
        })?;
        Ok(Regression { undescribed: all - links.len(), links, inverse })
    }

    /// The coefficients in the form used by `theory`.
    pub fn coefficients(&self) -> [[f64; FEATURES]; PARAMETERS] {
        let mut found = [[0.0; FEATURES]; PARAMETERS];
        for (parameter, coefficients) in found.iter_mut().enumerate() {
            let mut moments = [0.0; FEATURES];
            for link in &self.links {
                let x = link.traffic.features();
                let y = link.parameters[parameter];
                moments.iter_mut().zip(x).for_each(|(sum, x)| *sum += x * y);
            }
            for (coefficient, row) in coefficients.iter_mut().zip(&self.inverse) {
                *coefficient = row.iter().zip(moments).map(|(a, b)| a * b).sum();
            }
        }
        found
    }

    /// For each link, the parameters predicted by the regression over all other links.
    fn left_out(&self) -> Vec<[f64; PARAMETERS]> {
        let coefficients = self.coefficients();
        let predict = |link: &Described| {
            let x = link.traffic.features();
            // The residual of a linear regression without that point is e / (1 - x' (X' X)^-1 x).
            let leverage: f64 = self
                .inverse
                .iter()
                .zip(x)
                .map(|(row, a)| a * row.iter().zip(x).map(|(b, c)| b * c).sum::<f64>())
                .sum();
            let mut found = link.parameters;
            for (y, coefficients) in found.iter_mut().zip(coefficients) {
                let fitted: f64 = coefficients.iter().zip(x).map(|(c, x)| c * x).sum();
                *y -= (*y - fitted) / (1.0 - leverage);
            }
            found
        };
        self.links.iter().map(predict).collect()
    }

    /// Data, error and range of the regression, for the document.
    pub fn markdown(&self) -> String {
        let left_out = self.left_out();
        let mut text = format!(
            "{} random links, two seeds each (`sweetspot-research bench router`, the table \
             `crates/research/data/router_situations.csv`): 2 to 150 Mbit/s, 20 to 200 ms, C T_o of 16 to 1050 \
             packets, Gamma from 1/20 to 18.5, tail index from 1.15 to 2.2, transfers of 30 to 300 kB on \
             average, closed-loop users that offer 0.7 to 4 times the rate, a hundred inputs or 20 Gamma; nine \
             buffers from two packets to four times C T_o. {} of them could not be described (too few \
             buffers with loss). Each parameter is regressed on ln Gamma, the tail index, ln of the flows \
             active per packet of C T_o, ln C T_o, the load (use of the link with ample buffer) and ln of the \
             mean size in packets, with six products. Errors are those on the link left out (Q2: share of \
             the variance that is predicted).\n\n",
            self.links.len() + self.undescribed,
            self.undescribed
        );
        text.push_str(&self.parameter_table(&left_out));
        text.push_str(&self.error_words(&left_out));
        text.push_str(&self.choice_table(&left_out));
        text
    }

    fn parameter_table(&self, left_out: &[[f64; PARAMETERS]]) -> String {
        let mut table = MarkdownTable::new(&["parameter", "standard deviation", "error", "Q2"]);
        for (i, name) in NAMES.iter().enumerate() {
            let values: Vec<f64> = self.links.iter().map(|link| link.parameters[i]).collect();
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let off: Vec<f64> = values.iter().map(|value| value - mean).collect();
            let errors: Vec<f64> = values.iter().zip(left_out).map(|(y, p)| y - p[i]).collect();
            let (spread, error) = (rms(&off), rms(&errors));
            let q2 = 1.0 - error * error / (spread * spread);
            let cells = [
                (*name).to_owned(),
                format!("{spread:.3}"),
                format!("{error:.3}"),
                format!("{q2:.2}"),
            ];
            table.row(&cells);
        }
        format!("{table}\n")
    }

    fn error_words(&self, left_out: &[[f64; PARAMETERS]]) -> String {
        let mut errors: [Vec<f64>; 4] = Default::default();
        for (link, parameters) in self.links.iter().zip(left_out) {
            let Ok(found) = link.traffic.prediction(parameters) else { continue };
            errors[2].push(found.delay_slope - 1.0 / (1.0 + libm::exp(-link.parameters[LOGIT_F])));
            for m in link.counted() {
                let Ok(buffer) = Packets::new(m.buffer as f64) else { continue };
                if m.loss > MIN_LOSS {
                    errors[0].push(log_error(&found, Form::PowerLaw, buffer, m.loss));
                    errors[1].push(log_error(&found, Form::Exponential, buffer, m.loss));
                }
                errors[3].push(found.utilisation.at(buffer) - m.utilisation);
            }
        }
        let [pl, ex, delay, used] = errors;
        let factor = |of: &[f64]| {
            let of = magnitudes(of);
            let at = |p| libm::exp(of.quantile(p).unwrap_or(0.0));
            format!("{:.2} (median) and {:.2} (95 %)", at(0.5), at(0.95))
        };
        let points = |of: &[f64]| {
            let of = magnitudes(of);
            let at = |p| 100.0 * of.quantile(p).unwrap_or(0.0);
            format!("{:.1} (median) and {:.1} (95 %)", at(0.5), at(0.95))
        };
        let mut text = String::new();
        let _ = writeln!(
            text,
            "For buffers from five packets to twice C T_o, loss above 0.01 %: the power law's loss is off by a \
             factor of {}, the exponential's by {}, the use of the link by {} points; f by {} hundredths.\n",
            factor(&pl),
            factor(&ex),
            points(&used),
            points(&delay)
        );
        text
    }

    /// The simulated performance of buffers chosen from predicted parameters.
    fn choice_table(&self, left_out: &[[f64; PARAMETERS]]) -> String {
        let mut table = MarkdownTable::new(&[
            "whom",
            "buffer",
            "links",
            "share of best: 5 %",
            "25 %",
            "median",
        ]);
        for (whom, favour, of) in [
            ("median size", Favour::Short, (|m| &m.median_size) as ThroughputOf),
            ("bulk", Favour::Throughput, |m| &m.bulk),
        ] {
            let advised = self.links.iter().zip(left_out).map(|(link, parameters)| {
                link.share(of, favour, link.advised(favour, parameters)?)
            });
            row(&mut table, whom, "advised", advised);
            for (name, factor) in [("C T / 4", 0.25), ("C T / 2", 0.5), ("C T", 1.0)] {
                let fixed = self
                    .links
                    .iter()
                    .map(|link| link.share(of, favour, factor * link.traffic.bdp.get()));
                row(&mut table, whom, name, fixed);
            }
            let twenty = self.links.iter().map(|link| link.share(of, favour, 20.0));
            row(&mut table, whom, "20 packets", twenty);
        }
        format!(
            "The buffer that `advise router` chooses from the regression over all other links, judged by a \
             simulation of the omitted link: median throughput divided by the median with the best \
             buffer tried. Bulk: transfers of more \
             than eight times the mean, the best of the buffers up to C T_o; at full load, a larger buffer only \
             moves rate from short transfers to bulk transfers.\n\n{table}\n"
        )
    }
}

fn row(
    table: &mut MarkdownTable,
    whom: &str,
    buffer: &str,
    shares: impl Iterator<Item = Option<f64>>,
) {
    let shares: Sorted = shares.flatten().collect();
    let at = |p| format!("{:.0} %", 100.0 * shares.quantile(p).unwrap_or(0.0));
    let count = shares.len().to_string();
    table.row(&[whom, buffer, &count, &at(0.05), &at(0.25), &at(0.5)]);
}

/// Minimum loss rate: a few lost packets in a run are not significant.
const MIN_LOSS: f64 = 1e-4;
/// Minimum number of flows for a median.
const MIN_FLOWS: u64 = 10;

fn log_error(found: &Prediction, form: Form, buffer: Packets, loss: f64) -> f64 {
    let predicted = found.loss(form).loss(buffer).map_or(1.0, |p| p.get());
    libm::log(predicted / loss)
}

fn magnitudes(values: &[f64]) -> Sorted {
    values.iter().map(|value| value.abs()).collect()
}

fn rms(values: &[f64]) -> f64 {
    libm::sqrt(values.iter().map(|v| v * v).sum::<f64>() / values.len().max(1) as f64)
}

impl Described {
    fn of(situation: Situation) -> Option<Described> {
        let link = &situation.link;
        let fits = Fits::of_link(link.rate, link.rtt, link.packet, &situation.measured).ok()?;
        let bdp = link.bdp();
        let load = situation.measured.last()?.utilisation;
        let traffic = Traffic {
            gamma: link.gamma(),
            tail_index: link.tail_index,
            load,
            flows: at(&situation.measured, bdp, BufferMeasured::active_flows)?,
            bdp: Packets::new(bdp).ok()?,
            size: link.size_mean.as_f64() / link.packet.as_f64(),
        };
        let (level, slope) = use_of_link(&situation.measured, load)?;
        // The buffer is never used completely.
        let f = fits.delay.value.min(0.99);
        let parameters = [
            libm::log(fits.power_law.a.value),
            libm::log(fits.power_law.b.value),
            libm::log(fits.exponential.a.value),
            libm::log(fits.exponential.b.value * bdp),
            libm::log(f / (1.0 - f)),
            level,
            libm::log(slope),
        ];
        parameters.iter().all(|p| p.is_finite()).then_some(())?;
        Some(Described { situation, traffic, parameters })
    }

    /// Section VI-B's "sufficiently large" buffers, up to the largest that would be installed in practice.
    fn counted(&self) -> impl Iterator<Item = &BufferMeasured> {
        let max = 2.0 * self.traffic.bdp.get();
        self.situation.measured.iter().filter(move |m| m.buffer >= 5 && m.buffer as f64 <= max)
    }

    /// The recommended buffer for these parameters, packets.
    fn advised(&self, favour: Favour, parameters: &[f64; PARAMETERS]) -> Option<f64> {
        let found = self.traffic.prediction(parameters).ok()?;
        let link = &self.situation.link;
        let question = RouterQuestion {
            rate: link.rate,
            rtt: link.rtt,
            input_rate: link.input_rate,
            inputs: Some(link.inputs),
            flows: Some(self.traffic.flows.max(1.0) as u64),
            load: Some(self.traffic.load),
            size_mean: Some(link.size_mean),
            mix: Mix::Short,
            favour,
            available: None,
            packet: link.packet,
            parameters: Parameters {
                loss_form: Some(Form::PowerLaw),
                loss_a: Some(found.power_law.a()),
                loss_b: Some(found.power_law.b()),
                delay_f: Some(found.delay_slope),
                tail_index: Some(link.tail_index),
            },
            measurement: None,
        };
        Some(advise(&question).ok()?.recommended.buffer.get())
    }

    /// Throughput with `buffer` relative to the best buffer tried.
    fn share(&self, of: ThroughputOf, favour: Favour, buffer: f64) -> Option<f64> {
        let counted: Vec<BufferMeasured> =
            self.situation.measured.iter().filter(|m| of(m).flows >= MIN_FLOWS).cloned().collect();
        let rate = |m: &BufferMeasured| of(m).median_bps;
        let bdp = self.traffic.bdp.get();
        let within = |m: &&BufferMeasured| favour == Favour::Short || m.buffer as f64 <= bdp;
        let max = counted.iter().filter(within).map(rate).fold(0.0, f64::max);
        // C T_o itself is between two buffers that were tried.
        let max = if favour == Favour::Short { max } else { max.max(at(&counted, bdp, rate)?) };
        (counted.len() >= 6 && max > 0.0).then_some(())?;
        Some(at(&counted, buffer, rate)? / max)
    }
}

/// A measured value at `buffer`, interpolated over the logarithm of the buffer; beyond the ends, the value at the end.
fn at(
    measured: &[BufferMeasured],
    buffer: f64,
    of: impl Fn(&BufferMeasured) -> f64,
) -> Option<f64> {
    let above = measured.iter().position(|m| m.buffer as f64 >= buffer);
    match above {
        Some(0) => measured.first().map(of),
        None => measured.last().map(of),
        Some(i) => {
            let (low, high) = (&measured[i - 1], &measured[i]);
            let log = |m: &BufferMeasured| libm::log(m.buffer as f64);
            let share = (libm::log(buffer) - log(low)) / (log(high) - log(low));
            Some(of(low) + (of(high) - of(low)) * share)
        }
    }
}

/// h and k of u(B) = u / (1 + e^-h B^-k), by least squares on the logit of the used fraction of `load`, over buffers
/// with a use of neither almost zero nor almost all.
fn use_of_link(measured: &[BufferMeasured], load: f64) -> Option<(f64, f64)> {
    let points: Vec<(f64, f64)> = measured
        .iter()
        .map(|m| (libm::log(m.buffer as f64), m.utilisation / load))
        .filter(|(_, share)| (0.02..0.985).contains(share))
        .map(|(log, share)| (log, libm::log(share / (1.0 - share))))
        .collect();
    let Line { intercept, slope, .. } = Line::through(&points)?;
    (slope > 0.0).then_some((intercept, slope))
}

/// The inverse of a square matrix by Gauss-Jordan elimination; `None` if the matrix is singular.
fn inverse(mut matrix: Vec<Vec<f64>>) -> Option<Vec<Vec<f64>>> {
    let n = matrix.len();
    for (i, row) in matrix.iter_mut().enumerate() {
        row.extend((0..n).map(|j| f64::from(u8::from(i == j))));
    }
    for column in 0..n {
        let size = |row: &usize| matrix[*row][column].abs();
        let pivot = (column..n).max_by(|a, b| size(a).total_cmp(&size(b)))?;
        matrix.swap(column, pivot);
        let by = matrix[column][column];
        if by.abs() < 1e-12 {
            return None;
        }
        matrix[column].iter_mut().for_each(|value| *value /= by);
        let pivot = matrix[column].clone();
        for (_, row) in matrix.iter_mut().enumerate().filter(|(i, _)| *i != column) {
            let times = row[column];
            row.iter_mut().zip(&pivot).for_each(|(value, p)| *value -= times * p);
        }
    }
    Some(matrix.into_iter().map(|row| row[n..].to_vec()).collect())
}

#[cfg(test)]
mod tests {
    use sweetspot_theory::router::traffic::Traffic;

    use super::*;

    #[test]
    fn the_coefficients_in_theory_match_the_table() {
        let regression = Regression::embedded().unwrap();
        let coefficients = regression.coefficients();
        for link in &regression.links {
            let x = link.traffic.features();
            let mut parameters = [0.0; PARAMETERS];
            for (parameter, row) in parameters.iter_mut().zip(coefficients) {
                *parameter = row.iter().zip(x).map(|(c, x)| c * x).sum();
            }
            let here = link.traffic.prediction(&parameters).unwrap();
            let elsewhere = link.traffic.predict().unwrap();
            let near = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-3;
            assert!(
                near(here.power_law.b(), elsewhere.power_law.b()),
                "run sweetspot-research bench router"
            );
            assert!(near(here.exponential.b(), elsewhere.exponential.b()));
            assert!(near(here.delay_slope, elsewhere.delay_slope));
        }
    }

    #[test]
    fn no_table_link_is_outside_the_range() {
        for link in Regression::embedded().unwrap().links {
            let outside: Vec<_> = link.traffic.outside();
            assert!(outside.is_empty(), "{outside:?}");
        }
    }

    #[test]
    fn the_advised_buffer_is_good_on_unseen_links() {
        let regression = Regression::embedded().unwrap();
        let left_out = regression.left_out();
        let shares = |favour, of: ThroughputOf| -> Sorted {
            let all = regression.links.iter().zip(&left_out);
            all.filter_map(|(link, p)| link.share(of, favour, link.advised(favour, p)?)).collect()
        };
        let short = shares(Favour::Short, |m| &m.median_size);
        let bulk = shares(Favour::Throughput, |m| &m.bulk);
        assert!(short.quantile(0.5).unwrap() >= 0.95 && short.quantile(0.05).unwrap() >= 0.85);
        assert!(bulk.quantile(0.5).unwrap() >= 0.9, "{:?}", bulk.quantile(0.5));
    }

    #[test]
    fn regular_matrices_are_inverted_and_singular_ones_rejected() {
        // [[2, 1], [1, 1]]: determinant 1, inverse [[1, -1], [-1, 2]].
        let found = inverse(vec![vec![2.0, 1.0], vec![1.0, 1.0]]).unwrap();
        let expected = [[1.0, -1.0], [-1.0, 2.0]];
        for (row, wanted) in found.iter().zip(expected) {
            assert!(row.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-12));
        }
        assert_eq!(inverse(vec![vec![1.0, 2.0], vec![2.0, 4.0]]), None);
    }

    #[test]
    fn leave_one_out_equals_a_regression_without_that_link() {
        let all: Vec<&str> = TABLE.split_inclusive('\n').collect();
        let first = all[1].split(',').next().unwrap();
        let without: String =
            all.iter().filter(|line| line.split(',').next() != Some(first)).copied().collect();
        let whole = Regression::embedded().unwrap();
        let rest = Regression::of(&without).unwrap();
        let traffic: Traffic = whole.links[0].traffic;
        let x = traffic.features();
        for (left_out, row) in whole.left_out()[0].iter().zip(rest.coefficients()) {
            let predicted: f64 = row.iter().zip(x).map(|(c, x)| c * x).sum();
            assert!((left_out - predicted).abs() < 1e-6, "{left_out} {predicted}");
        }
    }
}
