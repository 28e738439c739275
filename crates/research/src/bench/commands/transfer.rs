use std::process::ExitCode;

use sweetspot_emulator::isolate;

use super::Ending;
use super::selection::Selection;
use crate::bench::transfer::{
    DrawnResult, FaultResult, LocalCase, LocalResult, Peers, Results, TransferResult, drawn_cases,
    local_cases, markdown, path_cases, run_faults, run_path,
};

#[derive(Debug, clap::Args)]
pub struct TransferArguments {
    #[command(flatten)]
    selection: Selection,
    /// Rounds in which each program runs on this host, in turns
    #[arg(long, default_value_t = 9)]
    runs: usize,
    /// Drawn paths
    #[arg(long, default_value_t = 30)]
    paths: u64,
    /// The seed from which they are drawn
    #[arg(long, default_value_t = 4307)]
    paths_seed: u64,
    /// Number of interrupted transfers, which then resume
    #[arg(long, default_value_t = 1000)]
    trials: u64,
    /// The seed from which the interruptions are drawn
    #[arg(long, default_value_t = 606)]
    seed: u64,
    /// Directory for the files that are moved, best in memory
    #[arg(long, value_name = "DIR", default_value = "/dev/shm")]
    scratch: std::path::PathBuf,
}

const NAME: &str = "transfer";
const FAULTS: &str = "faults";

/// Runs the selected cases, then writes the document from all stored results.
pub fn run(arguments: TransferArguments) -> Ending {
    let selection = &arguments.selection;
    let drawn = || drawn_cases(arguments.paths, arguments.paths_seed);
    let local = local_cases().into_iter().map(|case| case.name);
    let paths = path_cases().into_iter().map(|case| case.name.to_owned());
    let names = local.chain(paths).chain(drawn().into_iter().map(|case| case.name));
    selection.check(names.chain([FAULTS.to_owned()]))?;
    let (store, program) = (selection.store(NAME, None)?, super::sweetspot()?);
    super::in_scratch(&arguments.scratch, |scratch| {
        let peers = Peers::new(scratch)?;
        let is_due = |case: &LocalCase| {
            let is_there = case.program.is_there();
            if !is_there {
                err!("{}: left out: it is not installed", case.name);
            }
            is_there && selection.is_due::<LocalResult>(&store, &case.name)
        };
        let due: Vec<LocalCase> = local_cases().into_iter().filter(is_due).collect();
        for cases in due.chunk_by(|a, b| (a.device, a.content) == (b.device, b.content)) {
            cases.iter().for_each(|case| err!("{} ...", case.name));
            let results = peers.measure(cases, arguments.runs, &program)?;
            for (case, result) in cases.iter().zip(&results) {
                store.put(&case.name, result)?;
            }
        }
        for case in path_cases() {
            if selection.is_due::<TransferResult>(&store, case.name) {
                err!("{} ...", case.name);
                store.put(case.name, &run_path(&case, scratch, &program)?)?;
            }
        }
        for case in drawn() {
            if selection.is_due::<DrawnResult>(&store, &case.name) {
                err!("{} ...", case.name);
                store.put(&case.name, &peers.run_drawn(&case, &program)?)?;
            }
        }
        if selection.is_due::<FaultResult>(&store, FAULTS) {
            err!("{FAULTS} ...");
            // In separate namespaces, where the path can be cut and disks mounted.
            isolate(|| {
                let finished = run_faults(arguments.trials, arguments.seed, &program, scratch);
                match finished.and_then(|result| store.put(FAULTS, &result)) {
                    Ok(()) => 0,
                    Err(why) => {
                        err!("sweetspot-research: {why}");
                        1
                    }
                }
            })
            .map_err(|error| error.to_string())?;
        }
        Ok(())
    })?;
    selection.write_document(NAME, |notes| {
        let locals: Vec<LocalResult> =
            local_cases().iter().filter_map(|case| store.get(&case.name)).collect();
        let paths: Vec<TransferResult> =
            path_cases().iter().filter_map(|case| store.get(case.name)).collect();
        let drawn = drawn_cases(arguments.paths, arguments.paths_seed);
        let drawn: Vec<DrawnResult> =
            drawn.iter().filter_map(|case| store.get(&case.name)).collect();
        let faults = store.get(FAULTS);
        let results = Results { locals: &locals, paths: &paths, drawn: &drawn, faults };
        markdown(&results, arguments.paths_seed, "make bench-transfer", notes)
    })?;
    Ok(ExitCode::SUCCESS)
}
