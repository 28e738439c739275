use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use sweetspot_linux::sysctl;
use sweetspot_tune::{Event, Goal, Options};

/// What every kind of tuning has.
#[derive(Debug, clap::Args)]
pub struct Common {
    /// Decide and tell, but touch nothing
    #[arg(long)]
    dry_run: bool,

    /// Append every action to FILE, a line of JSON each
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,

    /// Do not print what is done
    #[arg(long)]
    quiet: bool,
}

/// Where events go.
pub struct Journal {
    file: Option<(PathBuf, File)>,
    quiet: bool,
}

impl Common {
    pub fn options(&self) -> Result<Options, Box<dyn std::error::Error>> {
        let goal = Goal::Throughput;
        let max_window = sysctl::tcp_rmem()?.most;
        Ok(Options { goal, dry_run: self.dry_run, max_window })
    }

    pub fn journal(&self) -> Result<Journal, String> {
        let file = match &self.events {
            None => None,
            Some(path) => {
                let file = File::options().create(true).append(true).open(path);
                let file =
                    file.map_err(|e| format!("cannot write events to {}: {e}", path.display()))?;
                Some((path.clone(), file))
            }
        };
        Ok(Journal { file, quiet: self.quiet })
    }
}

impl Journal {
    pub fn record(&mut self, event: &Event) {
        if !self.quiet {
            say!("sweetspot: {event}");
        }
        let Some((path, file)) = &mut self.file else { return };
        if let Err(error) = writeln!(file, "{}", event.json()) {
            say!("sweetspot: no more events to {}: {error}", path.display());
            self.file = None;
        }
    }
}
