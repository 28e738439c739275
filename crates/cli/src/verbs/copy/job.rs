//! One copy, and each end's part in it.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::thread;

use sweetspot_control::TransferSummary;
use sweetspot_linux::clock;
use sweetspot_protocol::{Role, VERSION};
use sweetspot_sizing::Sizing;
use sweetspot_transfer::{
    AdmittedTransfer, Contact, Delete, EndsAfter, NO_PARENT, Purpose, ReceiveOptions,
    RequestedSources, SendOptions, ServeOptions, Server, ServerObserver, Sources, Target,
    TransferError, TransferObserver, receive, send,
};
use sweetspot_units::{Duration, Rate};

use super::CopyArguments;
use super::messages::{Deletion, PathText, Request};
use crate::verbs::Fallible;
use crate::verbs::transfer::TransferReporter;

/// The time that the far end waits after the path broke. This end waits for less, and then starts another far end. The
/// far end ends sooner if its ssh does; this limit is for a path that breaks without an error at either end.
const FAR_RETRY: Duration = Duration::from_secs(40);
/// The time that a copy on this host waits for its receiver's error.
const OWN_WORDS_TIMEOUT: Duration = Duration::from_secs(2);
/// The hint for `host:dir/*.txt`: no shell at the far end expands it.
const NO_PATTERNS: &str = "patterns are not expanded at the far end: name the directory, as HOST:DIR/, and select names with \
                           --exclude or --files-from";

pub type Copied = Fallible<TransferSummary>;

/// One copy, between known ends.
pub struct Job {
    pub sources: Sources,
    pub target: PathBuf,
    /// The requested files, if this end receives.
    pub requested: RequestedSources,
    pub delete: Option<Delete>,
    pub checksum: bool,
    pub keep_existing: bool,
    pub dry_run: bool,
    pub compress: bool,
    pub rate_limit: Option<Rate>,
    pub sizing: Option<Sizing>,
    pub congestion: Option<String>,
    pub streams: Option<u32>,
}

impl Job {
    /// Adds the host to a refusal, and the path if the receiver refused: this end knows the path that it asked for.
    pub fn with_target(
        &self,
        error: Box<dyn std::error::Error>,
        host: &str,
        role: Role,
    ) -> Box<dyn std::error::Error> {
        let at = |path: &Path| PathBuf::from(format!("{host}:{}", path.display()));
        match error.downcast::<TransferError>().map(|error| *error) {
            // The far end does not reveal its paths; this one was typed here.
            Ok(TransferError::Refused(reason)) if reason.raw() == NO_PARENT => {
                let parent = self.target.parent().unwrap_or(&self.target);
                TransferError::NoParent(at(&self.target), at(parent)).into()
            }
            Ok(TransferError::Refused(reason)) if role == Role::Receiver => {
                format!("{host}:{}: {reason}", self.target.display()).into()
            }
            // The far end reports a missing source.
            Ok(TransferError::Refused(reason)) if reason.raw().contains('*') => {
                format!("{host}: {reason}; {NO_PATTERNS}").into()
            }
            Ok(TransferError::Refused(reason)) => format!("{host}: {reason}").into(),
            Ok(error) => error.into(),
            Err(error) => error,
        }
    }

    pub fn can_be_repeated(&self) -> bool {
        !self.sources.paths.iter().any(|path| path == Path::new("-"))
    }

    pub fn check_sources(&self) -> Result<(), TransferError> {
        self.sources.check()
    }

    fn send_options(&self, retry_for: Duration, tunnelled: bool) -> SendOptions {
        SendOptions {
            sources: self.sources.clone(),
            checksum: self.checksum,
            dry_run: self.dry_run,
            compress: self.compress,
            rate_limit: self.rate_limit,
            sizing: if tunnelled { Some(Sizing::Kernel) } else { self.sizing },
            congestion: self.congestion.clone().filter(|_| !tunnelled),
            streams: if tunnelled { Some(1) } else { self.streams },
            probes: !tunnelled,
            retry_for,
            ..SendOptions::default()
        }
    }

    fn receive_options(&self, retry_for: Duration, tunnelled: bool) -> ReceiveOptions {
        ReceiveOptions {
            requested: self.requested.clone(),
            overwrite: !self.keep_existing,
            leave_existing: self.keep_existing,
            attributes: self.sources.attributes,
            owners: self.sources.owners,
            delete: self.delete.clone(),
            dotfiles: true,
            other_kinds: true,
            outward_links: true,
            sizing: if tunnelled { Some(Sizing::Kernel) } else { self.sizing },
            streams: if tunnelled { Some(1) } else { self.streams },
            retry_for,
            ..ReceiveOptions::at(Target::At(self.target.clone()))
        }
    }

    /// The purpose of this end while it listens.
    pub fn purpose(&self, far_role: Role, retry_for: Duration) -> Result<Purpose, TransferError> {
        Ok(match far_role {
            Role::Receiver => Purpose::Send(Box::new(self.send_options(retry_for, false))),
            Role::Sender => Purpose::Receive(self.receive_options(retry_for, false)),
        })
    }

    /// Moves everything over a connection to `contact`; `far_role` is the role of its peer.
    pub fn move_over(
        &self,
        contact: &Contact,
        far_role: Role,
        retry_for: Duration,
        tunnelled: bool,
        reporter: &TransferReporter,
    ) -> Result<TransferSummary, TransferError> {
        let mut observer = reporter.observer(1);
        match far_role {
            Role::Receiver => {
                send(contact, &self.send_options(retry_for, tunnelled), observer.as_mut())
            }
            Role::Sender => {
                receive(contact, &self.receive_options(retry_for, tunnelled), observer.as_mut())
            }
        }
    }

    pub fn request(&self, role: Role, arguments: &CopyArguments) -> Request {
        let sends = role == Role::Sender;
        let sources = self.sources.paths.iter().filter(|_| sends);
        let only = self.sources.only.as_ref().filter(|_| sends);
        Request {
            version: VERSION,
            role,
            sources: sources.map(|path| PathText::from(path.as_path())).collect(),
            only: only.map(|only| only.iter().map(|path| PathText::from(path.as_path())).collect()),
            target: (!sends).then(|| PathText::from(self.target.as_path())),
            exclude: self.sources.exclude.clone(),
            attributes: self.sources.attributes,
            owners: self.sources.owners,
            delete: self
                .delete
                .as_ref()
                .filter(|_| !sends)
                .map(|delete| Deletion { contents: delete.contents }),
            compress: self.compress,
            rate_limit_bps: self.rate_limit.filter(|_| sends).map(Rate::bits_per_second),
            checksum: self.checksum,
            keep_existing: self.keep_existing,
            dry_run: self.dry_run,
            sizing: self.sizing.map(|sizing| sizing.to_string()),
            congestion: self.congestion.clone(),
            streams: self.streams,
            port: arguments.port,
            retry_for_s: arguments.connections.retry_for.min(FAR_RETRY).as_nanos() / 1_000_000_000,
        }
    }

    /// Copies between two threads on this host.
    pub fn copy_here(&self, reporter: &TransferReporter) -> Copied {
        let options = ServeOptions {
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            ends: EndsAfter::First,
            lifetime: Duration::from_secs(60),
            ..ServeOptions::new(self.purpose(Role::Sender, Duration::ZERO)?)
        };
        let server = Server::bind(options)?;
        thread::scope(|scope| {
            let served = scope.spawn(|| server.run(&Unwatched));
            let ticket = server.ticket();
            let contact = ticket.clone().into();
            let moved = self.move_over(&contact, Role::Receiver, Duration::ZERO, false, reporter);
            let is_refused = moved.as_ref().is_err_and(TransferError::is_refusal);
            // Both ends are here, and the receiver's own error names the file and the reason. It may come slightly
            // later.
            let deadline = clock::now() + OWN_WORDS_TIMEOUT;
            while is_refused && !served.is_finished() && clock::now() < deadline {
                clock::sleep_until(clock::now() + Duration::from_millis(2));
            }
            server.stop();
            match (moved, served.join()) {
                (Err(_), Ok(Err(own)))
                    if is_refused && !matches!(own, TransferError::Interrupted) =>
                {
                    Err(own.into())
                }
                (moved, _) => Ok(moved?),
            }
        })
    }
}

/// A server observer that does nothing.
pub struct Unwatched;

impl ServerObserver for Unwatched {
    fn admitted(&self, _transfer: AdmittedTransfer<'_>) -> Box<dyn TransferObserver> {
        Box::new(sweetspot_transfer::NullObserver)
    }

    fn ended(&self, _number: u64, _result: &Result<TransferSummary, TransferError>) {}

    fn rejected(&self, _peer: SocketAddr, _client: Option<&str>, _error: &TransferError) {}
}
