//! The alternatives to the recommended buffer, with the cost of each.

use sweetspot_units::{Duration, Percent, Rate, Significant};

use super::{BufferChoice, RouterAdvice};
use crate::text::{percent, row, table, wrap};

/// The columns of a buffer's name, its size and the delay when it is full.
const BUFFER_COLUMNS: usize = 4;

impl RouterAdvice {
    pub(super) fn alternatives(&self, width: usize) -> String {
        let head = ["rule", "packets", "bytes", "full", "mean", "loss", "used", "short", "bulk"];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        // If nothing else decided, the formula's buffer is the one recommended above.
        let own = self.decided().map(|_| &self.by_formula);
        let all: Vec<&BufferChoice> =
            own.into_iter().chain(&self.available).chain(&self.rules).collect();
        let is_predicted = all.iter().any(|choice| choice.used.is_some());
        let mbit = |rate: Option<Rate>| {
            rate.map_or("-".to_owned(), |rate| Significant::<3>(rate.as_f64() / 1e6).to_string())
        };
        let ms = |delay: Duration| Significant::<3>(delay.as_secs_f64() * 1e3).to_string();
        rows.extend(all.iter().map(|c| {
            row([
                &c.name,
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
        let columns = if is_predicted { head.len() } else { BUFFER_COLUMNS };
        rows.iter_mut().for_each(|row| row.truncate(columns));
        let legend = wrap(&format!("  {}", self.legend(is_predicted)), width, 2);
        format!("Alternatives, by formula:\n{}{legend}", table(1, &rows))
    }

    /// The rows and columns that are shown, explained.
    fn legend(&self, is_predicted: bool) -> String {
        let [small, large] = self.transfers;
        let columns = match is_predicted {
            true => format!(
                "full, mean: queueing delay, ms. used: share of the link, which all flows share. short, bulk: \
                 Mbit/s of one transfer of {small} and of one of {large} among them, with the RTT, the queueing and the loss \
                 (S-model, eq. 2)."
            ),
            false => "full: delay of a full buffer, ms.".to_owned(),
        };
        let mut all = vec![columns];
        if is_predicted && self.is_closed_form() {
            all.push("-: not predicted, because the link would idle at times.".to_owned());
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
}
