mod population;

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use serde::Serialize;
use sweetspot_research::validate::{BoundCheck, EngineComparison, STANDING, StandingScenario};
use sweetspot_scenario::{EngineError, NoRecorder, Outcome, Scenario};

use super::Ending;
use sweetspot_comparison::machine;
use sweetspot_program::engine::{EngineAnswer, EngineName};
use sweetspot_program::print::Shown;
use sweetspot_program::scenario_file::seed;
use sweetspot_research::markdown::MarkdownTable;
use sweetspot_research::page_abstract::Abstract;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sweetspot-research validate scenarios/standing/sweet-spot.toml
  sweetspot-research validate scenarios/elephants.toml --set warmup=10s --set duration=20s
  sweetspot-research validate scenarios/standing/sawtooth.toml --engine theory,sim
  sweetspot-research validate --standing --out docs/results/validate.md
  sweetspot-research validate --population --paths 60 --drawn-by 5 --journal v.journal")]
pub struct ValidateArguments {
    /// A TOML file; docs/scenario.md describes it
    #[arg(required_unless_present_any = ["standing", "population"], conflicts_with = "standing")]
    scenario: Option<PathBuf>,
    /// Run every scenario of scenarios/standing; an engine beyond a scenario's bounds is an error
    #[arg(long)]
    standing: bool,
    /// Engines, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', default_value = "theory,sim,lab")]
    engine: Vec<EngineName>,
    /// Use this seed instead of the scenario's
    #[arg(long, conflicts_with = "standing", value_parser = seed())]
    seed: Option<u64>,
    /// Override a key of the scenario, such as path.buffer=625pkt or transfer.0.sizing=sobas
    #[arg(long = "set", value_name = "KEY=VALUE", conflicts_with = "standing")]
    overrides: Vec<String>,
    #[command(flatten)]
    population: population::PopulationArguments,
    /// Write a document of the standing set or the population, with machine, kernel and date
    #[arg(long, value_name = "FILE", conflicts_with = "scenario")]
    out: Option<PathBuf>,
    /// Print everything as one JSON object, or one per line for the standing set
    #[arg(long)]
    json: bool,
}

/// The engines' outcomes, and their comparison.
#[derive(Serialize)]
struct Validation {
    judgement: String,
    findings: Vec<FindingLine>,
    refused: Vec<String>,
    answers: Vec<EngineAnswer>,
    /// The comparison for a terminal.
    #[serde(skip)]
    text: String,
    /// The comparison for a document.
    #[serde(skip)]
    markdown: String,
}

#[derive(Serialize)]
struct FindingLine {
    assumption: &'static str,
    words: String,
}

pub fn run(arguments: ValidateArguments) -> Ending {
    if arguments.population.is_requested() {
        return population::run(&arguments.population, arguments.out.as_ref(), arguments.json);
    }
    if arguments.standing {
        return standing(&arguments);
    }
    let path = arguments.scenario.as_deref().ok_or("name a scenario, or give --standing")?;
    let scenario =
        sweetspot_program::scenario_file::read(path, &arguments.overrides, arguments.seed)?;
    let validation = validate(&scenario, &arguments.engine)?;
    if arguments.json {
        out!("{}", serde_json::to_string_pretty(&validation)?);
    } else {
        out!("{}\n\n{}", scenario.title, validation.text.trim_end());
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs `scenario` in each engine. An engine that refuses is omitted with its reason; if all
/// refuse, that is the error.
fn validate(scenario: &Scenario, engines: &[EngineName]) -> Result<Validation, EngineError> {
    let (mut answers, mut refused) = (Vec::new(), Vec::new());
    for engine in engines {
        match engine.run(scenario, &mut NoRecorder) {
            Ok(finished) => answers.push(finished),
            Err(error @ EngineError::Failed { .. }) => return Err(error),
            Err(error) if engines.len() == 1 => return Err(error),
            Err(error) => refused.push(error.to_string()),
        }
    }
    let outcomes: Vec<Outcome> = answers.iter().map(|finished| finished.outcome.clone()).collect();
    let comparison = EngineComparison::of(scenario, &outcomes);
    let mut after = String::new();
    for why in &refused {
        // Writing to a string cannot fail.
        let _ = writeln!(after, "\nLeft out: {why}");
    }
    for certificate in answers.iter().filter_map(|finished| finished.certificate.as_ref()) {
        let _ = match certificate.trust {
            true => writeln!(after, "\nThe emulation can be trusted."),
            false => {
                writeln!(
                    after,
                    "\nThe emulation cannot be trusted: {}",
                    certificate.reasons.join("; ")
                )
            }
        };
    }
    let (text, markdown) = (comparison.text() + &after, comparison.markdown() + &after);
    Ok(Validation {
        judgement: comparison.summary(),
        findings: comparison
            .findings
            .into_iter()
            .map(|finding| FindingLine { assumption: finding.assumption, words: finding.words })
            .collect(),
        refused,
        answers,
        text,
        markdown,
    })
}

/// Runs the standing set: each scenario, its bounds, and the document.
fn standing(arguments: &ValidateArguments) -> Ending {
    let (mut rows, mut details) = (Vec::new(), String::new());
    for one in STANDING {
        note!("{} ...", one.name);
        let scenario = one.scenario()?;
        let validation = validate(&scenario, &arguments.engine)?;
        rows.extend(check_bounds(&one, &validation));
        let Validation { markdown, .. } = &validation;
        let _ = write!(details, "\n## {}\n\n{}\n\n{markdown}", one.name, scenario.title);
        if arguments.json {
            out!("{}", serde_json::to_string(&validation)?);
        }
    }
    let document = document(&arguments.engine, &rows, &details);
    if let Some(out) = &arguments.out {
        std::fs::write(out, &document)
            .map_err(|error| format!("--out {}: {error}; name another file", out.shown()))?;
    }
    if !arguments.json {
        out!("Result: {}\n\n{}", verdict(&rows), bounds(&rows).aligned().trim_end());
    }
    let broken = rows.iter().filter(|row| row.judgement == BROKEN).count();
    match broken {
        0 => Ok(ExitCode::SUCCESS),
        n => Err(format!("{n} bounds of the standing set are broken; see the lines above").into()),
    }
}

/// A bound of the standing set and whether it holds.
struct BoundRow {
    scenario: &'static str,
    words: String,
    off: String,
    bound: String,
    judgement: &'static str,
}

const KEPT: &str = "kept";
const BROKEN: &str = "broken";

/// One row per bound. Bounds broken by an untrusted emulation are not judged.
fn check_bounds(one: &StandingScenario, validation: &Validation) -> Vec<BoundRow> {
    let trusted = validation.answers.iter().all(|a| a.certificate.as_ref().is_none_or(|c| c.trust));
    let outcomes: Vec<Outcome> =
        validation.answers.iter().map(|finished| finished.outcome.clone()).collect();
    let row = |check: BoundCheck| BoundRow {
        scenario: one.name,
        off: signed_percent(check.off),
        bound: format!("{:.0} %", check.bound * 100.0),
        judgement: match (check.kept(), trusted) {
            (true, _) => KEPT,
            (false, true) => BROKEN,
            (false, false) => "not judged: the emulation cannot be trusted",
        },
        words: check.words,
    };
    one.bound_checks(&outcomes).into_iter().map(row).collect()
}

/// A signed percentage; without a sign if it rounds to zero.
fn signed_percent(share: f64) -> String {
    let text = format!("{:+.1} %", share * 100.0);
    if text[1..] == *"0.0 %" { text[1..].to_owned() } else { text }
}

fn verdict(rows: &[BoundRow]) -> String {
    let count = |judgement| rows.iter().filter(|row| row.judgement == judgement).count();
    let (kept, broken) = (count(KEPT), count(BROKEN));
    let open = rows.len() - kept - broken;
    let open = if open > 0 { format!(", {open} not judged") } else { String::new() };
    format!(
        "{kept} of {} bounds on the difference between two engines are kept, {broken} broken{open}.",
        rows.len()
    )
}

fn bounds(rows: &[BoundRow]) -> MarkdownTable {
    let mut table = MarkdownTable::new(&["scenario", "goodput, Mbit/s", "off", "bound", ""]);
    for BoundRow { scenario, words, off, bound, judgement } in rows {
        table.row(&[*scenario, words, off, bound, judgement]);
    }
    table
}

fn document(engines: &[EngineName], rows: &[BoundRow], details: &str) -> String {
    let names: Vec<String> = engines.iter().map(EngineName::to_string).collect();
    let result = verdict(rows);
    let page = Abstract {
        question: "do closed forms, simulator and kernel agree on the same scenario?",
        method: "each scenario of the standing set runs on every engine; each pair has a bound on the goodput's difference.",
        result: &result,
        limitation: "a few scenarios chosen by hand; [random paths](validate-population.md) have a separate page.",
        command: "`sweetspot-research validate --standing --out docs/results/validate.md`",
    };
    let date: String = machine::date().chars().take_while(|c| *c != 'T').collect();
    format!(
        "# The same scenario by every engine\n\n{page}\
         The standing set (scenarios/standing) by the closed forms, the simulator and this machine's kernel.\n\
         Written by `sweetspot-research validate --standing --engine {} --out docs/results/validate.md`.\n\n\
         | | |\n|---|---|\n| program | sweetspot {} |\n| measured on | {}, {}, {date} |\n\n\
         ## Bounds\n\nGoodput of the first transfer.\n\n{}{details}",
        names.join(","),
        env!("CARGO_PKG_VERSION"),
        machine::machine(),
        machine::kernel(),
        bounds(rows),
    )
}
