mod columns;
mod json;
mod names;
mod order;
mod readings;
mod record;
mod screen;
mod terminal;
mod tuning;
mod view;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use sweetspot_diagnose::live::ENOUGH_INTERVALS;
use sweetspot_linux::clock;
use sweetspot_system::Interruption;
use sweetspot_units::Duration;

use self::order::SortOrder;
use self::readings::Readings;
use self::record::Recording;
use self::view::HELP;
use super::Ending;
use super::diagnose::short_names;
use sweetspot_program::print::out_while_read;
use sweetspot_program::usage_error::UsageError;
use sweetspot_watch::{ConnectionList, NamespaceConnections};

const EXAMPLES: &str = "\
Examples:
  sweetspot top
  sweetspot top --once --sort rtt
  A steadier limit, and the columns that 80 leave out:
  COLUMNS=160 sweetspot top --once --interval 5s | less -S
  sweetspot top --netns blue --once --json
  sweetspot top --record monday.log --interval 100ms
  sweetspot diagnose --tcpinfo monday.log

Members of --json:
  time               when the connections were read (UTC)
  connections_total  all connections that match the filter
  connections        the first --rows of them, each with:
    local, remote, state, congestion, pid, program, uid
                       state in full, which the table shortens as ss does:
                       Established (ESTAB), FinWait1 (FIN1), FinWait2 (FIN2),
                       CloseWait (CLOSEW)
    side               the end on this host: sender or receiver
    goodput_bps        payload per second in the last interval
    rtt_s, rtt_min_s   round trips
    window_bytes       the receiver's window
    cwnd_bytes         the congestion window
    sweet_spot_bytes   the smallest window at full rate; null until a
                       standing queue has shown the path's capacity, and
                       beside another connection that fills the path
    bytes, retransmitted_segments
    limited_by, limited_by_words
                       the class as diagnose names it, and words
    limits             each class's share of the time";

/// Help on the name of unknown time at a receiver.
const SENDER_OR_PATH_HELP: &str =
    "  sender or path  this host receives, and does not limit the rate; the other
                  end knows more: run sweetspot diagnose there
For a sender, receiver's wnd includes a program that reads slowly.";

/// The end of the help, including the text shown by `?`.
fn after_help() -> String {
    // clap keeps indented lines unchanged.
    let rows: Vec<_> = HELP.lines().map(|line| format!("  {line}").trim_end().to_owned()).collect();
    let names = short_names();
    format!(
        "Keys and columns:\n{}\n\nLimits in the table, and their names in diagnose if those differ:\n{names}\n{SENDER_OR_PATH_HELP}\n\n{EXAMPLES}",
        rows.join("\n")
    )
}

/// Show this host's TCP connections and the limit of each
///
/// Connections that are still opening (SYN-SENT) are not listed; `sweetspot diagnose HOST:PORT` reports them. "Limited by" is the limit that `sweetspot diagnose` names, over the last 10 seconds; with --once, over the interval. It changes
/// once another limit accounts for most of that time. Rates and round trips are of the last interval.
#[derive(Debug, clap::Args)]
#[command(after_help = after_help())]
pub struct TopArguments {
    /// Connections of the network namespace NAME (ip-netns(8))
    #[arg(long, value_name = "NAME")]
    netns: Option<String>,
    /// Print the table once and end; --interval 5s makes its limits steadier. Without a terminal, it is COLUMNS characters wide
    /// [default: 80]; 160 hold every column
    #[arg(long)]
    once: bool,
    /// Print one JSON object per reading
    #[arg(long)]
    json: bool,
    /// Interval between two readings
    #[arg(long, value_name = "TIME", default_value = "1s")]
    interval: Duration,
    /// Sort order
    #[arg(long, value_enum, default_value_t = SortOrder::Traffic)]
    sort: SortOrder,
    /// Only connections with TEXT in their program, address, state or limit
    #[arg(long, value_name = "TEXT", default_value = "")]
    filter: String,
    /// Write the kernel's account of every connection to the new FILE at each reading; `diagnose --tcpinfo FILE`
    /// reads it. Without a terminal, top records until Ctrl-C or SIGTERM; a script's background job ignores Ctrl-C, so
    /// end that with kill
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Print the first N of the table at most
    #[arg(long, value_name = "N", default_value_t = 50)]
    rows: usize,
}

pub fn run(arguments: TopArguments) -> Ending {
    const MIN_INTERVAL: Duration = Duration::from_millis(100);
    if arguments.interval < MIN_INTERVAL {
        let interval = arguments.interval;
        let wrong = format!("--interval {interval} is too short; the minimum is {MIN_INTERVAL}");
        return Err(UsageError::new(wrong).into());
    }
    let host = match &arguments.netns {
        Some(name) => NamespaceConnections::named(name)?,
        None => NamespaceConnections::own()?,
    };
    let draws = !arguments.once && !arguments.json;
    let has_terminal = std::io::stdout().is_terminal();
    if draws && !has_terminal && arguments.record.is_none() {
        let wrong = "top draws on a terminal; print instead with --once or --json, or record with --record FILE";
        return Err(wrong.into());
    }
    let recording = arguments.record.as_deref().map(Recording::create).transpose()?;
    let host = Readings::new(host, recording);
    if draws && !has_terminal {
        return record_only(host, arguments.interval);
    }
    if draws {
        return terminal::run(host, &arguments);
    }
    print(host, &arguments)
}

/// Records without a display, until a signal comes.
fn record_only(mut host: Readings, interval: Duration) -> Ending {
    let mut interruption = Interruption::hold()?;
    let mut table = ConnectionList::default();
    host.recording().inspect(|recording| recording.announce_start());
    loop {
        let next_due = clock::now() + interval;
        host.all(&mut table)?;
        // Also asked if the readings took longer than the interval.
        loop {
            if let Some(code) = interruption.wait_until(next_due)? {
                host.recording().inspect(|recording| recording.announce_end());
                return Ok(ExitCode::from(code));
            }
            if clock::now() >= next_due {
                break;
            }
        }
    }
}

/// Prints the table as text or JSON, once or until the reader closes the pipe.
fn print(mut host: Readings, arguments: &TopArguments) -> Ending {
    // A single table has no earlier readings, so its interval has as many as the rules need.
    let (mut table, readings) = match arguments.once {
        true => (ConnectionList::of_one_interval(), ENOUGH_INTERVALS),
        false => (ConnectionList::default(), 1),
    };
    host.all(&mut table)?;
    let width = columns::terminal_width();
    loop {
        // A rate needs two readings.
        let begun = clock::now();
        for n in 1..=readings {
            let next_due = begun + arguments.interval * n / readings;
            while host.next_due() < next_due {
                clock::sleep_until(host.next_due());
                host.busiest(&mut table);
            }
            clock::sleep_until(next_due);
            host.all(&mut table)?;
        }
        let mut rows = order::select(&table, arguments.sort, &arguments.filter);
        let all = rows.len();
        rows.truncate(arguments.rows);
        let text = match arguments.json {
            true => serde_json::to_string(&json::document(&rows, all))?,
            false => {
                let none = columns::empty_message(all, table.rows().count(), &arguments.filter);
                columns::text(&rows, all, width, arguments, none)
            }
        };
        if !out_while_read(format_args!("{text}"))? || arguments.once {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Command;
    use sweetspot_program::fold_help::with_folded_help;

    use super::*;

    #[test]
    fn the_help_has_a_line_for_each_key() {
        let help = with_folded_help(Command::new("top").after_help(after_help()));
        let help = help.get_after_help().map(ToString::to_string).unwrap();
        for key in HELP.lines() {
            assert!(help.lines().any(|line| line.trim() == key.trim()), "{key}: {help}");
        }
    }
}
