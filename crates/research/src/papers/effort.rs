//! The cost of figures, for an estimate of the remaining time.

use sweetspot_units::Duration;

use super::figure::{Entry, Precision, Stage};

/// Approximate CPU time of the larger figures' simulations in seconds of one core, quick and careful: `sweetspot-research
/// reproduce all` on an AMD EPYC that was also compiling, 2026-11-24.
const CORE_SECONDS: &[(&str, f64, f64)] = &[
    ("bdp-fig3", 33.0, 72.0),
    ("bdp-fig4", 27.0, 51.0),
    ("bdp-fig5", 23.0, 102.0),
    ("bdp-fig6", 23.0, 183.0),
    ("bdp-fig7", 36.0, 277.0),
    ("bdp-fig8", 4.0, 8.0),
    ("bdp-table1", 800.0, 1900.0),
    ("bdp-beyond", 40.0, 96.0),
    ("drs-fig3", 4.0, 4.0),
    ("drs-fig5", 9.0, 9.0),
    ("drs-fig6", 10.0, 10.0),
    ("drs-fig7", 21.0, 21.0),
    ("drs-fig8", 6.0, 6.0),
    ("drs-solutions", 2.0, 6.0),
    ("drs-remarks", 5.0, 18.0),
    ("drs-future", 6.0, 21.0),
    ("drs-memory", 3.0, 9.0),
    ("router-fig2", 30.0, 69.0),
    ("router-fig13", 5.0, 10.0),
    ("router-sec6b", 20.0, 56.0),
    ("router-fig18", 3.0, 7.0),
];

impl Entry {
    /// The usual time for this figure without stored results, excluding the lab.
    pub fn usual_time(&self, stage: &Stage<'_>) -> Duration {
        let known = CORE_SECONDS.iter().find(|(name, ..)| *name == self.name);
        let (quick, careful) = known.map_or((0.5, 0.5), |(_, quick, careful)| (*quick, *careful));
        let seconds = match (stage.sim, stage.precision) {
            (None, _) => 0.0,
            (_, Precision::Quick) => quick,
            (_, Precision::Careful) => careful,
        };
        Duration::from_secs_f64(seconds / stage.workers.count() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::super::catalogue::catalogue;
    use super::*;

    #[test]
    fn every_figure_with_a_known_cost_is_in_the_catalogue() {
        for (name, quick, careful) in CORE_SECONDS {
            assert!(catalogue().any(|entry| entry.name == *name), "{name}");
            assert!(quick <= careful, "{name}");
        }
    }
}
