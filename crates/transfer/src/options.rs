//! The options of senders, receivers and servers.

use std::net::{Ipv6Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;

use sweetspot_protocol::{DEFAULT_PORT, SpokenCode, TicketHost};
use sweetspot_sizing::{KnownPath, Sizing};
use sweetspot_units::{Bytes, Duration, Rate};

use crate::files::incoming::{Asked, Delete};
use crate::files::source::Sources;
use crate::files::target::Target;
use crate::limits::MAX_EARLY_CONTENT;
use crate::wire::identity::Identity;
use crate::wire::pace::ApplicationPace;

/// The options of [`send`](crate::send).
#[derive(Debug, Clone)]
pub struct SendOptions {
    /// The files to send.
    pub sources: Sources,
    /// Whether to compare the contents of files with the same length and time at the receiver.
    pub checksum: bool,
    /// Whether this is a dry run.
    pub dry_run: bool,
    /// The sizing to ask the receiver for; `None`: the receiver's choice.
    pub sizing: Option<Sizing>,
    /// The sender's congestion control; `None`: the host's default.
    pub congestion: Option<String>,
    /// Whether the receiver's sizing may switch to another congestion control although one was chosen.
    pub may_switch: bool,
    /// The path's rate and round trip, if known.
    pub path: Option<KnownPath>,
    /// Whether to answer probes.
    pub probes: bool,
    /// How many connections to use; `None`: as many as pay.
    pub streams: Option<u32>,
    /// Whether several connections may take more than one flow's fair share.
    pub greedy: bool,
    /// A fixed send buffer (`SO_SNDBUF`); `None`: the kernel's autotuning, raised where it is too small.
    pub send_buffer: Option<Bytes>,
    /// Whether to compress pieces where that makes the transfer faster.
    pub compress: bool,
    /// The most that all connections together may carry; `None`: as much as the path takes.
    pub rate_limit: Option<Rate>,
    /// A pace at which to write; `None`: as fast as the connection takes it.
    pub writer: Option<Arc<dyn ApplicationPace>>,
    /// How long to try to go on after the path broke.
    pub retry_for: Duration,
}

impl Default for SendOptions {
    fn default() -> SendOptions {
        SendOptions {
            sources: Sources::default(),
            checksum: false,
            dry_run: false,
            sizing: None,
            congestion: None,
            may_switch: false,
            path: None,
            probes: true,
            streams: None,
            greedy: false,
            send_buffer: None,
            compress: false,
            rate_limit: None,
            writer: None,
            retry_for: Duration::from_secs(15 * 60),
        }
    }
}

/// The options of [`receive`](crate::receive).
#[derive(Debug, Clone)]
pub struct ReceiveOptions {
    /// Where to put the files.
    pub target: Target,
    /// The request: everything else is refused.
    pub asked: Asked,
    /// Whether to replace existing files.
    pub overwrite: bool,
    /// Whether existing files that may not be replaced count as unchanged, whatever they hold.
    pub leave_existing: bool,
    /// Whether to take extended attributes (`user.*`).
    pub attributes: bool,
    /// Whether to take owners and groups, which takes root.
    pub owners: bool,
    /// The deletion at the end; `None`: none.
    pub delete: Option<Delete>,
    /// Whether names that begin with a dot may come into directories that no transfer made.
    pub dotfiles: bool,
    /// With `overwrite`, whether to replace something of another kind, too: a file by a directory, an empty directory by a file.
    pub other_kinds: bool,
    /// Whether symbolic links may lead out of the directory.
    pub outward_links: bool,
    /// The sizing to use; `None`: the sender's request.
    pub sizing: Option<Sizing>,
    /// The congestion control that the sender must use; `None`: its own choice.
    pub congestion: Option<String>,
    /// The path's rate and round trip, if known.
    pub path: Option<KnownPath>,
    /// Whether to probe the path while receiving. Only a receiver that listens can.
    pub probes: bool,
    /// How many connections to use; `None`: as many as pay.
    pub streams: Option<u32>,
    /// A pace at which to read; `None`: as fast as things arrive.
    pub reader: Option<Arc<dyn ApplicationPace>>,
    /// How long to try to go on after the path broke.
    pub retry_for: Duration,
}

impl ReceiveOptions {
    /// Receiving at `target` whatever comes, trusting the sender with nothing else.
    pub fn at(target: Target) -> ReceiveOptions {
        ReceiveOptions {
            target,
            asked: Asked::Anything,
            overwrite: false,
            leave_existing: false,
            attributes: false,
            owners: false,
            delete: None,
            dotfiles: false,
            other_kinds: false,
            outward_links: false,
            sizing: None,
            congestion: None,
            path: None,
            probes: true,
            streams: None,
            reader: None,
            retry_for: Duration::from_secs(15 * 60),
        }
    }

    /// The bytes of content accepted before the answer: none if nothing is to be moved.
    pub(crate) fn early_bytes(&self) -> u32 {
        if self.asked.is_dry_run() { 0 } else { MAX_EARLY_CONTENT }
    }
}

/// The options of a [`Server`](crate::Server).
#[derive(Debug)]
pub struct ServeOptions {
    /// The service for connecting peers.
    pub purpose: Purpose,
    /// The address on which to listen, TCP and UDP.
    pub listen: SocketAddr,
    /// The host and port that the ticket names, if they differ from `listen`.
    pub advertise: Option<(TicketHost, Option<u16>)>,
    /// When to stop.
    pub ends: EndsAfter,
    /// How long the ticket is valid.
    pub lifetime: Duration,
    /// This server's identity; `None` generates one at each start.
    pub identity: Option<Identity>,
    /// The code that peers received in place of a ticket.
    pub code: Option<SpokenCode>,
    /// A listener that is open already, in place of `listen`: systemd's, as a rule.
    pub listener: Option<TcpListener>,
}

impl ServeOptions {
    /// Serves the ticket's holder for a day, on any address and the usual port.
    pub fn new(purpose: Purpose) -> ServeOptions {
        ServeOptions {
            purpose,
            listen: (Ipv6Addr::UNSPECIFIED, DEFAULT_PORT).into(),
            advertise: None,
            ends: EndsAfter::Never,
            lifetime: Duration::from_secs(24 * 3600),
            identity: None,
            code: None,
            listener: None,
        }
    }
}

/// When a server stops by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EndsAfter {
    /// Never.
    #[default]
    Never,
    /// After one admitted transfer, however it ends.
    First,
    /// As after the first, but the ticket can be used again after a try that does not count: a dry run; a transfer that the peer
    /// refuses, or in which it fails; one that this end refuses before it has written anything; for an end that sends, also one
    /// in which some files were refused.
    FirstNotRefused,
}

/// A service for clients that a file lists ([`sweetspot_protocol::clients`]).
#[derive(Debug, Clone)]
pub struct ServiceOptions {
    /// The file.
    pub clients: PathBuf,
    /// The file of used quotas and credentials.
    pub uses: PathBuf,
    /// How to receive; the client's line gives the target and the right to overwrite.
    pub receive: ReceiveOptions,
    /// How to send; the client's line gives the files.
    pub send: SendOptions,
}

/// The service for connecting peers.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "a server has one, and most receive")]
pub enum Purpose {
    /// It receives the clients' files.
    Receive(ReceiveOptions),
    /// It sends this to them.
    Send(Box<SendOptions>),
    /// Each client has the rights of its line in a file.
    Clients(Box<ServiceOptions>),
}
