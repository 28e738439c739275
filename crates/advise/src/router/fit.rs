//! Fits the loss form and the delay slope to measurements of the link.

use std::fmt::Display;

use serde_json::{Value, json};
use sweetspot_theory::Packets;
use sweetspot_theory::router::capacity_ratio::Form;
use sweetspot_theory::router::fit::{self, Estimate, LossFit, LossPoint};
use sweetspot_theory::router::form_test::{self, FormComparison};
use sweetspot_theory::router::per_flow::RouterLink;
use sweetspot_units::{Bytes, Duration, Probability, Rate, Significant, Volume};

use super::Parameters;
use crate::AdviceError;
use crate::text::{row, table, wrap};

/// Confidence level of the intervals and of the test between the forms.
const CONFIDENCE: f64 = 0.95;

/// Fits to measurements of a link.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkMeasurement {
    /// The fit of p = a B^-b.
    pub power_law: LossFit,
    /// The fit of p = a e^(-bB).
    pub exponential: LossFit,
    /// The fit of f in d = f B / C, if delays were given.
    pub delay: Option<Estimate>,
    /// The test that compares the two forms.
    pub comparison: FormComparison,
    /// The measurements, by rising buffer.
    pub points: Vec<MeasuredBuffer>,
}

/// A buffer of the link, with the loss and delay measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeasuredBuffer {
    /// The buffer.
    pub buffer: Packets,
    /// The delay of a full buffer.
    pub full: Duration,
    /// The loss rate.
    pub loss: Probability,
    /// The mean queueing delay, if it was measured.
    pub delay: Option<Duration>,
}

impl LinkMeasurement {
    /// Fits the lines of `text`, each `buffer, loss` or `buffer, loss, delay`, measured at a link
    /// of `rate` with packets of `packet` bytes. A buffer is a number of packets or a size
    /// (`120`, `120pkt`, `180kB`), a loss a share (`0.012`, `1.2%`), a delay a duration (`12ms`).
    /// Empty lines, lines that begin with `#`, and a first line of column names are skipped.
    ///
    /// # Errors
    /// If a line cannot be parsed, or fewer than four lines have loss at different buffers.
    pub fn read(text: &str, rate: Rate, packet: Bytes) -> Result<LinkMeasurement, AdviceError> {
        let lines = lines(text, packet)?;
        let points: Vec<LossPoint> = lines.iter().map(|(point, _)| *point).collect();
        let timed = lines.iter().filter(|(_, has_delay)| *has_delay);
        let timed: Vec<LossPoint> = timed.map(|(point, _)| *point).collect();
        // The RTT and f do not affect the delay per packet, so any values do.
        let link = RouterLink::new(rate, Duration::from_secs(1), packet, 1.0)?;
        let measured = |(point, has_delay): &(LossPoint, bool)| MeasuredBuffer {
            buffer: point.buffer,
            full: point.buffer.in_bytes(packet) / rate,
            loss: point.loss,
            delay: has_delay.then_some(point.delay),
        };
        let mut measured: Vec<MeasuredBuffer> = lines.iter().map(measured).collect();
        measured.sort_by(|one, other| one.buffer.get().total_cmp(&other.buffer.get()));
        Ok(LinkMeasurement {
            points: measured,
            comparison: form_test::compare(&points, 1.0 - CONFIDENCE)?,
            power_law: fit::loss(&points, Form::PowerLaw, CONFIDENCE)?,
            exponential: fit::loss(&points, Form::Exponential, CONFIDENCE)?,
            delay: match timed.len() {
                0 => None,
                _ => Some(fit::delay_slope(&timed, &link, CONFIDENCE)?),
            },
        })
    }

    /// The form to use: the better fit, or `expected` if the test does not decide.
    pub fn form(&self, expected: Form) -> Form {
        self.comparison.better.unwrap_or(expected)
    }

    /// The fit of `form`.
    pub fn loss(&self, form: Form) -> &LossFit {
        match form {
            Form::PowerLaw => &self.power_law,
            Form::Exponential => &self.exponential,
        }
    }

    /// A line with the parameters of `form`, for the answer.
    pub(super) fn line(&self, form: Form, given: &Parameters) -> String {
        let fit = self.loss(form);
        let (rule, r2) = match form {
            Form::PowerLaw => ("a B^-b", self.comparison.power_law_r2),
            Form::Exponential => ("a e^-bB", self.comparison.exponential_r2),
        };
        let all = [
            ("a", Some(fit.a), "--loss-a", given.loss_a),
            ("b", Some(fit.b), "--loss-b", given.loss_b),
            ("f", self.delay, "--delay-f", given.delay_f),
        ];
        let shown = all.into_iter().filter_map(|(name, fitted, option, given)| {
            let fitted = Significant::<3>(fitted?.value);
            let unused = given.map_or(String::new(), |_| format!(" (not used: {option} is given)"));
            Some(format!(", {name} = {fitted}{unused}"))
        });
        let shown: String = shown.collect();
        let predicted = match self.delay.is_none() && given.delay_f.is_none() {
            true => "; without delays, so the mean queue is predicted",
            false => "",
        };
        format!("loss = {rule}{shown}, R^2 = {r2:.3}, {} measurements{predicted}", fit.points)
    }

    /// A table of each measurement beside the fit of `form`.
    pub(super) fn beside_the_fit(&self, form: Form) -> String {
        let mut rows = vec![["packets", "loss %", "fitted"].map(str::to_owned).to_vec()];
        let has_delay = self.delay.is_some();
        rows[0].extend(["mean ms", "fitted"].map(str::to_owned).into_iter().filter(|_| has_delay));
        let percent = |loss: Probability| Significant::<3>(loss.get() * 100.0).to_string();
        let ms = |delay: Duration| Significant::<3>(delay.as_secs_f64() * 1e3).to_string();
        let known = |cell: Option<String>| cell.unwrap_or("-".to_owned());
        rows.extend(self.points.iter().map(|point| {
            let mut cells = row([
                &format!("{:.0}", point.buffer.get()),
                &percent(point.loss),
                &known(self.loss(form).form.loss(point.buffer).ok().map(percent)),
            ]);
            if has_delay {
                cells.extend([point.delay, self.fitted_delay(point)].map(|d| known(d.map(ms))));
            }
            cells
        }));
        format!("Measured, and fitted to that:\n{}", table(0, &rows))
    }

    /// The fitted delay at the buffer of `point`.
    fn fitted_delay(&self, point: &MeasuredBuffer) -> Option<Duration> {
        Some(point.full.scaled(self.delay?.value))
    }

    pub(super) fn text(&self, width: usize) -> String {
        let n = self.power_law.points;
        let p = self.comparison.p_value;
        let comparison = match self.comparison.better {
            Some(form) => format!("{} fits better (p = {p:.2e})", name(form)),
            None => format!(
                "neither form fits significantly better (p = {p:.2}); the capacity ratio decides"
            ),
        };
        let mut rows =
            vec![["fitted to", "form", "value", "95 % interval", "R2"].map(str::to_owned).to_vec()];
        let forms = [
            (&self.power_law, "p = a B^-b", self.comparison.power_law_r2),
            (&self.exponential, "p = a e^-bB", self.comparison.exponential_r2),
        ];
        for (fit, form, r2) in forms {
            rows.push(row([&"a", &form, &Significant::<4>(fit.a.value), &interval(fit.a), &""]));
            rows.push(row([
                &"b",
                &"",
                &Significant::<4>(fit.b.value),
                &interval(fit.b),
                &format!("{r2:.3}"),
            ]));
        }
        if let Some(f) = self.delay {
            rows.push(row([&"f", &"d = f B / C", &Significant::<4>(f.value), &interval(f), &""]));
        }
        let words = wrap(&format!("From {n} measurements with loss: {comparison}."), width, 0);
        format!("{words}{}", table(2, &rows))
    }

    pub(super) fn json(&self) -> Value {
        let loss = |fit: &LossFit, r2: f64| json!({ "a": estimate(fit.a), "b": estimate(fit.b), "r2": r2, "points": fit.points });
        json!({
            "pl": loss(&self.power_law, self.comparison.power_law_r2),
            "ex": loss(&self.exponential, self.comparison.exponential_r2),
            "f": self.delay.map(estimate),
            "better": self.comparison.better.map(name),
            "p_value": self.comparison.p_value,
            "confidence": CONFIDENCE,
            "points": self.points.iter().map(|point| self.point_json(point)).collect::<Vec<_>>(),
        })
    }

    fn point_json(&self, point: &MeasuredBuffer) -> Value {
        let fitted = |fit: &LossFit| fit.form.loss(point.buffer).ok().map(Probability::get);
        json!({
            "buffer_packets": point.buffer.get(),
            "loss": point.loss.get(),
            "pl_loss": fitted(&self.power_law),
            "ex_loss": fitted(&self.exponential),
            "delay_s": point.delay.map(|d| d.as_secs_f64()),
            "fitted_delay_s": self.fitted_delay(point).map(|d| d.as_secs_f64()),
        })
    }
}

fn lines(text: &str, packet: Bytes) -> Result<Vec<(LossPoint, bool)>, AdviceError> {
    let mut points = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        let is_head = points.is_empty() && line.starts_with(|c: char| c.is_ascii_alphabetic());
        if line.is_empty() || line.starts_with('#') || is_head {
            continue;
        }
        points.push(point(number + 1, line, packet)?);
    }
    Ok(points)
}

/// Parses line `number` of the file, counted from 1.
fn point(number: usize, line: &str, packet: Bytes) -> Result<(LossPoint, bool), AdviceError> {
    let wrong = |why: &dyn Display| AdviceError::Line {
        file: "fit",
        line: number,
        given: line.chars().take(60).collect(),
        why: why.to_string(),
    };
    let fields: Vec<&str> = line.split([',', ';', '\t']).map(str::trim).collect();
    let (buffer, loss, delay) = match fields[..] {
        [buffer, loss] => (buffer, loss, None),
        [buffer, loss, delay] => (buffer, loss, Some(delay)),
        _ => return Err(wrong(&"it is not \"buffer, loss, delay\", such as 120pkt, 1.2%, 12ms")),
    };
    let packets = match buffer.parse::<f64>() {
        Ok(number) => number,
        Err(_) => match buffer.parse::<Volume>().map_err(|e| wrong(&e))? {
            Volume::Packets(packets) => packets as f64,
            Volume::Bytes(bytes) => bytes.as_f64() / packet.as_f64(),
        },
    };
    let buffer = Packets::new(packets).map_err(|e| wrong(&e))?;
    if buffer <= Packets::ZERO {
        return Err(wrong(&"a buffer has a packet or more"));
    }
    let loss: Probability = loss.parse().map_err(|e| wrong(&e))?;
    if loss.get() >= 1.0 {
        return Err(wrong(&"a loss of 1 means that nothing passes; it must be below 1"));
    }
    let point = |delay| LossPoint { buffer, loss, delay };
    match delay {
        None => Ok((point(Duration::ZERO), false)),
        Some(delay) => Ok((point(delay.parse().map_err(|e| wrong(&e))?), true)),
    }
}

fn name(form: Form) -> &'static str {
    match form {
        Form::PowerLaw => "PL",
        Form::Exponential => "EX",
    }
}

fn estimate(e: Estimate) -> Value {
    json!({ "value": e.value, "low": e.low, "high": e.high })
}

fn interval(e: Estimate) -> String {
    format!("{} to {}", Significant::<4>(e.low), Significant::<4>(e.high))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: Bytes = Bytes::new(1500);
    const RATE: Rate = Rate::from_mbit_per_second(50);

    fn read(text: &str) -> Result<LinkMeasurement, AdviceError> {
        LinkMeasurement::read(text, RATE, PACKET)
    }

    #[test]
    fn the_fit_recovers_the_parameters_from_every_line_format() {
        // p = 0.3 B^-0.5; d = 0.4 B at 240 us a packet; 150 kB are 100 packets.
        let found = read(
            "buffer,loss,delay\n# a comment\n25, 6%, 2.4ms\n100pkt, 0.03, 9.6ms\n150kB; 0.03; \
             9600us\n400\t0.015\t38.4ms\n\n2500, 0.6%, 240ms\n",
        )
        .unwrap();
        assert!((found.power_law.b.value - 0.5).abs() < 1e-6, "{found:?}");
        assert!((found.power_law.a.value - 0.3).abs() < 1e-6);
        assert!((found.delay.unwrap().value - 0.4).abs() < 1e-6);
        assert_eq!(found.form(Form::Exponential), Form::PowerLaw);
        let given = Parameters { loss_a: Some(0.2), ..Default::default() };
        let line = found.line(Form::PowerLaw, &given);
        assert!(
            line.contains("a = 0.3 (not used: --loss-a is given), b = 0.5, f = 0.4,"),
            "{line}"
        );
        // 0.3 / sqrt(100) = 3 %; 0.4 x 100 x 240 us = 9.6 ms.
        let table = found.beside_the_fit(Form::PowerLaw);
        assert!(table.contains("\n      100       3       3      9.6     9.6\n"), "{table}");
        assert!(found.text(80).lines().all(|line| line.chars().count() <= 80));
    }

    #[test]
    fn without_delays_the_fit_has_no_delay_slope() {
        let found = read("10,0.1\n20,0.07\n40,0.05\n80,0.036\n").unwrap();
        assert_eq!(found.delay, None);
    }

    #[test]
    fn too_few_points_and_malformed_lines_are_rejected_with_the_reason() {
        let few = read("10,0.1\n20,0.07\n").unwrap_err().to_string();
        assert!(few.contains("needs at least 4 usable measurements, and there are 2"), "{few}");
        for (text, why) in [
            ("10,0.1\n20,2\n", "line 2"),
            ("10\n", "line 1"),
            ("10,0.1,soon\n", "line 1"),
            ("0,0.1\n", "a packet or more"),
            ("-5,0.1\n", "line 1"),
            ("10,1\n", "below 1"),
        ] {
            let message = read(text).unwrap_err().to_string();
            assert!(message.contains(why) && message.contains("the fit file"), "{text}: {message}");
        }
        assert!(read("").is_err());
    }
}
