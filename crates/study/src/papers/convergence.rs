//! Figure 8 of the SOBAS paper: receive throughput over time.

use core::fmt::Write;

use sweetspot_scenario::{Engine, Outcome, Recorder, Sample};
use sweetspot_sizing::Sizing;
use sweetspot_units::Duration;

use super::published::Published;
use super::scenarios::TABLE_1;
use crate::StudyError;
use crate::markdown::MarkdownTable;

/// Bytes received up to each second.
#[derive(Debug, Default)]
struct Seconds(Vec<u64>);

impl Recorder for Seconds {
    fn interval(&self) -> Option<Duration> {
        Some(Duration::from_secs(1))
    }
    fn record(&mut self, sample: &Sample) {
        if sample.transfer == 0 {
            self.0.push(sample.acked_bytes);
        }
    }
}

impl Seconds {
    /// Mean rate between two seconds, Mbit/s.
    fn mbps(&self, from: usize, to: usize) -> f64 {
        let at = |second: usize| self.0.get(second).copied().unwrap_or(0);
        at(to).saturating_sub(at(from)) as f64 * 8.0 / (to - from) as f64 / 1e6
    }
}

/// Seconds after the transfer's start at which the table's intervals begin and end.
const MARKS: [usize; 12] = [0, 1, 2, 3, 5, 7, 10, 15, 20, 30, 60, 120];

/// Plays the figure and writes its table.
pub(super) fn figure<E: Engine>(
    engine: &E,
    published: &mut Published,
) -> Result<String, StudyError> {
    let mut columns = Vec::new();
    let mut text = String::from("### Figure 8: receive throughput over time\n\n");
    let (_, scenario) = TABLE_1[1];
    let _ = writeln!(
        text,
        "`{}`, over-buffered (B_t = 1250) and under-buffered (B_t = 313); Mbit/s in the interval \
         that begins there.\n",
        scenario.file
    );
    for (case, buffer) in [("over-buffered", 1250), ("under-buffered", 313)] {
        for sizing in [Sizing::SobasPaper, Sizing::Sobas] {
            let mut scenario = scenario.with(&[format!("path.hop.1.buffer={buffer}pkt")])?;
            scenario.transfers[0].sizing = sizing;
            let start = scenario.transfers[0].start.as_secs_f64() as usize;
            let mut seconds = Seconds::default();
            let outcome = engine.run(&scenario, &mut seconds)?;
            if sizing == Sizing::SobasPaper {
                put(published, case, &outcome);
            }
            columns.push((start, seconds));
        }
    }
    let heads = ["second", "paper, over", "sobas, over", "paper, under", "sobas, under"];
    let mut table = MarkdownTable::new(&heads);
    for pair in MARKS.windows(2) {
        let mut cells = vec![pair[0].to_string()];
        let rate = |(start, seconds): &(usize, Seconds)| {
            format!("{:.1}", seconds.mbps(start + pair[0], start + pair[1]))
        };
        cells.extend(columns.iter().map(rate));
        table.row(&cells);
    }
    let _ = writeln!(text, "{table}");
    Ok(text)
}

fn put(published: &mut Published, case: &str, outcome: &Outcome) {
    let events = outcome.transfers.first().map(|transfer| transfer.events.as_slice());
    let saturated = events.unwrap_or_default().iter().find(|event| event.kind == "saturated");
    if let Some(rate) = saturated.and_then(|event| event.rate_bps) {
        published.put(("sobas", "fig8"), &[case], rate / 1e6);
    }
}
