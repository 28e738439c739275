use sweetspot_emulator::rehearse as carry;
use sweetspot_path::PathSpec;
use sweetspot_units::Rate;

use crate::LabError;
use crate::plan::LabPlan;

/// Below this packet rate no rehearsal is needed: the certificate suffices.
const SAFE_PACKETS_PER_SECOND: f64 = 15_000.0;
/// How often the rate is halved to find a feasible one.
const MAX_HALVINGS: u32 = 4;

/// Briefly runs the path at its full rate if that may be too fast for this machine. Returns the reason and a feasible rate, or
/// `None`.
pub(super) fn rehearse(plan: &LabPlan) -> Result<Option<String>, LabError> {
    let path = &plan.narrow;
    let packets = path.up.rate.as_f64() / 8.0 / path.mtu.as_f64();
    if packets <= SAFE_PACKETS_PER_SECOND {
        return Ok(None);
    }
    let trial = carry(path)?;
    if trial.truthful {
        return Ok(None);
    }
    for halvings in 1..=MAX_HALVINGS {
        let slower = at(path, path.up.rate.scaled(0.5_f64.powi(halvings as i32)));
        if carry(&slower)?.truthful {
            return Ok(Some(format!(
                "this machine cannot emulate {} truthfully now ({}); {} it could: path.rate={}",
                path.up.rate,
                trial.reasons.join("; "),
                slower.up.rate,
                slower.up.rate.to_string().replace(' ', ""),
            )));
        }
    }
    Ok(Some(format!(
        "this machine cannot emulate {} truthfully now, nor a sixteenth of it ({}); is it busy?",
        path.up.rate,
        trial.reasons.join("; "),
    )))
}

fn at(path: &PathSpec, rate: Rate) -> PathSpec {
    let mut slower = path.clone();
    (slower.up.rate, slower.down.rate) = (rate, rate);
    slower
}
