//! The standing set: scenarios that every engine must go on agreeing about, with bounds.

use sweetspot_scenario::{Outcome, Scenario};
use sweetspot_theory::TheoryError;
use sweetspot_theory::path::elephants::Elephants;
use sweetspot_theory::path::{Path, saturation, unresponsive, window};
use sweetspot_units::{Bytes, Duration, Rate};

use crate::StudyError;

/// A scenario of the set.
#[derive(Debug, Clone, Copy)]
pub struct Standing {
    /// Its file's name in scenarios/standing, without `.toml`.
    pub name: &'static str,
    text: &'static str,
    /// What a closed form says of the first transfer's goodput, and which; where one does.
    closed_form: Option<ClosedForm>,
    /// How far the engines may lie apart.
    pub bounds: Bounds,
}

#[derive(Debug, Clone, Copy)]
struct ClosedForm {
    source: &'static str,
    goodput: fn() -> Result<Rate, TheoryError>,
}

/// How far the first transfer's goodput may lie off, as a share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// The simulator's from the closed form's.
    pub sim_off_theory: f64,
    /// The kernel's from the simulator's.
    pub lab_off_sim: f64,
}

/// Whether a bound was kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// Which two were compared, and what they say.
    pub words: String,
    /// The share by which the first lies off the second, signed.
    pub off: f64,
    /// What it may be.
    pub bound: f64,
}

impl Verdict {
    /// Whether the bound was kept.
    pub fn kept(&self) -> bool {
        self.off.abs() <= self.bound
    }
}

/// C of the set's paths, T_m, and a full packet's wire size and payload.
const CAPACITY: Rate = Rate::from_mbit_per_second(20);
const RTT: Duration = Duration::from_millis(40);
const PACKET: u64 = 1500;
const PAYLOAD: u64 = 1448;

/// The scenarios, simplest first.
pub const STANDING: [Standing; 7] = [
    Standing {
        name: "window-limited",
        text: include_str!("../../../../scenarios/standing/window-limited.toml"),
        closed_form: Some(ClosedForm { source: "SOBAS eq. (3)", goodput: window_limited }),
        // 50 kB are 33.3 packets: 33 whole ones carry 47.8 kB, 4.4 % less.
        bounds: Bounds { sim_off_theory: 0.05, lab_off_sim: 0.08 },
    },
    Standing {
        name: "sweet-spot",
        text: include_str!("../../../../scenarios/standing/sweet-spot.toml"),
        closed_form: Some(ClosedForm { source: "SOBAS section IV", goodput: full }),
        bounds: Bounds { sim_off_theory: 0.01, lab_off_sim: 0.01 },
    },
    Standing {
        name: "elephants",
        text: include_str!("../../../../scenarios/standing/elephants.toml"),
        closed_form: Some(ClosedForm { source: "SOBAS eqs (7) and (8)", goodput: elephants }),
        // Eq. (8) counts the whole backlog as the target's; the elephants' packets wait in it too,
        // so that the target gets more.
        bounds: Bounds { sim_off_theory: 0.1, lab_off_sim: 0.08 },
    },
    Standing {
        name: "poisson",
        text: include_str!("../../../../scenarios/standing/poisson.toml"),
        closed_form: Some(ClosedForm { source: "SOBAS section V-A", goodput: beside_udp }),
        bounds: Bounds { sim_off_theory: 0.03, lab_off_sim: 0.05 },
    },
    Standing {
        name: "sawtooth",
        text: include_str!("../../../../scenarios/standing/sawtooth.toml"),
        closed_form: Some(ClosedForm { source: "SOBAS eq. (17)", goodput: sawtooth }),
        bounds: Bounds { sim_off_theory: 0.08, lab_off_sim: 0.08 },
    },
    Standing {
        name: "mice",
        text: include_str!("../../../../scenarios/standing/mice.toml"),
        closed_form: None,
        bounds: Bounds { sim_off_theory: 0.0, lab_off_sim: 0.15 },
    },
    Standing {
        name: "sobas",
        text: include_str!("../../../../scenarios/standing/sobas.toml"),
        closed_form: Some(ClosedForm { source: "SOBAS section IV, the MFT", goodput: full }),
        // It paces at 98 % and probes.
        bounds: Bounds { sim_off_theory: 0.05, lab_off_sim: 0.05 },
    },
];

impl Standing {
    /// The scenario.
    ///
    /// # Errors
    /// If the text is none, which a test rules out.
    pub fn scenario(&self) -> Result<Scenario, StudyError> {
        Ok(Scenario::parse(self.text)?)
    }

    /// Which bounds `outcomes` kept, as far as they can be judged.
    pub fn verdicts(&self, outcomes: &[Outcome]) -> Vec<Verdict> {
        let goodput = |name: &str| {
            let outcome = outcomes.iter().find(|outcome| outcome.engine == name)?;
            Some(crate::play::goodput(outcome))
        };
        let mut verdicts = Vec::new();
        let mut judge = |names: (&str, &str), values: (f64, f64), bound: f64| {
            let (a, b) = values;
            let words =
                format!("{} {:.2} Mbit/s, {} {:.2} Mbit/s", names.0, a / 1e6, names.1, b / 1e6);
            verdicts.push(Verdict { words, off: a / b - 1.0, bound });
        };
        if let (Some(sim), Some((source, theory))) = (goodput("sim"), self.theory()) {
            judge(("sim", source), (sim, theory.as_f64()), self.bounds.sim_off_theory);
        }
        if let (Some(lab), Some(sim)) = (goodput("lab"), goodput("sim")) {
            judge(("lab", "sim"), (lab, sim), self.bounds.lab_off_sim);
        }
        verdicts
    }

    /// The closed form's goodput and its source.
    pub fn theory(&self) -> Option<(&'static str, Rate)> {
        let form = self.closed_form?;
        Some((form.source, (form.goodput)().ok()?))
    }
}

/// As payload.
fn payload(rate: Rate) -> Rate {
    rate.scaled(PAYLOAD as f64 / PACKET as f64)
}

fn pkt(n: u64) -> Bytes {
    Bytes::new(n * PAYLOAD)
}

fn window_limited() -> Result<Rate, TheoryError> {
    // A packet's own serialisation is part of its round trip.
    window::throughput(Bytes::new(50_000), RTT + Bytes::new(PACKET) / CAPACITY)
}

fn full() -> Result<Rate, TheoryError> {
    let path = Path::new(payload(CAPACITY), RTT, pkt(100))?;
    Ok(saturation::throughput(&path, Bytes::new(150_000))?.rate)
}

fn elephants() -> Result<Rate, TheoryError> {
    // Five windows of 8 packets per round trip.
    let cross = window::throughput(pkt(40), RTT)?;
    let capacity = payload(CAPACITY);
    let link = Elephants::new(capacity, capacity - cross, RTT, RTT, pkt(150))?;
    Ok(link.throughput(Bytes::new(100_000))?.rate)
}

fn beside_udp() -> Result<Rate, TheoryError> {
    // 20 sources of 300 kbit/s on the wire.
    let path =
        unresponsive::path(CAPACITY, Rate::from_mbit_per_second(6), RTT, Bytes::new(100 * PACKET))?;
    Ok(payload(saturation::maximum_feasible(&path)))
}

fn sawtooth() -> Result<Rate, TheoryError> {
    let path = Path::new(CAPACITY, RTT, Bytes::new(33 * PACKET))?;
    Ok(payload(saturation::congestion_limited(&path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_of_the_set_is_one_and_has_a_transfer() {
        for standing in STANDING {
            let scenario = standing.scenario().unwrap();
            assert!(!scenario.transfers.is_empty(), "{}", standing.name);
            assert_eq!(scenario.path.narrow().rate, CAPACITY, "{}", standing.name);
            assert_eq!(scenario.path.rtt, RTT, "{}", standing.name);
            assert_eq!(standing.theory().is_some(), standing.closed_form.is_some());
        }
    }

    #[test]
    fn closed_forms_by_hand() {
        let mbit = |of: fn() -> Result<Rate, TheoryError>| of().unwrap().as_f64() / 1e6;
        // 50,000 * 8 / (40 ms + 0.6 ms) = 9.852 Mbit/s.
        assert!((mbit(window_limited) - 9.852).abs() < 1e-3);
        // 20 * 1448/1500.
        assert!((mbit(full) - 19.307).abs() < 1e-3);
        // (20 - 6) * 1448/1500.
        assert!((mbit(beside_udp) - 13.515).abs() < 1e-3);
    }
}
