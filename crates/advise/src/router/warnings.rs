//! Remarks that may change the decision, and are therefore printed even with `--quiet`.

use super::simulated::{OVERLOAD_LOSS, PACKETS_IN_FLIGHT};
use super::{BufferChoice, Favour, Mix, RouterAdvice, Rule};
use crate::text::{percent, two_digits, wrap};
use sweetspot_theory::router::loss_form::LossForm;
use sweetspot_units::Rate;

/// An unused share of the link that is worth a warning.
const NOTABLE_UNUSED_SHARE: f64 = 0.05;

impl RouterAdvice {
    /// All warnings; each begins with "Warning:".
    pub fn warnings(&self) -> Vec<String> {
        let part = self.simulated.as_ref().filter(|simulated| !simulated.decides()).map(|part| {
            format!(
                "Warning: the numbers come from the simulation of only {:.2} % of the link, {} of {}. Fewer flows smooth \
                 each other less, so closed forms choose the buffer.",
                part.scale * 100.0,
                part.rate,
                self.question.rate
            )
        });
        let unsimulated = self
            .unsimulated
            .as_ref()
            .map(|why| format!("Warning: by formulas alone, not checked in the simulator: {why}."));
        let neither = self.expected.is_none() && self.question.measurement.is_none();
        let neither = neither.then(|| {
            "Warning: with transfer sizes that are barely heavy-tailed and a capacity ratio of one or less, neither loss form fits well \
             (Prasad, Dovrolis, Thottan). Fit the formulas to measurements of the link (--fit)."
                .to_owned()
        });
        let overload = self.overload().or_else(|| self.losses()).or_else(|| self.many_losses());
        let all = [
            overload,
            self.too_few_flows(),
            self.idle(),
            self.inputs(),
            self.unused(),
            self.rough_mix(),
            part,
            self.first_transfers(),
            unsimulated,
            neither,
        ];
        all.into_iter().flatten().collect()
    }

    pub(super) fn warnings_text(&self, width: usize) -> String {
        self.warnings().iter().map(|warning| wrap(warning, width, 2)).collect()
    }

    /// Whether the recommended buffer leaves a notable share of the link idle.
    pub(super) fn leaves_idle(&self) -> bool {
        self.recommended.used.is_some_and(|used| used < 1.0 - NOTABLE_UNUSED_SHARE)
    }

    /// The remark that the number of inputs, which is unknown, decides whether anything queues behind slow ones.
    fn inputs(&self) -> Option<String> {
        if self.gamma < 1.0 || self.question.inputs.is_some() {
            return None;
        }
        let max = libm::floor(self.gamma);
        Some(format!(
            "Warning: nothing queues unless {:.0} such inputs or more send at once. Without --inputs N, the advice assumes that they do.",
            max + 1.0
        ))
    }

    /// The remark that a loss outside the regression's range decides which transfers of a file are long.
    fn rough_mix(&self) -> Option<String> {
        let is_file = matches!(self.question.mix, Mix::Sizes(_));
        // Another aim was given.
        let is_decided = self.usual_favour() != self.question.favour;
        if !is_file || is_decided || !self.is_closed_form() || self.decided().is_some() {
            return None;
        }
        Some(format!(
            "Warning: estimate only, sized for {}. Whether transfers count as short or bulk rests on a loss outside the regression's \
             range; simulate it, or choose by --favour.",
            self.class()
        ))
    }

    /// The remark that the simulation measures first transfers, which all begin at once, and not the long run.
    fn first_transfers(&self) -> Option<String> {
        let simulated = self.source().filter(|_| !self.persists())?;
        let takes = (self.size_mean / self.recommended.flow?).as_secs_f64();
        (takes > simulated.warmup as f64).then(|| {
            format!(
                "Warning: a transfer of {} takes about {:.0} s, but the warm-up is only {} s. All users begin at once, so the \
                 simulation may show more loss and a less busy link than the long run.",
                self.size_mean,
                two_digits(takes),
                simulated.warmup
            )
        })
    }

    /// The remark that the simulation ignores the measurements, with the loss by each at the recommended buffer.
    fn unused(&self) -> Option<String> {
        self.source().filter(|_| self.question.is_measured())?;
        let r = &self.recommended;
        let fitted = self.question.measurement.as_ref().and_then(|m| {
            let fit = m.loss(self.form);
            LossForm::new(self.form, fit.a.value, fit.b.value).ok()?.loss(r.buffer).ok()
        });
        let losses = fitted.zip(r.loss).map_or(String::new(), |(fitted, simulated)| {
            format!(
                ": loss {} simulated, {} fitted",
                self.percent(simulated),
                percent(Some(fitted.get()))
            )
        });
        Some(format!(
            "Warning: the simulation does not use the measurements of the link{losses}. Without --verify they decide."
        ))
    }

    /// The remark that flows have too few packets in flight with any buffer.
    fn overload(&self) -> Option<String> {
        let rule = self.of_rule(Rule::BandwidthDelay)?;
        let is_counted = self.question.flows.is_some() && !self.question.has_room();
        let loss = match self.source() {
            Some(simulated) => simulated.loss_with_rule(),
            None if !self.has_predictions() => None,
            // Path and buffer hold C T each.
            None if self.is_closed_form() && is_counted => {
                let in_flight = 2.0 * rule.buffer.get() / self.flows as f64;
                return (in_flight < PACKETS_IN_FLIGHT).then(|| {
                    "Warning: the link is overloaded. Even a buffer of C x T leaves the flows fewer than four packets each in \
                     flight, so they wait for timeouts. A larger buffer mostly adds delay; fewer flows or a faster link help."
                        .to_owned()
                });
            }
            None => rule.loss,
        };
        let loss = loss.filter(|loss| *loss > OVERLOAD_LOSS)?;
        Some(format!(
            "Warning: the link is overloaded. Even a buffer of C x T loses {} of the packets, so flows have fewer than \
             four in flight and wait for timeouts. A larger buffer mostly adds delay; fewer flows or a faster link help.",
            self.percent(loss)
        ))
    }

    /// The remark that the recommended buffer leaves each flow too few packets in flight.
    fn losses(&self) -> Option<String> {
        let r = &self.recommended;
        // Above OVERLOAD_LOSS, closed forms give no number.
        let is_above = r.loss.is_none() && r.used.is_some() && r.mean_delay.is_some();
        let loss = match r.loss.filter(|loss| *loss > OVERLOAD_LOSS) {
            Some(loss) => self.percent(loss),
            None if is_above => format!("more than {}", percent(Some(OVERLOAD_LOSS))),
            None => return None,
        };
        Some(format!(
            "Warning: this buffer loses {loss} of the packets, so flows have fewer than four in flight and wait for timeouts. {}",
            self.larger_buffers()
        ))
    }

    /// The remark that the recommended buffer has at least half the loss of an overload. Half of the flows then have too few
    /// packets in flight for three duplicate ACKs after a loss.
    fn many_losses(&self) -> Option<String> {
        let loss = self.recommended.loss.filter(|loss| *loss > OVERLOAD_LOSS / 2.0)?;
        // Reno's mean window, as in OVERLOAD_LOSS.
        let in_flight = libm::sqrt(1.5 / loss);
        Some(format!(
            "Warning: this buffer loses {} of the packets, which leaves each flow about {in_flight:.0} packets in flight, so many \
             losses end in timeouts. {}",
            self.percent(loss),
            self.larger_buffers()
        ))
    }

    /// Whether a larger buffer would lose less, by the rows of the table.
    fn larger_buffers(&self) -> String {
        let r = &self.recommended;
        let rows = self.rows();
        let larger = rows.iter().filter(|row| row.buffer > r.buffer);
        let known = larger.filter_map(|row| Some((row, self.digits(row.loss?))));
        let own = r.loss.map_or(f64::INFINITY, |loss| self.digits(loss));
        match known.min_by(|(_, one), (_, other)| one.total_cmp(other)) {
            Some((row, loss)) if loss < own => format!(
                "With {:.0} packets it would be {}, but a full buffer would delay all traffic by {}.",
                row.buffer.get(),
                self.percent(loss),
                row.full_delay()
            ),
            Some(_) => "No larger buffer in the table loses less.".to_owned(),
            None => {
                "A larger buffer mostly adds delay; fewer flows or a faster link help.".to_owned()
            }
        }
    }

    /// The remark that another buffer of the table uses more of the link and is no worse for short transfers, apart from chance.
    fn idle(&self) -> Option<String> {
        let r = &self.recommended;
        let (used, own) = (r.used?, r.short?);
        let is_full =
            self.question.load.is_none_or(|load| load >= 1.0) && self.too_few_flows().is_none();
        let serves_short = self.decided().is_some() && self.question.favour == Favour::Short;
        let no_worse = |row: &BufferChoice| {
            let chance =
                libm::hypot(row.error(Favour::Short).as_f64(), r.error(Favour::Short).as_f64());
            let rate = row.short.map_or(0.0, Rate::as_f64);
            rate + 2.0 * chance >= own.as_f64()
                && row.used.is_some_and(|more| more > used + NOTABLE_UNUSED_SHARE)
        };
        let rows = self.rows();
        let fuller = rows.iter().filter(|row| is_full && serves_short && no_worse(row));
        let fuller = fuller.min_by(|one, other| one.buffer.get().total_cmp(&other.buffer.get()))?;
        let slower = match fuller.short >= Some(own) {
            true => "no slower",
            false => "not significantly slower",
        };
        Some(format!(
            "Warning: this buffer leaves {:.0} % of the link idle. With {:.0} packets short transfers are {slower}, and {:.0} % are idle.",
            (1.0 - used) * 100.0,
            fuller.buffer.get(),
            (1.0 - fuller.used.unwrap_or(1.0)) * 100.0
        ))
    }

    /// The remark that the given number of flows cannot fill the link.
    fn too_few_flows(&self) -> Option<String> {
        let q = &self.question;
        let n = q.flows.filter(|_| self.offered <= 1.0 && self.has_predictions())?;
        let flows = |n: u64| if n == 1 { "flow" } else { "flows" };
        if n as f64 <= self.gamma {
            return Some(format!(
                "Warning: {n} {} of {} or less cannot exceed {}, so nothing queues. The buffer is for times with \
                 more flows.",
                flows(n),
                q.input_rate,
                q.rate
            ));
        }
        let r = &self.recommended;
        let (who, used) = match (self.source(), r.used) {
            // With the first choice of a buffer, the simulation aims at the given number of flows.
            (Some(_), Some(used)) => {
                (format!("about {} {}", two_digits(r.flows as f64), flows(r.flows)), used)
            }
            _ => (format!("{n} {}", flows(n)), self.offered),
        };
        let asked = match self.source() {
            Some(_) if two_digits(r.flows as f64) != two_digits(n as f64) => {
                format!(" ({n} asked for)")
            }
            _ => String::new(),
        };
        Some(format!(
            "Warning: {who} of {} on average{asked} use {:.1} % of the link, so only bursts queue. The buffer is for times with more flows.",
            self.size_mean,
            used * 100.0
        ))
    }
}
