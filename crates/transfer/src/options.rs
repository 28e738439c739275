//! The options of senders, receivers and servers.

use std::net::{Ipv6Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;

use sweetspot_protocol::{DEFAULT_PORT, SpokenCode, TicketHost};
use sweetspot_sizing::{KnownPath, Sizing};
use sweetspot_units::{Bytes, Duration, Rate};

use crate::files::incoming::{Delete, RequestedSources};
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
    /// The sizing to ask for; `None`: the receiver's choice.
    pub sizing: Option<Sizing>,
    /// The sender's congestion control; `None`: the host's default.
    pub congestion: Option<String>,
    /// Whether the receiver's sizing may switch to another congestion control although the user chose one.
    pub may_switch: bool,
    /// The path's rate and RTT, if known.
    pub path: Option<KnownPath>,
    /// Whether to answer probes.
    pub probes: bool,
    /// Number of connections; `None`: as many as increase the rate.
    pub streams: Option<u32>,
    /// Whether several connections may take more than one flow's fair share.
    pub greedy: bool,
    /// A fixed send buffer (`SO_SNDBUF`); `None`: the kernel's autotuning, enlarged if it is too small.
    pub send_buffer: Option<Bytes>,
    /// Whether to compress pieces if that makes the transfer faster.
    pub compress: bool,
    /// Maximum rate of all connections together; `None`: unlimited.
    pub rate_limit: Option<Rate>,
    /// The pace of a slow writer; `None`: as fast as the connection allows.
    pub writer: Option<Arc<dyn ApplicationPace>>,
    /// How long to try to reconnect after the path breaks.
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
    /// The requested sources: everything else is rejected.
    pub requested: RequestedSources,
    /// Whether to replace existing files.
    pub overwrite: bool,
    /// Whether existing files that must not be replaced count as unchanged, whatever their content.
    pub leave_existing: bool,
    /// Whether to accept extended attributes (`user.*`).
    pub attributes: bool,
    /// Whether to accept owners and groups, which requires root.
    pub owners: bool,
    /// Deletion at the end of the transfer, if wanted.
    pub delete: Option<Delete>,
    /// Whether names that begin with a dot are allowed in directories that no transfer created.
    pub dotfiles: bool,
    /// With `overwrite`, whether an entry may also replace one of another kind: a directory a file, or a file an empty
    /// directory.
    pub other_kinds: bool,
    /// Whether symbolic links may lead out of the directory.
    pub outward_links: bool,
    /// The sizing to use; `None`: as the sender asks.
    pub sizing: Option<Sizing>,
    /// The congestion control that the sender must use; `None`: the sender's choice.
    pub congestion: Option<String>,
    /// The path's rate and RTT, if known.
    pub path: Option<KnownPath>,
    /// Whether to probe the path during the transfer. Only a receiver that listens can.
    pub probes: bool,
    /// Number of connections; `None`: as many as increase the rate.
    pub streams: Option<u32>,
    /// The pace of a slow reader; `None`: as fast as data arrives.
    pub reader: Option<Arc<dyn ApplicationPace>>,
    /// How long to try to reconnect after the path breaks.
    pub retry_for: Duration,
}

impl ReceiveOptions {
    /// Options to receive any sources at `target`, with every other permission for the sender off.
    pub fn at(target: Target) -> ReceiveOptions {
        ReceiveOptions {
            target,
            requested: RequestedSources::Anything,
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

    /// Bytes of content accepted before the answer: none in a dry run.
    pub(crate) fn early_bytes(&self) -> u32 {
        if self.requested.is_dry_run() { 0 } else { MAX_EARLY_CONTENT }
    }
}

/// The options of a [`Server`](crate::Server).
#[derive(Debug)]
pub struct ServeOptions {
    /// The service for connecting peers.
    pub purpose: Purpose,
    /// The address to listen on, for TCP and UDP.
    pub listen: SocketAddr,
    /// The host and port that the ticket names, if they differ from `listen`.
    pub advertise: Option<(TicketHost, Option<u16>)>,
    /// When to stop.
    pub ends: EndsAfter,
    /// How long the ticket is valid.
    pub lifetime: Duration,
    /// This server's identity; `None` generates one at each start.
    pub identity: Option<Identity>,
    /// The code that peers have instead of a ticket.
    pub code: Option<SpokenCode>,
    /// A listener that is already open, used instead of `listen`. Usually systemd provides it.
    pub listener: Option<TcpListener>,
}

impl ServeOptions {
    /// Options to serve the ticket's holder for a day, on all addresses and the default port.
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
    /// After one admitted transfer, whatever its result.
    First,
    /// After one transfer, but attempts that do not count leave the ticket valid: a dry run; a transfer that the peer rejects,
    /// or in which the peer fails; one that this end rejects before it has written anything; for a sending end, also one in
    /// which some files were rejected.
    FirstNotRefused,
}

/// A service for clients listed in a file ([`sweetspot_protocol::clients`]).
#[derive(Debug, Clone)]
pub struct ServiceOptions {
    /// The clients file.
    pub clients: PathBuf,
    /// The file with the usage of credentials.
    pub uses: PathBuf,
    /// How to receive. The client's line sets the target and the right to overwrite.
    pub receive: ReceiveOptions,
    /// How to send. The client's line sets the files.
    pub send: SendOptions,
}

/// The service for connecting peers.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "a server has one, and most receive")]
pub enum Purpose {
    /// The server receives the clients' files.
    Receive(ReceiveOptions),
    /// The server sends these files to its clients.
    Send(Box<SendOptions>),
    /// Each client has the rights in its line of the clients file.
    Clients(Box<ServiceOptions>),
}
