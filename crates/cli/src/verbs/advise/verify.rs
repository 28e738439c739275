//! The closed-loop simulation beside the formula.

use serde_json::{Value, json};
use sweetspot_advise::router::{Favour, Mix, RouterQuestion};
use sweetspot_sim::Simulator;
use sweetspot_study::router::{Fits, Objective, SimulatedLink, Verified, verify};
use sweetspot_study::{StudyError, Workers};
use sweetspot_theory::router::capacity_ratio::{CapacityRatio, Form};
use sweetspot_theory::router::optimum::Best;
use sweetspot_units::Bytes;

/// The paper's mean transfer and tail (section III-A).
const SIZE_MEAN: Bytes = Bytes::new(80_000);
const TAIL: f64 = 1.5;

/// Simulates the link of `question`, with progress on standard error.
pub fn simulate(question: &RouterQuestion, workers: Workers) -> Result<Verified, StudyError> {
    let size_mean = match &question.mix {
        Mix::Sizes(sizes) => {
            let sum: f64 = sizes.iter().map(|size| size.as_f64()).sum();
            Bytes::from_f64(sum / sizes.len() as f64)
        }
        Mix::Short | Mix::Bulk => SIZE_MEAN,
    };
    let link = SimulatedLink {
        rate: question.rate,
        rtt: question.rtt,
        input_rate: question.input_rate,
        inputs: question.inputs,
        packet: question.packet,
        size_mean,
        tail_index: question.parameters.tail_index.unwrap_or(TAIL),
    };
    let watch = |done: usize, all: usize| err!("simulated {done} of {all} runs");
    verify(&Simulator, &link, objective(question), workers, &watch)
}

/// Prints the result as text and a table.
pub fn print_text(question: &RouterQuestion, found: &Verified) {
    out!(
        "\nBy simulation (closed loop, {} users, {} inputs, RTTs from a half to 1.8 of --rtt,",
        found.users,
        found.inputs
    );
    let scaled = if found.rate < question.rate {
        format!(
            "a link of {} in place of {}, everything else in proportion",
            found.rate, question.rate
        )
    } else {
        format!("{}", found.rate)
    };
    out!("{scaled}; {} s per buffer and each of {} seeds):", found.seconds, found.seeds);
    match found.best {
        Some(best) => out!(
            "  best: {} packets, {:.2} of C x T ({} to {} are as good within the error)",
            best.best,
            best.best as f64 / found.bdp,
            best.tied.0,
            best.tied.1
        ),
        None => out!("  best: not known, fewer than 30 such flows finished with every buffer"),
    }
    match &found.fits {
        Ok(fits) => out!(
            "  best by formula, with a, b and f fitted to this simulation: {} (R2 of PL {:.3}, of EX {:.3})",
            formula(question, fits).unwrap_or("none".to_owned()),
            fits.comparison.power_law_r2,
            fits.comparison.exponential_r2
        ),
        Err(error) => out!("  no form could be fitted: {error}"),
    }
    out!(
        "{:>9} {:>9} {:>9} {:>14} {:>7}",
        "packets",
        "loss %",
        "delay ms",
        "median kbit/s",
        "flows"
    );
    for m in &found.measured {
        let flows = match objective(question) {
            Objective::Short => &m.short,
            Objective::Long => &m.long,
        };
        out!(
            "{:>9} {:>9.3} {:>9.2} {:>14.0} {:>7}",
            m.buffer,
            m.loss * 100.0,
            m.delay_s * 1e3,
            flows.median_bps / 1e3,
            flows.flows
        );
    }
}

/// The result as JSON.
pub fn as_json(question: &RouterQuestion, found: &Verified) -> Value {
    let measured = found.measured.iter().map(|m| {
        let flows = match objective(question) {
            Objective::Short => &m.short,
            Objective::Long => &m.long,
        };
        json!({
            "buffer_packets": m.buffer,
            "loss": m.loss,
            "delay_s": m.delay_s,
            "median_bps": flows.median_bps,
            "flows": flows.flows,
        })
    });
    json!({
        "rate_bps": found.rate.bits_per_second(),
        "scaled_by": found.rate.as_f64() / question.rate.as_f64(),
        "bdp_packets": found.bdp,
        "users": found.users,
        "inputs": found.inputs,
        "seconds": found.seconds,
        "seeds": found.seeds,
        "best_packets": found.best.map(|b| b.best),
        "best_over_bdp": found.best.map(|b| b.best as f64 / found.bdp),
        "tied_packets": found.best.map(|b| [b.tied.0, b.tied.1]),
        "formula_best": found.fits.as_ref().ok().and_then(|fits| formula(question, fits)),
        "points": measured.collect::<Vec<_>>(),
    })
}

fn formula(question: &RouterQuestion, fits: &Fits) -> Option<String> {
    let ratio = CapacityRatio::new(question.rate, question.input_rate).ok()?;
    let form = if ratio.gamma() > 1.0 { Form::Exponential } else { Form::PowerLaw };
    Some(match fits.best(form, objective(question)).ok()? {
        Best::Zero => "none".to_owned(),
        Best::At(buffer) => buffer.to_string(),
        Best::Unbounded => "the larger the better".to_owned(),
    })
}

fn objective(question: &RouterQuestion) -> Objective {
    match question.favour {
        Favour::Throughput => Objective::Long,
        Favour::Short | Favour::Latency => Objective::Short,
    }
}
