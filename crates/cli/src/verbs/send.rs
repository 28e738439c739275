use std::ffi::OsString;
use std::net::{Ipv6Addr, SocketAddr};
use std::path::{Component, Path, PathBuf};

use sweetspot_protocol::{RelativePath, Ticket};
use sweetspot_sizing::Sizing;
use sweetspot_transfer::{
    Contact, EndsAfter, Purpose, SendOptions, ServeOptions, Sources, draw_code, send,
};

use super::Ending;
use super::serve::{self, LogOptions, listening};
use super::transfer::{
    ConnectionArguments, ContactArguments, OutputArguments, PathArguments, TransferReporter,
    files_from, is_ticket, members_help, one_standard_input, progress_help, sizing_of_path,
    ticket_help,
};
use crate::option_hints::HintVerb;
use sweetspot_program::print::Shown;
use sweetspot_program::usage_error::{self, UsageError};

/// `sweetspot send` as typed.
#[derive(Debug, clap::Args)]
#[command(override_usage = "sweetspot send [OPTIONS] SOURCE... [TICKET]")]
#[command(after_help = concat!(
    "\
Examples:
  sweetspot send results.tar sweetspot1:...
      sends the file to the receiver that printed this ticket
  sweetspot send photos notes.txt sweetspot1:...
      sends a directory and a file, except data that is already there
  tar c src | sweetspot send - sweetspot1:... --name src.tar
      sends standard input
  sweetspot send photos --offer
      waits up to a day for `sweetspot receive` with the ticket that it prints,
      also after a try in which the receiver refused files; Ctrl-C ends it

Keeps permission bits (less the receiving umask; not set-ID and sticky bits),
times, hard links, holes, and symbolic links in directories; one that you name
as a source is followed. A receiver accepts names that begin with a dot only in
directories that the transfer creates, unless it allows others (--dotfiles).\n\n",
    ticket_help!(),
    "\n\n",
    progress_help!(),
    "\n\n\
Environment: SWEETSPOT_TICKET holds the ticket, out of other users' sight.

Exit codes: 0 everything arrived; 23 some files did not, or a source was
missing, and each is named; 1 the transfer failed, all sources were missing, or
nobody came for an offer; 2 the command line is wrong; 128+N signal N ended it.\n\n",
    members_help!(),
))]
pub struct SendArguments {
    /// Files and directories to send, `-` for standard input, and at the end the ticket that `sweetspot serve` or
    /// `serve invite` printed. A directory NAME arrives as NAME, `NAME/` sends its contents
    #[arg(required = true, value_name = "SOURCE")]
    paths: Vec<OsString>,
    #[command(flatten)]
    contact: ContactArguments,
    /// Name at the receiver [default: the file's own, or stdin]
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    choice: ChoiceArguments,
    /// How the receiver should size the window: sobas (limit it once a measurement shows that this costs no rate), sobas:paper (the published algorithm), kernel (leave it to autotuning), fixed:SIZE, max (the largest that the kernel allows), bdp (--path-rate times --path-rtt) [default: the receiver's choice, else sobas]
    #[arg(long, value_parser = sizing_of_path(), hide_possible_values = true)]
    sizing: Option<Sizing>,
    #[command(flatten)]
    connections: ConnectionArguments,
    /// Let the receiver's sizing switch the congestion control even though --congestion is given
    #[arg(long, requires = "congestion")]
    may_switch: bool,
    /// Share of a busy path that several connections take: fair (one flow's share) or greedy (as much as they can get)
    #[arg(long, value_name = "HOW", default_value = "fair", hide_possible_values = true)]
    share: Share,
    #[command(flatten)]
    path: PathArguments,
    /// Do not answer probes; the receiver then uses its kernel's RTT estimates
    #[arg(long)]
    no_probes: bool,
    /// Without a ticket: print one and wait for `sweetspot receive`. The next four options imply this
    #[arg(long)]
    offer: bool,
    /// Without a ticket: exit after the first try, even if files are missing [default: exit only if a receiver cannot fix
    /// that, such as with `receive --force`]
    #[arg(long)]
    one_try: bool,
    /// Without a ticket: address and port to listen on [default: a free port of every address]
    #[arg(long, value_name = "ADDR:PORT", value_parser = listening)]
    listen: Option<SocketAddr>,
    /// Without a ticket: host name or address in the printed ticket, and its port unless that is the one of --listen
    #[arg(long, value_name = "HOST[:PORT]", value_hint = clap::ValueHint::Hostname)]
    advertise: Option<String>,
    /// Without a ticket: print a short code to read out instead; one wrong attempt invalidates it
    #[arg(long)]
    spoken_code: bool,
    /// List the files that would be sent, and send nothing
    #[arg(long, short = 'n')]
    dry_run: bool,
    #[command(flatten)]
    output: OutputArguments,
}

/// The share of a path for several connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Share {
    /// At most one flow's share; more connections only if each one is limited on its own.
    Fair,
    /// As much as more connections can get.
    Greedy,
}

/// Arguments that select files below the sources.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ChoiceArguments {
    /// Leave out matching names, by rsync's rules: `*.o` or `a/b` at any depth, `/photos/raw` from the top of the transfer,
    /// `cache/` only directories
    #[arg(long, value_name = "PATTERN", value_parser = pattern)]
    pub exclude: Vec<String>,
    /// Send only the paths listed in this file, one path below the source per line (`-`: standard input). A source NAME
    /// arrives as NAME/PATH, `NAME/` as PATH; rsync always copies to PATH
    #[arg(long, value_name = "FILE")]
    pub files_from: Option<PathBuf>,
    /// Compare contents instead of lengths and times, and send only the pieces that differ
    #[arg(long)]
    pub checksum: bool,
    /// Also send extended attributes (user.*)
    #[arg(long)]
    pub xattrs: bool,
}

/// Parses a pattern of names to exclude.
fn pattern(text: &str) -> Result<String, &'static str> {
    if text.is_empty() {
        return Err("it is empty; is a variable unset?");
    }
    Sources::check_pattern(text)?;
    Ok(text.to_owned())
}

impl ChoiceArguments {
    /// The sources to send.
    pub fn sources(
        &self,
        paths: Vec<PathBuf>,
        name: Option<String>,
    ) -> Result<Sources, UsageError> {
        let only = self.files_from.as_deref().map(files_from).transpose();
        let only = only.map_err(UsageError::new)?;
        if only.is_some() && paths.len() != 1 {
            let wrong = "--files-from lists paths below a single source; give one source";
            return Err(UsageError::new(wrong));
        }
        // Paths must not lead out of the source.
        let is_below = |path: &Path| {
            path.components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir))
        };
        if let Some(path) = only.iter().flatten().find(|path| !is_below(path)) {
            let list = self.files_from.as_deref().unwrap_or(path).shown();
            return Err(UsageError::new(format!(
                "{list}: {}: it is not below the source; list paths relative to the source",
                path.shown()
            )));
        }
        let exclude = self.exclude.clone();
        Ok(Sources { paths, only, name, exclude, attributes: self.xattrs, ..Sources::default() })
    }
}

impl SendArguments {
    /// Whether an option asks to wait for a receiver.
    pub fn offers(&self) -> bool {
        self.offer
            || self.one_try
            || self.listen.is_some()
            || self.advertise.is_some()
            || self.spoken_code
    }
}

pub fn run(mut arguments: SendArguments) -> Ending {
    let named = arguments.paths.last().filter(|last| is_ticket(last)).cloned();
    if named.is_some() {
        arguments.paths.pop();
    }
    let lists = [arguments.contact.ticket_file(), arguments.choice.files_from.as_deref()];
    let sources = arguments.paths.iter().map(Path::new);
    one_standard_input(sources.chain(lists.into_iter().flatten()))?;
    let contact = arguments.contact.contact(named.as_deref())?;
    if arguments.paths.iter().any(|path| path.is_empty()) {
        let wrong = "an argument is empty: expected SOURCE... and a ticket; is a variable unset?";
        return Ok(usage_error::reject(wrong));
    }
    if arguments.paths.is_empty() {
        return Ok(usage_error::reject("there is no source: sweetspot send SOURCE... TICKET"));
    }
    if arguments.name.is_some() && arguments.paths.len() > 1 {
        return Ok(usage_error::reject("--name renames a single source; send one at a time"));
    }
    if let Some(name) = &arguments.name {
        RelativePath::new(name.as_bytes()).map_err(|error| UsageError::new(error.to_string()))?;
    }
    if arguments.paths.iter().any(|path| is_ticket(path)) {
        return Ok(usage_error::reject("the ticket comes last: sweetspot send SOURCE... TICKET"));
    }
    if contact.is_none() && arguments.dry_run {
        return Ok(usage_error::reject("--dry-run compares with a receiver: give its ticket"));
    }
    // A last word that is neither a file nor a ticket was probably meant as a ticket, unless none is needed.
    if let (None, false, [_, .., last]) = (&contact, arguments.offer, &arguments.paths[..])
        && !PathBuf::from(last).exists()
    {
        let last = last.to_string_lossy();
        let over_ssh = match last.contains(':') {
            true => "; to send to HOST:PATH over ssh, use `sweetspot copy`",
            false => "",
        };
        last.parse::<Ticket>().map_err(|error| {
            UsageError::new(format!("{last}: there is no such file, and {error}{over_ssh}"))
        })?;
    }
    if contact.is_none() && !arguments.offers() {
        let wrong = "there is no ticket: give the one that `sweetspot serve` printed, or add \
                     --offer to print one and wait for `sweetspot receive`";
        return Ok(usage_error::reject(wrong));
    }
    let hint_verb = if contact.is_some() { HintVerb::Send } else { HintVerb::Offer };
    let paths: Vec<PathBuf> = arguments.paths.iter().map(PathBuf::from).collect();
    let options = SendOptions {
        sources: arguments.choice.sources(paths, arguments.name)?,
        checksum: arguments.choice.checksum,
        dry_run: arguments.dry_run,
        sizing: arguments.sizing,
        congestion: arguments.connections.congestion,
        may_switch: arguments.may_switch,
        path: arguments.path.resolve(arguments.sizing, hint_verb)?,
        probes: !arguments.no_probes,
        streams: arguments.connections.streams,
        greedy: arguments.share == Share::Greedy,
        retry_for: arguments.connections.retry_for,
        ..SendOptions::default()
    };
    let reporter = arguments.output.reporter(hint_verb)?;
    match contact {
        Some(contact) => send_to(&contact, &options, &reporter),
        None => {
            // A pipe can be read only once.
            let once = arguments.one_try || arguments.paths.iter().any(|path| path == "-");
            let ends = if once { EndsAfter::First } else { EndsAfter::FirstNotRefused };
            let offer = ServeOptions {
                listen: arguments.listen.unwrap_or((Ipv6Addr::UNSPECIFIED, 0).into()),
                advertise: serve::advertise(arguments.advertise.as_deref())?,
                ends,
                code: arguments.spoken_code.then(|| draw_code(|_| true)).transpose()?,
                ..ServeOptions::new(Purpose::Send(Box::new(options)))
            };
            serve::serve(offer, reporter, &LogOptions::default())
        }
    }
}

fn send_to(contact: &Contact, options: &SendOptions, reporter: &TransferReporter) -> Ending {
    let is_repeatable = !options.sources.paths.iter().any(|path| path == Path::new("-"));
    if is_repeatable && !options.dry_run {
        reporter.print_when_interrupted();
    }
    let mut observer = reporter.observer(1);
    let sent = send(contact, options, observer.as_mut());
    // Removes the progress bar before the result is printed.
    drop(observer);
    if let Ok(outcome) = &sent {
        reporter.would("send", outcome);
    }
    reporter.finish(sent.map_err(|error| match error.for_a_stream() {
        Some(line) if !is_repeatable => line.into(),
        _ => error.into(),
    }))
}
