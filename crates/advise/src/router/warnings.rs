//! Remarks that may change the decision, and are therefore printed even with `--quiet`.

use super::simulated::{OVERLOAD_LOSS, PACKETS_IN_FLIGHT};
use super::{Basis, RouterAdvice};
use crate::text::{percent, wrap};
use sweetspot_theory::router::loss_form::LossForm;

impl RouterAdvice {
    /// All warnings, each begins with "Warning:".
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
        let all = [overload, self.too_few_flows(), self.unused(), part, unsimulated, neither];
        all.into_iter().flatten().collect()
    }

    pub(super) fn warnings_text(&self, width: usize) -> String {
        self.warnings().iter().map(|warning| wrap(warning, width, 2)).collect()
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

    /// The remark that flows have too few packets in flight whatever the buffer.
    fn overload(&self) -> Option<String> {
        let rule = self.rules.iter().find(|rule| rule.name == "BDP")?;
        let is_counted = self.question.flows.is_some() && !self.question.has_room();
        let loss = match self.source() {
            Some(simulated) => simulated.loss_with_rule(),
            None if self.basis == Basis::NothingQueues => None,
            // Pipe and buffer hold C T each.
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

    /// The remark that the recommended buffer leaves its flows too few packets in flight.
    fn losses(&self) -> Option<String> {
        let r = &self.recommended;
        // Above that loss closed forms give no number.
        let is_above = r.loss.is_none() && r.used.is_some() && r.mean_delay.is_some();
        let loss = match r.loss.filter(|loss| *loss > OVERLOAD_LOSS) {
            Some(loss) => self.percent(loss),
            None if is_above => format!("more than {}", percent(Some(OVERLOAD_LOSS))),
            None => return None,
        };
        Some(format!(
            "Warning: this buffer loses {loss} of the packets, so flows have fewer than four in flight and wait for timeouts. \
             A larger one would lose less."
        ))
    }

    /// The remark that the recommended buffer, which has half of an overload's loss or more, leaves its flows so few packets in flight that
    /// half of them do not show a loss by three duplicate ACKs.
    fn many_losses(&self) -> Option<String> {
        let r = &self.recommended;
        let loss = r.loss.filter(|loss| *loss > OVERLOAD_LOSS / 2.0)?;
        let held = r.flow? * (self.question.rtt + r.mean_delay?);
        let in_flight = held.as_f64() / self.question.packet.as_f64();
        (in_flight < 2.0 * PACKETS_IN_FLIGHT).then(|| {
            format!(
                "Warning: this buffer loses {} of the packets, and flows have about {in_flight:.0} in flight on average, so many losses \
                 end in timeouts. A larger buffer would lose less.",
                self.percent(loss)
            )
        })
    }

    /// The remark that the flows given cannot fill the link.
    fn too_few_flows(&self) -> Option<String> {
        let q = &self.question;
        let n = q.flows.filter(|_| self.offered <= 1.0 && self.basis != Basis::NothingQueues)?;
        let flows = if n == 1 { "flow" } else { "flows" };
        Some(if n as f64 <= self.gamma {
            format!(
                "Warning: {n} {flows} of {} or less cannot exceed {}, so nothing queues. The buffer is for times with \
                 more flows.",
                q.input_rate, q.rate
            )
        } else {
            format!(
                "Warning: {n} {flows} of {} on average use {:.1} % of the link at most, so only bursts queue. The buffer is for times with more flows.",
                self.size_mean,
                self.offered * 100.0
            )
        })
    }
}
