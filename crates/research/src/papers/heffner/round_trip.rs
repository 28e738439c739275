//! Sections 4.2.2 and 6.4: how a receiver measures RTTs, and the gain of a sender that inflates them.

use sweetspot_scenario::{NoRecorder, Scenario};
use sweetspot_sim::{ControllerMaker, run_steered};
use sweetspot_sizing::{
    Controller, ControllerConfig, Heffner, HeffnerVariant, Input, Needs, Output, Sizing,
    SizingPhase,
};
use sweetspot_units::Time;

use super::super::figure::{Figure, Stage};
use super::super::scenarios::HEFFNER_4;
use super::ENTRY_RTT;
use sweetspot_experiment::StudyError;
use sweetspot_experiment::plot::Table;

/// The cases and their changes to the scenario: the window is the limit during its growth, or never is.
const CASES: [(&str, &[&str]); 5] = [
    ("the link is the limit", &[]),
    ("a buffer of 100 packets, losses", &["path.buffer=100pkt"]),
    ("the sender has 20 Mbit/s of data", &["transfer.0.writer=rate=20Mbit/s"]),
    ("the sender has 2 Mbit/s of data", &["transfer.0.writer=rate=2Mbit/s"]),
    (
        "the sender has 0.2 Mbit/s of data, less than 4 segments per RTT",
        &["transfer.0.writer=rate=200kbit/s"],
    ),
];

/// Factors by which the attacker inflates every RTT.
const INFLATION: [f64; 4] = [1.0, 2.0, 4.0, 8.0];

pub(super) fn figure(stage: &Stage<'_>) -> Result<Figure, StudyError> {
    let mut figure = ENTRY_RTT.figure(format!(
        "`{}`. Without timestamps the receiver times a round trip from an advertised edge to the first byte beyond it \
         (`heffner:no-timestamps`). The paper calls that an overestimate wherever the window is not the limit. It is, but the \
         least sample counts, and the window is the limit while it grows from four segments: the windows below end alike, but \
         for senders with less than four segments per round trip, whose window the paper calls harmless. An attacking sender \
         that echoes old timestamps makes every sample too long; the window grows by the same factor, as the paper says, \
         until the host's limit. One honest sample would end the attack.",
        HEFFNER_4.file
    ));
    if stage.sim.is_none() {
        return Ok(figure);
    }
    let mut table = Table::new(
        "The largest window advertised, packets",
        &["case", "with timestamps", "by edges alone"],
    );
    for (case, changes) in CASES {
        let changes: Vec<String> = changes.iter().map(|text| (*text).to_owned()).collect();
        let scenario = HEFFNER_4.with(&changes)?;
        let max = |variant| format!("{:.0}", largest_window(&scenario, variant, 1.0));
        let [timed, untimed] = [HeffnerVariant::Twice, HeffnerVariant::NoTimestamps].map(max);
        table.rows.push(vec![case.to_owned(), timed, untimed]);
    }
    figure.tables.push(table);
    let mut table = Table::new(
        "An attacker that inflates every round trip",
        &["factor", "the largest window advertised, packets"],
    );
    // The queue holds the data that the largest of these windows sends.
    let scenario = HEFFNER_4.with(&["path.buffer=20000pkt".to_owned()])?;
    for factor in INFLATION {
        let max = largest_window(&scenario, HeffnerVariant::Twice, factor);
        table.rows.push(vec![format!("{factor:.0}"), format!("{max:.0}")]);
    }
    figure.tables.push(table);
    Ok(figure)
}

/// The largest window that the receiver advertises, packets, if its sender inflates RTTs by `factor`.
fn largest_window(scenario: &Scenario, variant: HeffnerVariant, factor: f64) -> f64 {
    let mut scenario = scenario.clone();
    for transfer in &mut scenario.transfers {
        transfer.sizing = Sizing::Heffner(variant);
    }
    let maker: ControllerMaker = Box::new(move |config: &ControllerConfig| {
        Box::new(Attacked { receiver: Box::new(Heffner::new(config, variant)), factor })
    });
    let outcome = run_steered(&scenario, &mut NoRecorder, vec![Some(maker)]);
    let header = scenario.transfers.first().map_or(0, |transfer| transfer.tcp.header.get());
    let payload = scenario.path.packet.get().saturating_sub(header).max(1);
    let windows = outcome.transfers.iter().flat_map(|t| &t.events).filter_map(|e| e.window_bytes);
    windows.max().unwrap_or_default() as f64 / payload as f64
}

/// A receiver attacked by a sender that echoes old timestamps.
struct Attacked {
    receiver: Box<dyn Controller + Send>,
    factor: f64,
}

impl Controller for Attacked {
    fn handle(&mut self, now: Time, input: &Input) {
        match input {
            Input::KernelRtt(rtt) => {
                self.receiver.handle(now, &Input::KernelRtt(rtt.scaled(self.factor)));
            }
            _ => self.receiver.handle(now, input),
        }
    }
    fn poll_timeout(&self) -> Option<Time> {
        self.receiver.poll_timeout()
    }
    fn poll_output(&mut self) -> Option<Output> {
        self.receiver.poll_output()
    }
    fn needs(&self) -> Needs {
        self.receiver.needs()
    }
    fn phase(&self) -> SizingPhase {
        self.receiver.phase()
    }
}
