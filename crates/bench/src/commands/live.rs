use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use sweetspot_emulator::isolate;
use sweetspot_report::notes;

use super::Ending;
use crate::live::{document, plans, play};
use crate::store::Store;
use sweetspot_comparison::build::build;
use sweetspot_comparison::{machine, scratch};

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Measure only runs whose name contains one of these, e.g. "deep", "five/curl/tuned"; the
    /// rest of the document comes from earlier results
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    only: Vec<String>,
    /// Measure only what has no result yet
    #[arg(long)]
    resume: bool,
    /// The document
    #[arg(long, value_name = "FILE", default_value = "docs/results/live.md")]
    out: PathBuf,
    /// Where results are kept until all are there
    #[arg(long, value_name = "DIR", default_value = "target/bench-live")]
    results: PathBuf,
    /// Keep what the tuner did in each run here, a line of JSON per action
    #[arg(long, value_name = "DIR")]
    events: Option<PathBuf>,
}

/// Measures what is asked for, run by run, then writes the document from all there is.
pub fn run(arguments: Arguments) -> Ending {
    let program = super::sweetspot()?;
    let build = build(&program)?;
    // Results of another build are not mixed in: they would be of another program.
    let store = Store::open(&arguments.results.join(&build))?;
    let is_due = |name: &str| {
        let wanted =
            arguments.only.is_empty() || arguments.only.iter().any(|part| name.contains(part));
        wanted && !(arguments.resume && store.get::<serde_json::Value>(name).is_some())
    };
    if let Some(dir) = &arguments.events {
        fs::create_dir_all(dir)?;
    }
    let code = isolate(|| {
        for plan in plans().iter().filter(|plan| is_due(&plan.name)) {
            eprintln!("{} ...", plan.name);
            let events = arguments.events.as_ref();
            let events = events.map(|dir| dir.join(plan.name.replace('/', "-") + ".jsonl"));
            let played =
                scratch::make().and_then(|s| play(plan, &program, s.path(), events.as_deref()));
            if let Err(why) = played.and_then(|outcome| store.put(&plan.name, &outcome)) {
                eprintln!("sweetspot-bench: {}: {why}", plan.name);
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
    let out = &arguments.out;
    let earlier = fs::read_to_string(out).unwrap_or_default();
    if let Some(dir) = out.parent() {
        fs::create_dir_all(dir)?;
    }
    fs::write(out, document(&outcomes, &facts, notes(&earlier)))
        .map_err(|e| format!("cannot write {}: {e}", out.display()))?;
    println!("{}", out.display());
    Ok(ExitCode::SUCCESS)
}
