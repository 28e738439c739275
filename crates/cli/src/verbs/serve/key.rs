use std::path::PathBuf;
use std::process::ExitCode;

use crate::own_files::own_identity;
use crate::verbs::Ending;

/// `sweetspot serve key` as typed.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sweetspot serve key
      prints KEY, which you give to the operator of a service

The operator adds a line with that KEY and your name to the clients file of
`sweetspot serve --clients`:
  KEY ann dir=/srv/in/ann rights=read,write
The ticket that the service prints then admits you, and nobody without the
private key. `sweetspot serve --help` lists the other parts of a line.

Files: ~/.config/sweetspot/identity.pem holds the private key (XDG_CONFIG_HOME
names another directory).")]
pub struct ServeKeyArguments {
    /// File that holds the private key; created if missing [default: ~/.config/sweetspot/identity.pem]
    #[arg(long, value_name = "FILE")]
    identity: Option<PathBuf>,
    /// Print it as one JSON object
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: ServeKeyArguments) -> Ending {
    let key = own_identity(arguments.identity.as_deref())?.public_key().to_string();
    if arguments.json {
        out!("{}", serde_json::json!({ "key": key }));
    } else {
        out!("{key}");
    }
    Ok(ExitCode::SUCCESS)
}
