use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use sweetspot_emulator::isolate;
use sweetspot_research::lab::notes;

use super::Ending;
use super::selection::Selection;
use crate::bench::library::{Built, LIBRARY, LibraryPlan, add_bucket, document, plans};
use crate::bench::live::{RunOutcome, play_command};
use sweetspot_comparison::{machine, scratch};
use sweetspot_program::build::build;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    selection: Selection,
}

/// The benchmark's name.
const NAME: &str = "library";

/// Measures the selected runs, then writes the document from all stored results.
pub fn run(arguments: Arguments) -> Ending {
    let compiled = scratch::make()?;
    let built = Built::new(compiled.path())?;
    let build = build(Path::new(LIBRARY))?;
    let selection = &arguments.selection;
    let store = selection.store(NAME, Some(&build))?;
    let is_due = |plan: &LibraryPlan| selection.is_due::<serde_json::Value>(&store, &plan.run.name);
    let code = isolate(|| {
        for plan in plans().iter().filter(|plan| is_due(plan)) {
            err!("{} ...", plan.run.name);
            let played = play(plan, &built);
            if let Err(why) = played.and_then(|outcome| store.put(&plan.run.name, &outcome)) {
                err!("sweetspot-research: {}: {why}", plan.run.name);
                return 1;
            }
        }
        0
    })?;
    if code != 0 {
        return Ok(ExitCode::from(code));
    }
    let kept = plans().into_iter().filter_map(|p| store.get(&p.run.name).map(|o| (p.run.name, o)));
    let outcomes: BTreeMap<_, _> = kept.collect();
    let facts = format!(
        "| | |\n|---|---|\n| command | `make bench-library` |\n| library | libsweetspot {}, build {build} |\n\
         | measured on | {}, {}, {} |",
        env!("CARGO_PKG_VERSION"),
        machine::machine(),
        machine::kernel(),
        &machine::date()[..10],
    );
    selection.write_document(NAME, |earlier| document(&outcomes, &facts, notes(earlier)))?;
    Ok(ExitCode::SUCCESS)
}

fn play(plan: &LibraryPlan, built: &Built) -> Result<RunOutcome, String> {
    let scratch = scratch::make()?;
    add_bucket(scratch.path())?;
    play_command(&plan.run, scratch.path(), &|emulation| {
        built.command(plan.example, plan.sizing, emulation)
    })
}
