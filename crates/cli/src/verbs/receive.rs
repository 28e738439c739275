use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use sweetspot_sizing::Sizing;
use sweetspot_transfer::{ReceiveOptions, RequestedSources, Target, receive};

use super::Ending;
use super::transfer::{
    ConnectionArguments, ContactArguments, OutputArguments, TrustArguments, is_ticket,
    members_pointer, progress_help, sizing, ticket_help,
};
use crate::option_hints::HintVerb;
use sweetspot_program::usage_error::{self, UsageError};

/// `sweetspot receive` as typed.
#[derive(Debug, clap::Args)]
#[command(after_help = concat!(
    "\
Examples:
  sweetspot receive sweetspot1:...
      receives the files that `sweetspot send` offers, into this directory
  sweetspot receive sweetspot1:... photos
      into the directory photos, or, a single file, under that name
  sweetspot receive sweetspot1:... - | tar x
      to standard output, from `tar c photos | sweetspot send - --offer`
  sweetspot receive --code example.org/42-crisp-lemon-orbit
      with a spoken code instead of a ticket
  sweetspot receive sweetspot1:... mine
      the whole directory that a service keeps for you, with its ticket

It connects to the address in the ticket, which this host must reach.\n",
    ticket_help!(),
    "\n\n",
    progress_help!(),
    "\n\n\
Environment: SWEETSPOT_TICKET holds the ticket, out of other users' sight.

Exit codes: 0 everything arrived; 23 some files did not, and each is named; 1
the transfer failed; 2 the command line is wrong; 128+N signal N ended it.\n\n",
    members_pointer!(),
))]
pub struct ReceiveArguments {
    /// Ticket that `sweetspot send` or a service printed; leave it out with --ticket-file, --code or SWEETSPOT_TICKET
    ticket: Option<OsString>,
    /// Destination, or `-` for standard output, which takes a single file or stream. A directory NAME arrives as
    /// TARGET/NAME; contents alone, of NAME/ or from a service, arrive in TARGET; a single file becomes TARGET, unless that is
    /// a directory or ends with `/`. A missing TARGET is created, but not its parent [default: .]
    target: Option<PathBuf>,
    #[command(flatten)]
    contact: ContactArguments,
    /// Overwrite existing files
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    trust: TrustArguments,
    /// How to size the window: sobas (limit it once a measurement shows that this costs no rate), sobas:paper (the published algorithm), kernel (leave it to autotuning), fixed:SIZE, max (the largest that the kernel allows) [default: the sender's request, else sobas]
    #[arg(long, value_parser = sizing(), hide_possible_values = true)]
    sizing: Option<Sizing>,
    #[command(flatten)]
    connections: ConnectionArguments,
    #[command(flatten)]
    output: OutputArguments,
}

impl ReceiveArguments {
    /// Whether standard output receives the content.
    pub fn prints_content(&self) -> bool {
        self.operands().1.is_some_and(|target| target == "-")
    }

    /// The ticket and the target. If an option or the environment names the sender, a single operand is the target.
    fn operands(&self) -> (Option<&OsStr>, Option<&OsStr>) {
        let (first, second) = (self.ticket.as_deref(), self.target.as_deref().map(Path::as_os_str));
        match (first, second) {
            (Some(only), None) if self.contact.names_peer() && !is_ticket(only) => {
                (None, Some(only))
            }
            both => both,
        }
    }
}

pub fn run(arguments: ReceiveArguments) -> Ending {
    let (ticket, path) = arguments.operands();
    if !ticket.is_some_and(is_ticket) && path.is_some_and(is_ticket) {
        return Ok(usage_error::reject("the ticket comes first: sweetspot receive TICKET TARGET"));
    }
    let path = Path::new(path.unwrap_or(OsStr::new(".")));
    let contact = arguments.contact.contact(ticket)?.ok_or_else(|| {
        UsageError::new(
            "there is no ticket: give the line that `sweetspot send` or the service printed",
        )
    })?;
    let target = target(path);
    let json_in_content = arguments.output.json && target == Target::Output;
    if json_in_content {
        let wrong = "standard output takes the content or --json, not both; give a file";
        return Ok(usage_error::reject(wrong));
    }
    if target == Target::Output && (arguments.trust.xattrs || arguments.trust.dotfiles) {
        let wrong =
            "standard output takes neither attributes nor names; leave out --xattrs and --dotfiles";
        return Ok(usage_error::reject(wrong));
    }
    let options = ReceiveOptions {
        requested: RequestedSources::Offered,
        overwrite: arguments.force,
        attributes: arguments.trust.xattrs,
        dotfiles: arguments.trust.dotfiles,
        sizing: arguments.sizing,
        congestion: arguments.connections.congestion,
        streams: arguments.connections.streams,
        retry_for: arguments.connections.retry_for,
        ..ReceiveOptions::at(target)
    };
    let reporter = arguments.output.reporter(HintVerb::Receive)?;
    if options.target != Target::Output {
        reporter.print_when_interrupted();
    }
    let mut observer = reporter.observer(1);
    let received = receive(&contact, &options, observer.as_mut());
    drop(observer);
    reporter.finish(received.map_err(Into::into))
}

pub fn target(path: &Path) -> Target {
    match path {
        path if path == Path::new("-") => Target::Output,
        path => Target::At(path.to_owned()),
    }
}
