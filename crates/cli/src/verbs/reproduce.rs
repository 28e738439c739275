use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use sweetspot_sim::Simulator;
use sweetspot_study::{ns2, papers, router};

use super::Ending;
use super::scenario_file::Parallel;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sweetspot reproduce papers
  sweetspot reproduce ns2 --out ns2.md --workers 1")]
pub struct Arguments {
    /// Which document
    #[arg(value_enum)]
    what: Document,
    /// Where to write it [default: docs/results/NAME.md]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    parallel: Parallel,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Document {
    /// The same work done by ns-2 and by this simulator
    Ns2,
    /// The figures and tables of the SOBAS and Dynamic Right-Sizing papers
    Papers,
    /// The simulations of the router buffer paper
    Router,
}

impl Document {
    fn file(self) -> &'static str {
        match self {
            Document::Ns2 => "docs/results/ns2.md",
            Document::Papers => "docs/results/papers.md",
            Document::Router => "docs/results/router.md",
        }
    }
}

pub fn run(arguments: Arguments) -> Ending {
    let workers = arguments.parallel.workers();
    let text = match arguments.what {
        Document::Ns2 => ns2::document(&Simulator, workers)?,
        Document::Papers => papers::document(&Simulator, workers)?,
        Document::Router => {
            let progress = |row: &router::Setup, done: usize, all: usize| {
                if done == all {
                    say!("played {}", row.file);
                }
            };
            router::document(&Simulator, router::Scale::DOCUMENT, workers, &progress)?
        }
    };
    let path = arguments.out.unwrap_or_else(|| arguments.what.file().into());
    std::fs::write(&path, text).map_err(|error| {
        format!(
            "{}: {error}; run it at the root of the project, or name a file with --out",
            path.display()
        )
    })?;
    tell!("wrote {}", path.display());
    Ok(ExitCode::SUCCESS)
}
