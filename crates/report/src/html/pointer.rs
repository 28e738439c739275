//! The data from which the page's script shows the values at the pointer.

use serde_json::{Value, json};

use super::received::longest;
use crate::outcome::{DemoOutcome, VariantOutcome};

/// Number of steps of the time axis; each shows the last sample before it.
const TIME_STEPS: usize = 400;

/// For each variant and quantity, one value per step, rounded for display; `null` without a
/// value. Safe inside a script element, because it has only numbers and nulls.
pub fn samples(outcome: &DemoOutcome) -> String {
    let end = longest(outcome);
    let runs: Vec<Value> = outcome.variants.iter().map(|c| run(c, end)).collect();
    json!({ "steps": TIME_STEPS, "runs": runs }).to_string()
}

fn run(c: &VariantOutcome, end: f64) -> Value {
    let s = &c.series;
    let step_times = |i: usize| end * i as f64 / (TIME_STEPS - 1) as f64;
    let column = |times: &[f64], value: &dyn Fn(usize) -> Option<f64>| -> Vec<Value> {
        let last = times.last().copied().unwrap_or(0.0);
        (0..TIME_STEPS)
            .map(|step| {
                let t = step_times(step);
                let seen = times.partition_point(|&at| at <= t);
                let shown = if t > last { None } else { seen.checked_sub(1).and_then(value) };
                shown.map_or(Value::Null, |v| json!((v * 100.0).round() / 100.0))
            })
            .collect()
    };
    let seconds = |times: &[sweetspot_units::Duration]| -> Vec<f64> {
        times.iter().map(|t| t.as_secs_f64()).collect()
    };
    let (times, queue_times) = (seconds(&s.t), seconds(&s.queue.t));
    json!({
        "goodput": column(&times, &|i| s.goodput.get(i).map(|g| g.as_f64() / 1e6)),
        "window": column(&times, &|i| s.window.get(i).copied().flatten().map(|w| w.as_f64() / 1e3)),
        "rtt": column(&times, &|i| s.rtt.get(i).copied().flatten().map(|r| r.as_secs_f64() * 1e3)),
        "queue": column(&queue_times, &|i| s.queue.bytes.get(i).map(|b| b.as_f64() / 1e3)),
    })
}
