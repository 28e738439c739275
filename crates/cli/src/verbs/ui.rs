use std::path::PathBuf;
use std::process::ExitCode;

use sweetspot_system::Interruption;
use sweetspot_ui::{HAS_DIAGNOSE_PAGE, PageServer, WatchedFile};
use sweetspot_units::Time;

use super::Ending;
use sweetspot_program::print::Shown;
use sweetspot_program::usage_error::UsageError;
use sweetspot_program::whole_file;

macro_rules! long_about {
    ($second_page:literal) => {
        concat!(
            "Try out a path on a local page, and watch running programs there\n\n",
            "On the page, set a path's rate, RTT and buffer, its cross traffic and a window; it simulates a transfer, and draws the \
             goodput over the window, the queue and the RTT. ",
            $second_page,
            "With --watch, the page also draws the files of running programs as they grow.\n\n",
            "The server listens on the loopback address only, and answers only requests with the token in the page's address. The \
             page loads nothing from elsewhere."
        )
    };
}

const LONG_ABOUT: &str = if HAS_DIAGNOSE_PAGE {
    long_about!(
        "A second page diagnoses captures and the output of `ss -ti` that you drop or paste there. "
    )
} else {
    long_about!("")
};

/// Try out a path on a local page, and watch running programs there
#[derive(Debug, clap::Args)]
#[command(long_about = LONG_ABOUT)]
#[command(after_help = "\
Examples:
  sweetspot ui
      prints the address of a page that simulates a path
  sweetspot send big.tar TICKET --series send.jsonl & \\
      sweetspot ui --watch send.jsonl
      shows a transfer while it runs
  sweetspot ui --watch tune.jsonl --watch sweep.parquet.journal
      shows the actions of tune --events tune.jsonl
      and the progress of sweep --out sweep.parquet

Exit codes: 0 a signal ended it; 1 it could not start; 2 the command line is
wrong.

Members of --json:
  address            of the page, with its token
  simulated_by       page, in WebAssembly; or server, in a build without it
  watched            the files of --watch")]
pub struct UiArguments {
    /// A file that a running program writes (--series of copy, send, receive or serve; tune --events), or
    /// the journal beside sweep --out; it need not exist yet. May be repeated
    #[arg(long, value_name = "FILE")]
    watch: Vec<PathBuf>,
    /// Files without --watch, for an error that names it
    #[arg(hide = true)]
    operands: Vec<PathBuf>,
    /// Port to listen on; 0 takes a free one
    #[arg(long, default_value_t = 0, value_parser = port)]
    port: u16,
    /// Print the address and the watched files as one JSON object
    #[arg(long)]
    json: bool,
}

/// Parses a port to listen on.
fn port(text: &str) -> Result<u16, &'static str> {
    text.parse().map_err(|_| "expected a port from 0 to 65535; 0 takes a free one")
}

pub fn run(arguments: UiArguments) -> Ending {
    if let Some(file) = arguments.operands.first() {
        let file = file.shown();
        return Err(
            UsageError::new(format!("ui takes no operand {file}: write --watch {file}")).into()
        );
    }
    for path in &arguments.watch {
        whole_file::check_creatable("--watch", Some(path)).map_err(UsageError::new)?;
    }
    let watched: Vec<WatchedFile> = arguments.watch.iter().map(WatchedFile::new).collect();
    watched.iter().try_for_each(is_watchable)?;
    // From here on, signals are held until they are asked for, on this thread and those that it starts.
    let mut interruption = Interruption::hold()?;
    let names: Vec<String> = arguments.watch.iter().map(|path| path.shown().to_string()).collect();
    let server = PageServer::start(arguments.port, watched)?;
    if arguments.json {
        out!("{}", in_json(&server, &names));
    } else {
        out!("{}", server.address());
    }
    note!("sweetspot: open that address in a browser on this machine; Ctrl-C ends it");
    loop {
        if interruption.wait_until(Time::MAX)?.is_some() {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

fn in_json(server: &PageServer, names: &[String]) -> serde_json::Value {
    let simulates = if server.simulates() { "server" } else { "page" };
    serde_json::json!({
        "address": server.address(), "simulated_by": simulates, "watched": names,
    })
}

/// Refuses a file of another kind; a missing or empty one may still become a series.
fn is_watchable(watched: &WatchedFile) -> Result<(), UsageError> {
    let path = watched.path().shown();
    let refused = |why: String| Err(UsageError::new(format!("--watch {path}: {why}")));
    let text = match watched.lines(0) {
        Err(error) => return refused(format!("{error}; name a file that you may read")),
        Ok(lines) => lines.text,
    };
    let first = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = serde_json::from_slice::<serde_json::Value>(first).unwrap_or_default();
    let has = |key: &str| !line[key].is_null();
    if has("time") && (has("outlook") || has("unknown")) {
        return refused(
            "this is a series of measure --watch, which ui does not draw; `measure --html` draws a single measurement, and `measure \
             --scenario` writes the series as a path that `run` simulates"
                .to_owned(),
        );
    }
    match first.is_empty() || has("t_s") || has("sweetspot_journal") {
        true => Ok(()),
        false => refused(
            "expected a file of --series (copy, send, receive, serve), of tune --events, or the journal beside sweep --out".to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use clap::Args;

    use super::*;
    use crate::verbs::members::{listed, written};
    use sweetspot_sizing::SizingPhase;

    #[test]
    fn a_series_of_measure_is_refused_by_its_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("day.jsonl");
        let why = |line: &str| {
            std::fs::write(&path, line).unwrap();
            is_watchable(&WatchedFile::new(&path)).map_err(|error| error.to_string())
        };
        for line in
            ["{\"time\":\"t\",\"unknown\":\"far end\"}\n", "{\"time\":\"t\",\"outlook\":{}}\n"]
        {
            let why = why(line).unwrap_err();
            assert!(why.contains("measure --watch") && why.contains("measure --html"), "{why}");
        }
        assert_eq!(why("{\"t_s\":0}\n"), Ok(()));
    }

    #[test]
    fn the_page_has_words_for_each_phase_of_the_window() {
        let page = include_str!("../../../ui/page/live.js");
        let (_, list) = page.split_once("const PHASES = {").unwrap();
        let (list, _) = list.split_once("};").unwrap();
        for phase in SizingPhase::ALL {
            let (plain, quoted) = (format!(" {phase}: \""), format!("\"{phase}\": \""));
            assert!(list.contains(&plain) || list.contains(&quoted), "{phase}");
        }
    }

    #[test]
    fn the_help_lists_exactly_the_json_members() {
        let command = UiArguments::augment_args(clap::Command::new("ui"));
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let (_, list) = help.split_once("Members of --json:").unwrap();
        let server = PageServer::start(0, Vec::new()).unwrap();
        assert_eq!(listed(list), written(&in_json(&server, &[])));
    }
}
