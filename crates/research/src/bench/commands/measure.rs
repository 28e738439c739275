use std::collections::BTreeMap;
use std::process::ExitCode;

use sweetspot_emulator::isolate;

use super::Ending;
use super::selection::Selection;
use crate::bench::facts::facts;
use crate::bench::measure::{PathResult, document, plans, run_plan};
use sweetspot_comparison::scratch;
use sweetspot_program::build::build;

#[derive(Debug, clap::Args)]
pub struct MeasureArguments {
    #[command(flatten)]
    selection: Selection,
    /// Number of drawn paths
    #[arg(long, default_value_t = 60)]
    paths: u64,
    /// The seed from which they are drawn
    #[arg(long, default_value_t = 606)]
    seed: u64,
}

const NAME: &str = "measure";

/// Measures the selected paths, then writes the document from all stored results.
pub fn run(arguments: MeasureArguments) -> Ending {
    let program = super::sweetspot()?;
    let build = build(&program)?;
    let selection = &arguments.selection;
    let store = selection.store(NAME, Some(&build))?;
    let plans = plans(arguments.seed, arguments.paths);
    selection.check(plans.iter().map(|plan| plan.name.clone()))?;
    let key = |name: &str| format!("{}-{name}", arguments.seed);
    let code = isolate(|| {
        let due = |name: &str| selection.is_due::<PathResult>(&store, &key(name));
        for plan in plans.iter().filter(|plan| due(&plan.name)) {
            err!("{} ...", plan.name);
            let scratch = scratch::make().map_err(|e| e.to_string());
            let finished = scratch.and_then(|s| run_plan(plan, &program, s.path()));
            // A failed measurement counts as a miss for this path and does not end the run.
            if let Err(why) = finished.and_then(|result| store.put(&key(&plan.name), &result)) {
                err!("sweetspot-research: {}: {why}", plan.name);
            }
        }
        0
    })?;
    if code != 0 {
        return Ok(ExitCode::from(code));
    }
    let kept = plans.iter().filter_map(|p| Some((p.name.clone(), store.get(&key(&p.name))?)));
    let results: BTreeMap<String, PathResult> = kept.collect();
    let command = format!("--seed {} --paths {}", arguments.seed, arguments.paths);
    let facts = facts(&[
        ("command", format!("`make bench-measure ARGS=\"{command}\"`")),
        ("program", format!("sweetspot {}, build {build}", env!("CARGO_PKG_VERSION"))),
        ("paths without a result", (plans.len() - results.len()).to_string()),
    ]);
    selection.write_document(NAME, |notes| document(&results, &facts, notes))?;
    Ok(ExitCode::SUCCESS)
}
