use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use sweetspot_emulator::isolate;

use super::Ending;
use super::selection::Selection;
use crate::bench::facts::facts;
use crate::bench::live::{RunPlan, TunerCommand, Via, document, plans, run_plan};
use sweetspot_comparison::scratch;
use sweetspot_program::build::build;

#[derive(Debug, clap::Args)]
pub struct LiveArguments {
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
pub fn run(arguments: LiveArguments) -> Ending {
    let program = super::sweetspot()?;
    let build = build(&program)?;
    let selection = &arguments.selection;
    let store = selection.store(NAME, Some(&build))?;
    let is_requested = |plan: &&RunPlan| plan.via.is_none_or(|via| arguments.via.contains(&via));
    if let Some(dir) = &arguments.events {
        fs::create_dir_all(dir)?;
    }
    let plans = plans();
    selection.check(plans.iter().map(|plan| plan.name.clone()))?;
    let run_plan = |plan: &RunPlan| {
        let events = arguments.events.as_ref();
        let events = events.map(|dir| dir.join(plan.name.replace('/', "-") + ".jsonl"));
        let tuner = TunerCommand { program: &program, events: events.as_deref() };
        let scratch = scratch::make().map_err(|e| e.to_string())?;
        run_plan(plan, &tuner, scratch.path())
    };
    let code = isolate(|| {
        let asked_for = plans.iter().filter(is_requested);
        selection.run_each(&store, asked_for, |plan| &plan.name, run_plan)
    })?;
    if code != 0 {
        return Ok(ExitCode::from(code));
    }
    let kept = plans.into_iter().filter_map(|p| store.get(&p.name).map(|o| (p.name, o)));
    let outcomes: BTreeMap<_, _> = kept.collect();
    let facts = facts(&[
        ("command", "`make bench-live`".to_owned()),
        ("program", format!("sweetspot {}, build {build}", env!("CARGO_PKG_VERSION"))),
    ]);
    selection.write_document(NAME, |notes| document(&outcomes, &facts, notes))?;
    Ok(ExitCode::SUCCESS)
}
