use std::process::ExitCode;

use clap_complete::Shell;
use sweetspot_program::print::out_unfolded;

use crate::verbs::Ending;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  mkdir -p ~/.local/share/bash-completion/completions
  sweetspot generate completions bash > \\
      ~/.local/share/bash-completion/completions/sweetspot
  # in ~/.zshrc, before compinit: fpath+=(~/.zfunc)
  mkdir -p ~/.zfunc
  sweetspot generate completions zsh > \\
      ~/.zfunc/_sweetspot
  mkdir -p ~/.config/fish/completions
  sweetspot generate completions fish > \\
      ~/.config/fish/completions/sweetspot.fish")]
pub struct GenerateCompletionsArguments {
    /// The shell
    shell: Shell,
}

/// Prints the completions for a shell.
pub fn run(arguments: GenerateCompletionsArguments, program: clap::Command) -> Ending {
    let name = program.get_name().to_owned();
    // clap would also offer hidden verbs.
    let verbs = program.get_subcommands().filter(|verb| !verb.is_hide_set()).cloned();
    let mut shown = clap::Command::new(name.clone())
        .version(env!("CARGO_PKG_VERSION"))
        .args(program.get_arguments().cloned())
        .subcommands(verbs);
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut shown, name, &mut script);
    if arguments.shell == Shell::Bash {
        script.extend(include_bytes!("completions.bash"));
    }
    out_unfolded(String::from_utf8_lossy(&script).trim_end())?;
    Ok(ExitCode::SUCCESS)
}
