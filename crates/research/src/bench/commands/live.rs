use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use sweetspot_emulator::isolate;
use sweetspot_research::lab::notes;

use super::Ending;
use super::selection::Selection;
use crate::bench::live::{RunPlan, TunerCommand, Via, document, plans, play};
use sweetspot_comparison::{machine, scratch};
use sweetspot_program::build::build;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    selection: Selection,
    /// Measure these mechanisms, each beside an untuned run
    #[arg(long, value_name = "WAYS", value_delimiter = ',', default_value = "pidfd,bpf")]
    via: Vec<Via>,
    /// Write the tuner's actions in each run to a file in DIR, one JSON object per line
    #[arg(long, value_name = "DIR")]
    events: Option<PathBuf>,
}

/// The benchmark's name.
const NAME: &str = "live";

/// Measures the selected runs, then writes the document from all stored results.
pub fn run(arguments: Arguments) -> Ending {
    let program = super::sweetspot()?;
    let build = build(&program)?;
    let selection = &arguments.selection;
    let store = selection.store(NAME, Some(&build))?;
    let is_due = |plan: &RunPlan| {
        plan.via.is_none_or(|via| arguments.via.contains(&via))
            && selection.is_due::<serde_json::Value>(&store, &plan.name)
    };
    if let Some(dir) = &arguments.events {
        fs::create_dir_all(dir)?;
    }
    let code = isolate(|| {
        for plan in plans().iter().filter(|plan| is_due(plan)) {
            err!("{} ...", plan.name);
            let events = arguments.events.as_ref();
            let events = events.map(|dir| dir.join(plan.name.replace('/', "-") + ".jsonl"));
            let tuner = TunerCommand { program: &program, events: events.as_deref() };
            let played = scratch::make().and_then(|s| play(plan, &tuner, s.path()));
            if let Err(why) = played.and_then(|outcome| store.put(&plan.name, &outcome)) {
                err!("sweetspot-research: {}: {why}", plan.name);
                return 1;
            }
        }
        0
    })?;
    if code != 0 {
        return Ok(ExitCode::from(code));
    }
    let kept = plans().into_iter().filter_map(|p| store.get(&p.name).map(|o| (p.name, o)));
    let outcomes: BTreeMap<_, _> = kept.collect();
    let facts = format!(
        "| | |\n|---|---|\n| command | `make bench-live` |\n| program | sweetspot {}, build {build} |\n\
         | measured on | {}, {}, {} |",
        env!("CARGO_PKG_VERSION"),
        machine::machine(),
        machine::kernel(),
        &machine::date()[..10],
    );
    let text = |earlier: &str| document(&outcomes, &facts, notes(earlier));
    selection.write_document(NAME, text)?;
    Ok(ExitCode::SUCCESS)
}
