use std::fs;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::process::ExitCode;

use sweetspot_advise::AdviceError;
use sweetspot_advise::window::{
    CrossKind, CrossShare, LossResponse, WindowAdvice, WindowQuestion, advise,
};
use sweetspot_comparison::machine;
use sweetspot_experiment::Workers;
use sweetspot_experiment::window::{seeds, try_windows};
use sweetspot_path::Random;
use sweetspot_sim::Simulator;
use sweetspot_statistics::Sorted;
use sweetspot_units::{Bytes, Duration, Probability, Rate};

use super::Ending;
use sweetspot_research::page_abstract::Abstract;

const ABSTRACT: Abstract<'_> = Abstract {
    question: "how close to the best window is the one that `advise window` recommends?",
    method: "random paths with cross traffic; twelve windows run on each in the simulator, with separate seeds to \
        choose and to measure.",
    result: "the last line compares the median and the 5 % quantile with their targets.",
    limitation: "simulated TCP; the best of twelve windows is a maximum of noisy numbers and so slightly too high.",
    command: "`make bench-advice`",
};

#[derive(Debug, clap::Args)]
pub struct AdviceArguments {
    /// Number of random situations
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    situations: u64,
    /// Seed of the situations
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// The document
    #[arg(long, value_name = "FILE", default_value = "docs/results/advice.md")]
    out: PathBuf,
}

/// Result of one situation: rates relative to the rate of the best window tried.
struct Ratios {
    kind: CrossKind,
    /// With the window that the simulator recommends.
    simulated: f64,
    /// With the tried window closest to the closed forms' recommendation.
    closed_form: f64,
}

/// Draws situations, computes the advice for each, and compares its rate with the best window's
/// rate.
pub fn run(arguments: AdviceArguments) -> Ending {
    let workers = Workers::per_core();
    let mut random = Random::new(arguments.seed);
    let mut ratios = Vec::new();
    while (ratios.len() as u64) < arguments.situations {
        let advice = match advise(&drawn(&mut random)?) {
            Err(AdviceError::NoWindowHelps { .. }) => continue,
            advice => advice?,
        };
        ratios.push(ratios_of(&advice, workers)?);
        if ratios.len() % 20 == 0 {
            err!("{} of {} situations", ratios.len(), arguments.situations);
        }
    }
    let out = &arguments.out;
    fs::write(out, document(&arguments, &ratios))
        .map_err(|e| format!("cannot write {}: {e}", out.display()))?;
    out!("wrote {}", out.display());
    Ok(ExitCode::SUCCESS)
}

/// 10 to 60 Mbit/s, 20 to 200 ms, a buffer of 0.1 to 2 BDP, each log-uniform; cross traffic at 10
/// to 70 % of the rate, with each kind equally likely.
fn drawn(random: &mut Random) -> Result<WindowQuestion, Box<dyn std::error::Error>> {
    let mut between = |low: f64, high: f64| low * (high / low).powf(random.unit());
    let rate = Rate::from_f64(between(10e6, 60e6));
    let rtt = Duration::from_secs_f64(between(0.02, 0.2));
    let buffer = (rate * rtt).scaled(between(0.1, 2.0)).max(Bytes::new(7500));
    let share = Probability::new(0.1 + 0.6 * random.unit()).ok_or("a share")?;
    let kind = match (random.unit() * 3.0) as u64 {
        0 => CrossKind::Udp,
        1 => CrossKind::Elephants,
        _ => CrossKind::Mice,
    };
    Ok(WindowQuestion {
        rate,
        rtt,
        buffer: Some(buffer),
        cross: Some(CrossShare { kind, share }),
        loss: None,
        congestion: LossResponse::Cubic,
        mtu: Bytes::new(1500),
        kernel: "6.18".parse()?,
    })
}

/// Seeds of the runs that measure windows; the advice used others.
const MEASURING_SEEDS: RangeInclusive<u64> = 9..=16;

fn ratios_of(
    advice: &WindowAdvice,
    workers: Workers,
) -> Result<Ratios, Box<dyn std::error::Error>> {
    let question = &advice.question;
    let windows = advice.windows_to_try().ok_or("a path with cross traffic and a buffer")?;
    let cross = question.cross.ok_or("cross traffic")?;
    let closed_form = advice.recommended.window.unwrap_or(Bytes::ZERO);
    let tried = |seeds| try_windows(&Simulator, question, &windows, seeds, workers);
    let simulated =
        tried(seeds(question, windows.len()))?.hold().map_or(Bytes::ZERO, |hold| hold.window);
    let measured = tried(MEASURING_SEEDS)?;
    let best = measured.windows.iter().map(|w| w.rate.as_f64()).fold(1.0, f64::max);
    let share = |window| measured.nearest(window).map_or(0.0, |w| w.rate.as_f64() / best);
    Ok(Ratios { kind: cross.kind, simulated: share(simulated), closed_form: share(closed_form) })
}

fn document(arguments: &AdviceArguments, ratios: &[Ratios]) -> String {
    let mut text = format!(
        "# How good the advised window is\n\n{ABSTRACT}\
         {} situations of seed {}: 10 to 60 Mbit/s, 20 to 200 ms, 0.1 to 2 BDP of buffer (log-uniform), a tenth to seven\n\
         tenths of the rate used by UDP with Pareto gaps, elephants or mice; situations in which no window helps are drawn\n\
         again. For each, `advise window` simulates twelve windows under eight seeds, and eight others measure\n\
         them. The table shows the rate with the advised window divided by the rate with the best of the twelve,\n\
         which is a maximum of noisy numbers and so slightly too high. It shows the same for the window from\n\
         closed forms alone (`--verify none`), by the nearest simulated window. Written by\n\
         `make bench-advice` on {}, {}, {}.\n\n\
         | cross traffic | situations | advised: 5 % | 25 % | median | closed forms: 5 % | 25 % | median |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|\n",
        arguments.situations,
        arguments.seed,
        machine::machine(),
        machine::kernel(),
        &machine::date()[..10],
    );
    let kinds = [
        ("all", None),
        ("UDP", Some(CrossKind::Udp)),
        ("elephants", Some(CrossKind::Elephants)),
        ("mice", Some(CrossKind::Mice)),
    ];
    for (name, kind) in kinds {
        let of: Vec<&Ratios> = ratios.iter().filter(|r| kind.is_none_or(|k| k == r.kind)).collect();
        let advised = quantiles(of.iter().map(|r| r.simulated));
        let closed = quantiles(of.iter().map(|r| r.closed_form));
        text.push_str(&format!("| {name} | {} | {advised} | {closed} |\n", of.len()));
    }
    let simulated: Sorted = ratios.iter().map(|r| r.simulated).collect();
    let all = |share: f64| simulated.quantile(share).unwrap_or(0.0);
    let met = |is: bool| if is { "met" } else { "**missed**" };
    text.push_str(&format!(
        "\nAsked for: a median of 95 % ({}), and 85 % at the 5 % quantile ({}).\n",
        met(all(0.5) >= 0.95),
        met(all(0.05) >= 0.85)
    ));
    text
}

fn quantiles(values: impl Iterator<Item = f64>) -> String {
    let values: Sorted = values.collect();
    let at = |share| format!("{:.1} %", values.quantile(share).unwrap_or(0.0) * 100.0);
    [at(0.05), at(0.25), at(0.5)].join(" | ")
}
