use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use sweetspot_emulator::isolate;

use super::Ending;
use crate::limits::{play, plans};

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Play only flows whose name contains one of these
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    only: Vec<String>,
    /// Keep the captures of both ends in DIR
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

pub fn run(arguments: Arguments) -> Ending {
    let wanted = |name: &str| {
        arguments.only.is_empty() || arguments.only.iter().any(|part| name.contains(part.as_str()))
    };
    let code = isolate(|| {
        for plan in plans().into_iter().filter(|plan| wanted(&plan.name)) {
            match play(&plan) {
                Ok(played) => {
                    say!("{} trusted {}", plan.name, played.trusted);
                    if let Some(dir) = &arguments.keep {
                        let _ = fs::write(dir.join(format!("{}.s.pcap", plan.name)), &played.at_sender);
                        let _ = fs::write(dir.join(format!("{}.r.pcap", plan.name)), &played.at_receiver);
                    }
                }
                Err(error) => say!("{}: {error}", plan.name),
            }
        }
        0
    })?;
    Ok(ExitCode::from(code))
}
