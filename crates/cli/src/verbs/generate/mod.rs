//! Files that a package installs with the program.

mod completions;
mod help_text;
mod man;
mod scenario_page;

use clap::Subcommand;

use super::Ending;

#[derive(Debug, Subcommand)]
pub enum Generated {
    /// Write the man pages
    Man(man::GenerateManArguments),
    /// Print completions for a shell
    Completions(completions::GenerateCompletionsArguments),
}

pub fn run(generated: Generated, program: clap::Command) -> Ending {
    match generated {
        Generated::Man(arguments) => man::run(arguments, program),
        Generated::Completions(arguments) => completions::run(arguments, program),
    }
}
