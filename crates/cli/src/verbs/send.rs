use std::path::PathBuf;
use std::process::ExitCode;

use sweetspot_protocol::Ticket;
use sweetspot_sizing::Sizing;
use sweetspot_transfer::{SendOptions, send};

use super::Ending;
use super::transfer::{PathArguments, TransferReporter};

/// `sweetspot send` as typed.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sweetspot send results.tar sweetspot1:...
      sends the file to the receiver that printed this ticket
  sweetspot send results.tar sweetspot1:... --congestion cubic --sizing kernel --json
      the same without control of the window, for comparison")]
pub struct Arguments {
    /// File to send
    file: PathBuf,
    /// Ticket that `sweetspot serve` printed
    ticket: String,
    /// Name at the receiver [default: the file's own]
    #[arg(long)]
    name: Option<String>,
    /// How the receiver is to size the window: kernel, fixed:SIZE, max, bdp, sobas or sobas:paper
    /// [default: what the receiver wants, else sobas]
    #[arg(long)]
    sizing: Option<Sizing>,
    /// Congestion control of this connection [default: the system's]
    #[arg(long, value_name = "NAME")]
    congestion: Option<String>,
    /// Let the receiver's sizing switch the congestion control even though --congestion is given
    #[arg(long, requires = "congestion")]
    may_switch: bool,
    #[command(flatten)]
    path: PathArguments,
    /// Do not answer probes; round-trip times are then the receiving kernel's estimates
    #[arg(long)]
    no_probes: bool,
    /// Print one JSON object at the end
    #[arg(long)]
    json: bool,
    /// Write the time series, as this end sees it, to this file, as JSON lines
    #[arg(long, value_name = "FILE")]
    series: Option<PathBuf>,
    /// Print more detail
    #[arg(long, short)]
    verbose: bool,
}

pub fn run(arguments: Arguments) -> Ending {
    let ticket: Ticket = arguments.ticket.parse()?;
    let watch =
        TransferReporter::new(arguments.series.as_deref(), arguments.json, arguments.verbose)?;
    let options = SendOptions {
        name: arguments.name,
        sizing: arguments.sizing,
        congestion: arguments.congestion,
        may_switch: arguments.may_switch,
        path: arguments.path.resolve()?,
        probes: !arguments.no_probes,
        send_buffer: None,
    };
    let mut observer = watch.observer(1);
    let sent = send(&arguments.file, &ticket, &options, observer.as_mut());
    // The bar goes before the result comes.
    drop(observer);
    match sent {
        Ok(outcome) => {
            watch.outcome(&outcome);
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            watch.failure(&error);
            Err(error.into())
        }
    }
}
