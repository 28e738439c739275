use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use sweetspot_experiment::router::Runner;
use sweetspot_experiment::{NoStore, Workers};
use sweetspot_path::Random;
use sweetspot_research::router::{COLUMNS, Regression, Situation, drawn};
use sweetspot_sim::Simulator;

use super::Ending;

#[derive(Debug, clap::Args)]
pub struct RouterArguments {
    /// How many links are drawn
    #[arg(long, value_name = "N", default_value_t = 240)]
    links: usize,
    /// Their seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Runs nothing: fits to the table as it is
    #[arg(long)]
    fit_only: bool,
    /// The table of the measurements
    #[arg(long, value_name = "FILE", default_value = "crates/research/data/router_situations.csv")]
    table: PathBuf,
    /// The coefficients that are fitted to it
    #[arg(long, value_name = "FILE", default_value = "crates/theory/src/router/coefficients.rs")]
    coefficients: PathBuf,
}

/// Runs random router links and fits the regression of a, b and f to them.
pub fn run(arguments: RouterArguments) -> Ending {
    let table = match arguments.fit_only {
        true => fs::read_to_string(&arguments.table).map_err(|e| blame(&arguments.table, &e))?,
        false => finished(&arguments)?,
    };
    // Checked before the table is replaced: too few links cannot be fitted.
    let regression = Regression::of(&table)?;
    if !arguments.fit_only {
        write(&arguments.table, &table)?;
    }
    write(&arguments.coefficients, &source(&regression))?;
    Ok(ExitCode::SUCCESS)
}

fn finished(arguments: &RouterArguments) -> Result<String, Box<dyn std::error::Error>> {
    let workers = Workers::per_core();
    let runner = Runner { engine: &Simulator, store: &NoStore, workers, watch: &|_, _| {} };
    let mut random = Random::new(arguments.seed);
    let mut table = COLUMNS.to_owned();
    for number in 1..=arguments.links {
        table += &Situation::run(&runner, drawn(&mut random)?)?.csv(number);
        if number % 20 == 0 {
            err!("{number} of {} links", arguments.links);
        }
    }
    Ok(table)
}

/// The coefficients as Rust source.
fn source(regression: &Regression) -> String {
    let mut text = String::from(
        "//! Written by `sweetspot-research bench router`, which runs the links and fits this to them.\n\n\
         use super::{FEATURES, PARAMETERS};\n\n\
         /// A line per parameter, a column per number of [`super::traffic::Traffic::features`].\n\
         #[rustfmt::skip]\n\
         pub(super) const COEFFICIENTS: [[f64; FEATURES]; PARAMETERS] = [\n",
    );
    for row in regression.coefficients() {
        let cells: Vec<String> = row.iter().map(|c| format!("{c:.6}")).collect();
        text += &format!("    [{}],\n", cells.join(", "));
    }
    text + "];\n"
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| blame(path, &error))?;
    out!("wrote {}", path.display());
    Ok(())
}

fn blame(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}; run it from the project's directory", path.display())
}
