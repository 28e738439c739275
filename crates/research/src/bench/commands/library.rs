use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use sweetspot_emulator::isolate;

use super::Ending;
use super::selection::Selection;
use crate::bench::facts::facts;
use crate::bench::library::{Built, LIBRARY, LibraryPlan, add_bucket, document, plans};
use crate::bench::live::{RunOutcome, run_command};
use sweetspot_comparison::scratch;
use sweetspot_program::build::build;

#[derive(Debug, clap::Args)]
pub struct LibraryArguments {
    #[command(flatten)]
    selection: Selection,
}

/// The benchmark's name.
const NAME: &str = "library";

/// Measures the selected runs, then writes the document from all stored results.
pub fn run(arguments: LibraryArguments) -> Ending {
    let compiled = scratch::make()?;
    let built = Built::new(compiled.path())?;
    let build = build(Path::new(LIBRARY))?;
    let selection = &arguments.selection;
    let store = selection.store(NAME, Some(&build))?;
    let plans = plans();
    selection.check(plans.iter().map(|plan| plan.run.name.clone()))?;
    let code = isolate(|| {
        selection.run_each(
            &store,
            plans.iter(),
            |plan| &plan.run.name,
            |plan| run_plan(plan, &built),
        )
    })?;
    if code != 0 {
        return Ok(ExitCode::from(code));
    }
    let kept = plans.into_iter().filter_map(|p| store.get(&p.run.name).map(|o| (p.run.name, o)));
    let outcomes: BTreeMap<_, _> = kept.collect();
    let facts = facts(&[
        ("command", "`make bench-library`".to_owned()),
        ("library", format!("libsweetspot {}, build {build}", env!("CARGO_PKG_VERSION"))),
    ]);
    selection.write_document(NAME, |notes| document(&outcomes, &facts, notes))?;
    Ok(ExitCode::SUCCESS)
}

fn run_plan(plan: &LibraryPlan, built: &Built) -> Result<RunOutcome, String> {
    let scratch = scratch::make().map_err(|e| e.to_string())?;
    add_bucket(scratch.path())?;
    run_command(&plan.run, scratch.path(), &|emulation| {
        built.command(plan.example, plan.sizing, emulation)
    })
}
