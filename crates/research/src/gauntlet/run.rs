use sweetspot_scenario::{Engine, NoRecorder, Outcome, Scenario};

use super::measured::RunMeasured;
use super::plan::{GauntletPlan, GauntletRun};
use sweetspot_experiment::{ResultStore, RunKey, StudyError, Workers};

/// Executes the runs of a plan and stores their outcomes.
#[derive(Debug, Clone, Copy)]
pub struct Runner<'a, E: ?Sized, M: ?Sized> {
    /// The engine for runs without a stored outcome.
    pub engine: &'a E,
    /// The store of outcomes.
    pub store: &'a M,
    /// Tag of the sizings' implementation: stored outcomes with another tag are not used. The
    /// kernel's outcomes have no tag.
    pub tag: &'a str,
}

impl<E: Engine + Sync + ?Sized, M: ResultStore + ?Sized> Runner<'_, E, M> {
    /// Number of runs in the plan without a stored outcome.
    pub fn missing(&self, plan: &GauntletPlan) -> usize {
        plan.runs().filter(|run| self.store.get(&self.key(run)).is_none()).count()
    }

    /// The measurements of every run, in plan order.
    ///
    /// # Errors
    /// If the engine cannot execute a run.
    pub fn run(
        &self,
        plan: &GauntletPlan,
        workers: Workers,
    ) -> Result<Vec<RunMeasured>, StudyError> {
        let runs: Vec<GauntletRun<'_>> = plan.runs().collect();
        let finished = workers.map(&runs, |run| {
            let scenario = run.scenario();
            let outcome = self.outcome(&self.key(run), &scenario)?;
            Ok(RunMeasured::of(&scenario, &outcome))
        });
        finished.into_iter().collect()
    }

    fn key(&self, run: &GauntletRun<'_>) -> RunKey {
        let mut engine = self.engine.name().to_owned();
        if let Some(tag) = run.variant().tag(self.tag) {
            engine = format!("{engine} {tag}");
        }
        RunKey::of(&engine, &run.scenario())
    }

    fn outcome(&self, key: &RunKey, scenario: &Scenario) -> Result<Outcome, StudyError> {
        if let Some(outcome) = self.store.get(key) {
            return Ok(outcome);
        }
        let mut outcome = self.engine.run(scenario, &mut NoRecorder)?;
        // Events are not stored: the kernel's rule causes a thousand per second.
        for transfer in &mut outcome.transfers {
            transfer.events.clear();
        }
        self.store.put(key, &outcome);
        Ok(outcome)
    }
}
