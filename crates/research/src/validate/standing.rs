//! The standing set: scenarios on which all engines must agree, with bounds.

use sweetspot_scenario::{Outcome, Scenario};

use sweetspot_experiment::StudyError;

/// A scenario of the set.
#[derive(Debug, Clone, Copy)]
pub struct StandingScenario {
    /// Its file name in scenarios/standing, without `.toml`.
    pub name: &'static str,
    text: &'static str,
    /// Bounds on the differences between the engines.
    pub bounds: AgreementBounds,
}

/// Bounds on the relative difference of the first transfer's goodput.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AgreementBounds {
    /// The simulator's deviation from the closed form; `None` if no closed form covers the
    /// scenario.
    pub sim_off_theory: Option<f64>,
    /// The kernel's deviation from the simulator.
    pub lab_off_sim: f64,
}

/// A bound and its check.
#[derive(Debug, Clone, PartialEq)]
pub struct BoundCheck {
    /// The two engines and their values, Mbit/s.
    pub words: String,
    /// The relative deviation of the first engine from the second, signed.
    pub off: f64,
    /// The bound.
    pub bound: f64,
}

impl BoundCheck {
    /// Whether the bound is met.
    pub fn kept(&self) -> bool {
        self.off.abs() <= self.bound
    }
}

/// The scenarios, simplest first.
pub const STANDING: [StandingScenario; 7] = [
    StandingScenario {
        name: "window-limited",
        text: include_str!("../../scenarios/standing/window-limited.toml"),
        // A kernel's window need not be a whole number of packets, and its delayed ACKs wait for a
        // second packet.
        bounds: AgreementBounds { sim_off_theory: Some(0.03), lab_off_sim: 0.05 },
    },
    StandingScenario {
        name: "sweet-spot",
        text: include_str!("../../scenarios/standing/sweet-spot.toml"),
        bounds: AgreementBounds { sim_off_theory: Some(0.01), lab_off_sim: 0.01 },
    },
    StandingScenario {
        name: "elephants",
        text: include_str!("../../scenarios/standing/elephants.toml"),
        bounds: AgreementBounds { sim_off_theory: Some(0.02), lab_off_sim: 0.03 },
    },
    StandingScenario {
        name: "poisson",
        text: include_str!("../../scenarios/standing/poisson.toml"),
        bounds: AgreementBounds { sim_off_theory: Some(0.03), lab_off_sim: 0.05 },
    },
    StandingScenario {
        name: "sawtooth",
        text: include_str!("../../scenarios/standing/sawtooth.toml"),
        // How far the kernel's reno reduces its window depends on the pattern of losses.
        bounds: AgreementBounds { sim_off_theory: Some(0.05), lab_off_sim: 0.08 },
    },
    StandingScenario {
        name: "mice",
        text: include_str!("../../scenarios/standing/mice.toml"),
        bounds: AgreementBounds { sim_off_theory: None, lab_off_sim: 0.15 },
    },
    StandingScenario {
        name: "sobas",
        text: include_str!("../../scenarios/standing/sobas.toml"),
        bounds: AgreementBounds { sim_off_theory: None, lab_off_sim: 0.05 },
    },
];

impl StandingScenario {
    /// The scenario.
    ///
    /// # Errors
    /// If the text is not a valid scenario, which a test rules out.
    pub fn scenario(&self) -> Result<Scenario, StudyError> {
        Ok(Scenario::parse(self.text)?)
    }

    /// The bounds that can be checked on `outcomes`.
    pub fn bound_checks(&self, outcomes: &[Outcome]) -> Vec<BoundCheck> {
        let goodput = |name: &str| {
            let outcome = outcomes.iter().find(|outcome| outcome.engine == name)?;
            Some(sweetspot_experiment::run::goodput(outcome))
        };
        let mut bound_checks = Vec::new();
        let mut check = |names: (&str, &str), values: (f64, f64), bound: f64| {
            let (a, b) = values;
            let words = format!("{} {:.2}, {} {:.2}", names.0, a / 1e6, names.1, b / 1e6);
            bound_checks.push(BoundCheck { words, off: a / b - 1.0, bound });
        };
        if let (Some(sim), Some(theory), Some(bound)) =
            (goodput("sim"), goodput("theory"), self.bounds.sim_off_theory)
        {
            check(("sim", "theory"), (sim, theory), bound);
        }
        if let (Some(lab), Some(sim)) = (goodput("lab"), goodput("sim")) {
            check(("lab", "sim"), (lab, sim), self.bounds.lab_off_sim);
        }
        bound_checks
    }
}
