//! A cache of outcomes, by engine, scenario and seed.

use serde_json::Value;
use sweetspot_scenario::{Engine, EngineResult, Outcome, Recorder, Scenario};

/// The key of a run. Together with the program's version it determines the outcome.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunKey {
    /// The engine.
    pub engine: String,
    /// FNV-1a of the scenario's text without its seed and its title, as 32 hexadecimal digits.
    pub scenario: String,
    /// The seed.
    pub seed: u64,
}

impl RunKey {
    /// The key of a run of `scenario` by the engine with this name.
    pub fn of(engine: &str, scenario: &Scenario) -> RunKey {
        let nameless = Scenario { seed: 0, title: String::new(), ..scenario.clone() };
        let digits = format!("{:032x}", fingerprint(nameless.to_string().as_bytes()));
        RunKey { engine: engine.to_owned(), scenario: digits, seed: scenario.seed }
    }
}

/// FNV-1a, 128 bits: Fowler, Noll, Vo; RFC 9923 section 5. It need not resist attacks: an attacker could
/// write a wrong outcome directly.
pub fn fingerprint(bytes: &[u8]) -> u128 {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes.iter().fold(OFFSET, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME))
}

/// A store of outcomes.
pub trait ResultStore: Sync {
    /// The stored outcome of this run, if any.
    fn get(&self, key: &RunKey) -> Option<Outcome>;

    /// Stores the outcome of this run. If that fails, the run will be simulated again.
    fn put(&self, key: &RunKey, outcome: &Outcome);

    /// A study's stored summary of this run, if any. A run with individual flows to count has no complete
    /// outcome.
    fn summary(&self, _key: &RunKey) -> Option<Value> {
        None
    }

    /// Stores a study's summary of this run.
    fn keep_summary(&self, _key: &RunKey, _summary: &Value) {}
}

/// A store that keeps nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoStore;

impl ResultStore for NoStore {
    fn get(&self, _key: &RunKey) -> Option<Outcome> {
        None
    }

    fn put(&self, _key: &RunKey, _outcome: &Outcome) {}
}

/// An engine that runs only scenarios missing from its store.
#[derive(Debug, Clone, Copy)]
pub struct CachedEngine<'a, E: ?Sized, M> {
    /// The engine for scenarios missing from the store.
    pub engine: &'a E,
    /// The store of outcomes.
    pub store: &'a M,
}

impl<E: Engine + ?Sized, M: ResultStore> Engine for CachedEngine<'_, E, M> {
    fn name(&self) -> &'static str {
        self.engine.name()
    }

    fn run(&self, scenario: &Scenario, recorder: &mut dyn Recorder) -> EngineResult {
        // The store has neither time series nor individual connections, so a run that must supply them is not
        // taken from it.
        if recorder.interval().is_some() || recorder.wants_flows() {
            return self.engine.run(scenario, recorder);
        }
        let key = RunKey::of(self.name(), scenario);
        if let Some(mut outcome) = self.store.get(&key) {
            outcome.scenario.clone_from(&scenario.title);
            return Ok(outcome);
        }
        let outcome = self.engine.run(scenario, recorder)?;
        self.store.put(&key, &outcome);
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_are_fnv_1a() {
        // The published test vectors for the empty text and "a".
        assert_eq!(fingerprint(b""), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        assert_eq!(fingerprint(b"a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
    }

    #[test]
    fn a_run_key_depends_on_the_scenario_but_not_on_its_title() {
        let read = |title: &str, rate: &str| {
            let text = format!(
                "title = \"{title}\"\nduration = \"1s\"\n[path]\nrate = \"{rate}\"\nrtt = \"10ms\"\nbuffer = \"10pkt\""
            );
            RunKey::of("sim", &Scenario::parse(&text).expect("it is a scenario"))
        };
        assert_eq!(read("one", "1Mbit/s"), read("another", "1000kbit/s"));
        assert_ne!(read("one", "1Mbit/s"), read("one", "2Mbit/s"));
    }
}
