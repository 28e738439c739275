use std::process::ExitCode;

use super::Ending;
use super::selection::Selection;
use crate::bench::stages::{Round, markdown, round};
use crate::bench::transfer::Peers;

#[derive(Debug, clap::Args)]
pub struct StagesArguments {
    #[command(flatten)]
    selection: Selection,
    /// Rounds of all stages and two copies
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// Directory for the files, best in memory
    #[arg(long, value_name = "DIR", default_value = "/dev/shm")]
    scratch: std::path::PathBuf,
}

const NAME: &str = "stages";

/// Measures the selected rounds, then writes the document from all stored results.
pub fn run(arguments: StagesArguments) -> Ending {
    let selection = &arguments.selection;
    let (store, program) = (selection.store(NAME, None)?, super::sweetspot()?);
    let names: Vec<String> =
        (1..=arguments.rounds).map(|number| format!("round-{number}")).collect();
    selection.check(names.iter().cloned())?;
    let code = super::in_scratch(&arguments.scratch, |scratch| {
        let peers = Peers::new(scratch)?;
        let run = |_: &String| round(&peers, scratch, &program);
        Ok(selection.run_each(&store, names.iter(), |name| name, run))
    })?;
    if code == 0 {
        let rounds: Vec<Round> = names.iter().filter_map(|name| store.get(name)).collect();
        selection.write_document(NAME, |notes| markdown(&rounds, notes))?;
    }
    Ok(ExitCode::from(code))
}
