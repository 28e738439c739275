//! The standing set: scenarios on which all engines must agree, with bounds.

use sweetspot_scenario::{Outcome, Scenario};

use sweetspot_experiment::StudyError;

/// A scenario of the set.
#[derive(Debug, Clone, Copy)]
pub struct StandingScenario {
    /// Its file's name in scenarios/standing, without `.toml`.
    pub name: &'static str,
    text: &'static str,
    /// Bounds of the engines' differences.
    pub bounds: AgreementBounds,
}

/// Bounds of the relative difference in the first transfer's goodput.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AgreementBounds {
    /// The simulator's from the closed form's; `None` where none covers the scenario.
    pub sim_off_theory: Option<f64>,
    /// The kernel's from the simulator's.
    pub lab_off_sim: f64,
}

/// A bound and its check.
#[derive(Debug, Clone, PartialEq)]
pub struct BoundCheck {
    /// The two engines and their values, Mbit/s.
    pub words: String,
    /// The share by which the first lies off the second, signed.
    pub off: f64,
    /// The bound.
    pub bound: f64,
}

impl BoundCheck {
    /// Whether the bound was kept.
    pub fn kept(&self) -> bool {
        self.off.abs() <= self.bound
    }
}

/// The scenarios, simplest first.
pub const STANDING: [StandingScenario; 7] = [
    StandingScenario {
        name: "window-limited",
        text: include_str!("../../scenarios/standing/window-limited.toml"),
        // A kernel's window need not be whole packets, and its ACKs wait for one more.
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
        // How deep the kernel's reno cuts depends on how its losses fall.
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
    /// If the text is none, which a test rules out.
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
