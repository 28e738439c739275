//! A limit on the time of runs that the user did not ask for.

use std::sync::OnceLock;

use sweetspot_scenario::{Engine, EngineError, Outcome, Recorder, Scenario};
use sweetspot_system::clock;
use sweetspot_units::{Duration, Time};

use crate::progress::CountingEngine;

/// The time that a number of runs may take.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    began: Time,
    limit: Duration,
    total: usize,
    sample: usize,
}

impl Budget {
    /// `limit` from `began` on for `total` runs. After `sample` runs their speed counts.
    pub fn new(began: Time, limit: Duration, total: usize, sample: usize) -> Budget {
        Budget { began, limit, total, sample }
    }

    /// The time that all runs would take, if that is more than the limit; `done` are finished.
    pub fn exceeded(&self, done: usize, now: Time) -> Option<Duration> {
        let passed = now.since(self.began);
        let is_known = done >= self.sample || passed > self.limit;
        let all = passed.scaled(self.total as f64 / done.max(1) as f64);
        (is_known && all > self.limit).then_some(all)
    }
}

/// An engine that starts no run once its [`Budget`] is exceeded.
pub struct BudgetedEngine<'a> {
    engine: &'a CountingEngine<'a>,
    budget: Option<Budget>,
    needed: OnceLock<Duration>,
}

impl<'a> BudgetedEngine<'a> {
    /// Runs `engine` within `budget`, or without a limit.
    pub fn new(engine: &'a CountingEngine<'a>, budget: Option<Budget>) -> BudgetedEngine<'a> {
        BudgetedEngine { engine, budget, needed: OnceLock::new() }
    }

    /// The time that all runs would have taken, if the budget ended them.
    pub fn needed(&self) -> Option<Duration> {
        self.needed.get().copied()
    }
}

impl Engine for BudgetedEngine<'_> {
    fn name(&self) -> &'static str {
        self.engine.name()
    }

    fn run(
        &self,
        scenario: &Scenario,
        recorder: &mut dyn Recorder,
    ) -> Result<Outcome, EngineError> {
        let exceeded = self.budget.and_then(|b| b.exceeded(self.engine.done(), clock::now()));
        if let Some(all) = self.needed().or(exceeded) {
            let all = *self.needed.get_or_init(|| all);
            let reason = format!("all runs would take {all}");
            return Err(EngineError::Failed { engine: self.name(), reason });
        }
        self.engine.run(scenario, recorder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn the_first_runs_tell_whether_all_fit() {
        let budget = Budget::new(at(5), Duration::from_secs(30), 96, 8);
        // 8 of 96 in 2 s: all take 24 s; in 3 s: 36 s.
        assert_eq!(budget.exceeded(8, at(7)), None);
        assert_eq!(budget.exceeded(8, at(8)), Some(Duration::from_secs(36)));
        // Seven are too few to tell, until the limit has passed.
        assert_eq!(budget.exceeded(7, at(35)), None);
        assert_eq!(
            budget.exceeded(7, at(36)).map(|all| all > Duration::from_secs(400)),
            Some(true)
        );
    }

    /// Counts the runs that it is asked for.
    #[derive(Default)]
    struct Idle(std::sync::atomic::AtomicUsize);

    impl Engine for Idle {
        fn name(&self) -> &'static str {
            "idle"
        }

        fn run(&self, _: &Scenario, _: &mut dyn Recorder) -> Result<Outcome, EngineError> {
            self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let reason = "it does nothing".to_owned();
            Err(EngineError::Failed { engine: "idle", reason })
        }
    }

    #[test]
    fn no_run_begins_beyond_the_budget() {
        let idle = Idle::default();
        let counting = CountingEngine::new(&idle);
        let budget = Budget::new(Time::ZERO, Duration::ZERO, 4, 2);
        let engine = BudgetedEngine::new(&counting, Some(budget));
        let text = crate::text_file::scenario(std::path::Path::new("@elephants")).unwrap();
        let scenario = Scenario::parse(&text).unwrap();
        for _ in 0..4 {
            assert!(engine.run(&scenario, &mut sweetspot_scenario::NoRecorder).is_err());
        }
        assert_eq!(idle.0.load(std::sync::atomic::Ordering::Relaxed), 0);
        assert!(engine.needed().is_some());
    }
}
