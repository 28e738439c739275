//! `copy`: files and directories to and from a host that ssh reaches, in scp's and rsync's notation.

mod endpoint;
mod far_end;
mod job;
mod messages;
mod operand;
mod overlap;
mod route;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::builder::NonEmptyStringValueParser;
use sweetspot_linux::tcp::MIN_PACE;
use sweetspot_protocol::Role;
use sweetspot_sizing::Sizing;
use sweetspot_transfer::{Delete, NamedThings, RequestedSources, Sources};
use sweetspot_units::Rate;

pub use endpoint::{EndpointArguments, run as run_endpoint};
use job::Job;
pub use operand::Operand;
use route::{Route, copy_with};

use super::Ending;
use super::send::ChoiceArguments;
use super::transfer::{
    ConnectionArguments, OutputArguments, members_pointer, one_standard_input, progress_help,
    sizing,
};
use crate::option_hints::HintVerb;
use sweetspot_program::usage_error::{self, UsageError};

/// `sweetspot copy` as typed.
#[derive(Debug, clap::Args)]
#[command(override_usage = "sweetspot copy [OPTIONS] SOURCE... DESTINATION")]
#[command(after_help = concat!(
    "\
Examples:
  sweetspot copy results.tar backup.example.org:
      a file into the home directory there
  sweetspot copy -J gate photos me@nas:archive
      a directory, as archive/photos, through a jump host
  sweetspot copy nas:archive/photos/ here
      the contents of that directory, into the directory here
  sweetspot copy --dry-run --checksum src/ host:src
      lists the files that are missing there or have other contents
  sweetspot copy photos /mnt/backup
      a directory to another one on this host

Keeps permission bits (less the receiving umask; not set-ID and sticky bits),
times, hard links, holes, and symbolic links in directories; one that you name
as a source is followed. After an interruption, .sweetspot-….part files stay
beside their targets; the same command resumes from them.

The far end needs ssh and sweetspot. Data takes its own connections, encrypted
by TLS 1.3 and authenticated over ssh: from this host or, if a firewall blocks
those, from the far end. If neither end can connect, data goes through ssh.\n\n",
    progress_help!(),
    "\n\n\
Exit codes: 0 everything arrived; 23 some files did not, or a source was
missing, and each is named; 1 the copy failed, or all sources were missing; 2
the command line is wrong; 128+N signal N ended it.\n\n",
    members_pointer!(),
))]
pub struct CopyArguments {
    /// Sources, then the destination: PATH, HOST:PATH or USER@HOST:PATH; a relative PATH at HOST starts in the home
    /// directory there. A directory NAME arrives as DESTINATION/NAME, `NAME/` puts its contents into DESTINATION, and a
    /// single file becomes DESTINATION, unless that is a directory or ends with `/`. A missing DESTINATION is created, but
    /// not its parent. `-` as a source is standard input, which arrives in a directory as `stdin`
    #[arg(required = true, num_args = 1.., value_name = "SOURCE|DESTINATION")]
    operands: Vec<OsString>,
    #[command(flatten)]
    choice: ChoiceArguments,
    /// Accepted for habit from scp and rsync; directories are always copied whole
    #[arg(short = 'r', long = "recursive", hide = true)]
    _recursive: bool,
    /// Delete files in the copied directories that are not in the sources, once everything has arrived; names of --exclude
    /// are kept. If a file failed or a source is missing, nothing is deleted
    #[arg(long, conflicts_with_all = ["files_from", "keep_existing"])]
    delete: bool,
    /// Keep owners and groups, by name where the receiving host knows it; the receiving end must run as root
    #[arg(long)]
    owners: bool,
    /// Never compress [default: compress data that shrinks, while the path is slower than this host]
    #[arg(long)]
    no_compress: bool,
    /// Maximum total rate of all connections, such as 20Mbit/s or 2.5MB/s (at least 12kbit/s). 20M is 20 Mbit/s, where
    /// rsync reads 20 MiB/s
    #[arg(long, value_name = "RATE", value_parser = rate_limit)]
    bwlimit: Option<Rate>,
    /// Do not overwrite existing files
    #[arg(long)]
    keep_existing: bool,
    /// List the files that would be copied, and copy nothing
    #[arg(long, short = 'n')]
    dry_run: bool,
    /// The ssh command and its options
    #[arg(long, value_name = "COMMAND", default_value = "ssh", env = "SWEETSPOT_SSH", value_parser = NonEmptyStringValueParser::new())]
    ssh: String,
    /// Jump host, as for ssh
    #[arg(short = 'J', long, value_name = "HOST", value_hint = clap::ValueHint::Hostname)]
    jump: Option<String>,
    /// Command that runs sweetspot at the far end
    #[arg(long, value_name = "COMMAND", default_value = "sweetspot", value_parser = NonEmptyStringValueParser::new())]
    remote_program: String,
    /// Port for the far end to listen on, if its firewall opens only some [default: any]
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    port: u16,
    /// How to connect: auto, direct (to the far end), reverse (from it), ssh (through ssh)
    #[arg(long, value_name = "WAY", default_value = "auto")]
    via: Route,
    /// How to size the window: sobas (limit it once a measurement shows that this costs no rate), sobas:paper (the published algorithm), kernel (leave it to autotuning), fixed:SIZE, max (the largest that the kernel allows) [default: sobas]
    #[arg(long, value_parser = sizing(), hide_possible_values = true)]
    sizing: Option<Sizing>,
    #[command(flatten)]
    connections: ConnectionArguments,
    #[command(flatten)]
    output: OutputArguments,
}

pub fn run(arguments: CopyArguments) -> Ending {
    let mut reporter = arguments.output.reporter(HintVerb::Copy)?;
    reporter.leaves_existing = arguments.keep_existing;
    if arguments.operands.iter().any(|operand| operand.is_empty()) {
        let wrong =
            "an argument is empty: expected SOURCE... and DESTINATION; is a variable unset?";
        return Ok(usage_error::reject(wrong));
    }
    if let [_] = arguments.operands.as_slice() {
        let wrong = "one path is not enough: expected SOURCE... and DESTINATION";
        return Ok(usage_error::reject(wrong));
    }
    let operands = arguments.operands.iter().map(|text| Operand::parse(text));
    let mut operands: Vec<Operand> = operands.collect::<Result<_, _>>().map_err(UsageError::new)?;
    let Some(destination) = operands.pop() else {
        return Err("expected SOURCE... and DESTINATION".into());
    };
    let (host, paths) = one_host(operands)?;
    if matches!(&destination, Operand::Local(path) if path == Path::new("-")) {
        let wrong = "`copy` does not write to standard output: use `send --offer` and `receive TICKET -`, or name the file ./-";
        return Ok(usage_error::reject(wrong));
    }
    let sources = paths.iter().filter(|_| host.is_none()).map(PathBuf::as_path);
    one_standard_input(sources.chain(arguments.choice.files_from.as_deref()))?;
    let (remote, target) = match (host, destination) {
        (Some(_), Operand::Remote { .. }) => {
            return Err(UsageError::new(
                "source and destination are both remote; run `sweetspot copy` on one of them",
            )
            .into());
        }
        (Some(host), Operand::Local(target)) => (Some((host, Role::Sender)), target),
        (None, Operand::Remote { host, path }) => (Some((host, Role::Receiver)), path),
        (None, Operand::Local(target)) => (None, target),
    };
    let requested = match &remote {
        Some((_, Role::Sender)) => {
            match NamedThings::at(paths.iter().map(PathBuf::as_path), arguments.dry_run) {
                Ok(things) => RequestedSources::Named(Box::new(things)),
                Err(error) => return Ok(usage_error::reject(&error.to_string())),
            }
        }
        _ => RequestedSources::Anything,
    };
    let contents = match &remote {
        Some((_, Role::Sender)) => paths.iter().any(|path| NamedThings::stands_for_contents(path)),
        _ => false,
    };
    let sources = Sources { owners: arguments.owners, ..arguments.choice.sources(paths, None)? };
    let delete = arguments.delete.then(|| Delete { contents, keep: sources.exclude.clone() });
    let mut job = Job {
        sources,
        target,
        requested,
        delete,
        checksum: arguments.choice.checksum,
        keep_existing: arguments.keep_existing,
        dry_run: arguments.dry_run,
        compress: !arguments.no_compress,
        rate_limit: arguments.bwlimit,
        sizing: arguments.sizing,
        congestion: arguments.connections.congestion.clone(),
        streams: arguments.connections.streams,
    };
    if let (Some(delete), None | Some((_, Role::Receiver))) = (&mut job.delete, &remote) {
        match job.sources.are_contents() {
            Ok(contents) => delete.contents = contents,
            Err(error) => return reporter.finish(Err(error.into())),
        }
    }
    if remote.is_none()
        && let Some(why) = overlap::hazard(&job.sources, &job.target, arguments.delete)
    {
        return Ok(usage_error::reject(&why));
    }
    reporter.rate_limit = arguments.bwlimit;
    reporter.relays_loopback = true;
    if job.can_be_repeated() && !arguments.dry_run {
        reporter.print_when_interrupted();
    }
    let copied = match &remote {
        None => job.copy_here(&reporter),
        Some((host, role)) => copy_with(&job, &arguments, host, *role, &reporter)
            .map_err(|error| job.with_target(error, host, *role)),
    };
    if let Ok(outcome) = &copied {
        reporter.would("copy", outcome);
    }
    for name in copied.iter().flat_map(|outcome| &outcome.deleted) {
        if arguments.dry_run {
            reporter.list(&format!("would delete {name}"));
        } else {
            reporter.detail(&format!("deleted {name}"));
        }
    }
    reporter.finish(copied)
}

fn rate_limit(text: &str) -> Result<Rate, String> {
    match text.parse::<Rate>() {
        Ok(rate) if rate >= MIN_PACE => Ok(rate),
        Ok(_) => Err(format!("the minimum is {MIN_PACE}")),
        Err(error) => Err(error.to_string()),
    }
}

/// The host of all sources (`None` for this host), and their paths.
fn one_host(sources: Vec<Operand>) -> Result<(Option<String>, Vec<PathBuf>), UsageError> {
    let mut hosts = Vec::new();
    let mut paths = Vec::new();
    for source in sources {
        let (host, path) = match source {
            Operand::Local(path) => (None, path),
            Operand::Remote { host, path } => (Some(host), path),
        };
        hosts.push(host);
        paths.push(path);
    }
    let first = hosts.first().cloned().flatten();
    if hosts.iter().any(|host| *host != first) {
        return Err(UsageError::new(
            "the sources are on several hosts; copy from one host at a time",
        ));
    }
    Ok((first, paths))
}
