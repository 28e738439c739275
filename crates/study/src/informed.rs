//! What the six static schemes must be told, measured before they are told it.

use sweetspot_scenario::{Engine, EngineError, NoRecorder, Outcome, Recorder, Scenario, Transfer};
use sweetspot_sizing::{KnownPath, Sizing};
use sweetspot_units::{Duration, Rate, Volume};

use crate::StudyError;

/// An engine in front of another that finds out what static sizings (`bdp`, `bdp1` to `bdp6`)
/// need to know, and hands the engine behind it windows instead.
#[derive(Debug, Clone, Copy, Default)]
pub struct Informed<E>(pub E);

impl<E: Engine> Engine for Informed<E> {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn run(
        &self,
        scenario: &Scenario,
        recorder: &mut dyn Recorder,
    ) -> Result<Outcome, EngineError> {
        let inform = inform(&self.0, scenario);
        let informed = inform.map_err(|error| EngineError::Unsupported {
            engine: self.0.name(),
            reason: error.to_string(),
        })?;
        let mut outcome = self.0.run(&informed, recorder)?;
        for (transfer, asked) in outcome.transfers.iter_mut().zip(&scenario.transfers) {
            transfer.sizing = asked.sizing.to_string();
        }
        Ok(outcome)
    }
}

/// `scenario` with a window for every transfer whose sizing needs to know the path.
fn inform<E: Engine>(engine: &E, scenario: &Scenario) -> Result<Scenario, StudyError> {
    let needs = |t: &Transfer| matches!(t.sizing, Sizing::Bdp | Sizing::BdpBy(_));
    let mut informed = scenario.clone();
    for index in 0..scenario.transfers.len() {
        if !needs(&scenario.transfers[index]) {
            continue;
        }
        let window = match scenario.transfers[index].sizing {
            Sizing::BdpBy(definition) => {
                definition.window(Some(&survey(engine, scenario, index)?))?
            }
            _ => Some(scenario.path.bdp()),
        };
        informed.transfers[index].sizing = match window {
            // A scheme that finds nothing left of the path still sends one packet at a time.
            Some(window) => Sizing::Fixed(Volume::Bytes(window.max(scenario.path.packet))),
            None => Sizing::Max,
        };
    }
    Ok(informed)
}

/// The path of transfer `index`, structure and dynamics (section II of the SOBAS paper):
/// A and T_e from a run in which a probe of one packet per round trip takes the transfer's
/// place, BTC and T_a from one in which congestion alone limits it.
pub fn survey<E: Engine>(
    engine: &E,
    scenario: &Scenario,
    index: usize,
) -> Result<KnownPath, StudyError> {
    let capacity = scenario.path.narrow().rate;
    let mut path = KnownPath::new(capacity, scenario.path.rtt);

    let quiet = engine.run(&with_probe(scenario, index), &mut NoRecorder)?;
    // A_i = C_i (1 - rho_i), section II.
    path.available = Some(capacity.scaled((1.0 - quiet.bottleneck.utilisation).max(0.0)));
    path.exogenous_rtt = Some(Duration::from_secs_f64(quiet.transfers[index].rtt_mean_s));

    let mut open = scenario.clone();
    open.transfers[index].sizing = Sizing::Max;
    let loaded = engine.run(&open, &mut NoRecorder)?;
    path.bulk_capacity = Some(Rate::from_f64(loaded.transfers[index].goodput_bps));
    path.loaded_rtt = Some(Duration::from_secs_f64(loaded.transfers[index].rtt_mean_s));
    Ok(path)
}

/// The scenario before the transfer: in its place goes one packet per round trip, which sees
/// the queues of others and adds none.
fn with_probe(scenario: &Scenario, index: usize) -> Scenario {
    let mut quiet = scenario.clone();
    let probe = &mut quiet.transfers[index];
    probe.sizing = Sizing::Fixed(Volume::Packets(1));
    probe.size = None;
    // Every packet answered at once: a delayed ACK would count as queueing.
    probe.tcp.delayed_ack = false;
    quiet
}
