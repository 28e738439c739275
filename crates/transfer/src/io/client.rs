//! The end that connects: it may send or receive, and goes on by itself when the path breaks.

use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use data_encoding::HEXLOWER;
use sweetspot_linux::clock;
use sweetspot_protocol::{Role, Ticket, TransferSummary};
use sweetspot_sizing::{KnownPath, Sizing};
use sweetspot_units::{Bytes, Duration, Time};

use super::channel::lock;
use super::identity::random_bytes;
use super::incoming::Asked;
use super::link::{self, Contact, FurtherLinks, Link, Reached};
use super::pace::ApplicationPace;
use super::receive::{self, ReceiveConfig, Target};
use super::send::{self, SendConfig};
use super::source::Sources;
use crate::TransferError;
use crate::limits::MAX_EARLY_CONTENT;
use crate::observer::TransferObserver;

/// The pause before the first new attempt after the path broke; it doubles with each.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// The longest pause between attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// The options of [`send`].
#[derive(Debug, Clone)]
pub struct SendOptions {
    /// What to send.
    pub sources: Sources,
    /// Whether to compare the contents of files whose length and time are the same at the receiver.
    pub checksum: bool,
    /// Whether only to find out what would be moved.
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
            writer: None,
            retry_for: Duration::from_secs(15 * 60),
        }
    }
}

/// The options of [`receive`].
#[derive(Debug, Clone)]
pub struct ReceiveOptions {
    /// Where to put what comes.
    pub target: Target,
    /// What was asked for: everything else is refused.
    pub asked: Asked,
    /// Whether to replace existing files.
    pub overwrite: bool,
    /// Whether to take extended attributes (`user.*`).
    pub attributes: bool,
    /// Whether names that begin with a dot may come into directories that no transfer made.
    pub dotfiles: bool,
    /// Whether symbolic links may lead out of the directory.
    pub outward_links: bool,
    /// The sizing to use; `None`: what the sender asks for.
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
            attributes: false,
            dotfiles: false,
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

    /// Content that is taken before it is answered for, bytes: none where nothing is to be moved.
    fn early_bytes(&self) -> u32 {
        if self.asked.is_dry_run() { 0 } else { MAX_EARLY_CONTENT }
    }
}

/// Sends to the receiver at the other end of `contact`, and waits until it has verified everything. When the path breaks it
/// connects again and goes on with what is missing.
pub fn send(
    contact: &Contact,
    options: &SendOptions,
    observer: &mut dyn TransferObserver,
) -> Result<TransferSummary, TransferError> {
    let config = SendConfig::new(options.clone())?;
    let congestion = options.congestion.as_deref();
    let client = Client::new(contact, Role::Sender, 0, congestion)?;
    let patience = if config.list.can_be_repeated() { options.retry_for } else { Duration::ZERO };
    client.run(patience, observer, |link, further, start, reconnects, observer| {
        send::send(&config, link, further, start, reconnects, observer)
    })
}

/// Receives from the sender at the other end of `contact`. When the path breaks it connects again and goes on with what is
/// missing.
pub fn receive(
    contact: &Contact,
    options: &ReceiveOptions,
    observer: &mut dyn TransferObserver,
) -> Result<TransferSummary, TransferError> {
    let client = Client::new(contact, Role::Receiver, options.early_bytes(), None)?;
    let repeatable = options.target != Target::Output;
    let patience = if repeatable { options.retry_for } else { Duration::ZERO };
    thread::scope(|scope| {
        // While the connection is made.
        let prepare = || ReceiveConfig::new(options.clone());
        let started = thread::Builder::new().name("prepare".into()).spawn_scoped(scope, prepare);
        let mut preparing = Some(started.map_err(TransferError::system("starting a thread"))?);
        let mut config = None;
        client.run(patience, observer, |link, further, start, reconnects, observer| {
            if let Some(preparing) = preparing.take() {
                config = Some(preparing.join().unwrap_or(Err(TransferError::Interrupted))?);
            }
            let config = config.as_ref().ok_or(TransferError::Interrupted)?;
            let mut summary = receive::receive(config, None, link, further, start, observer)?;
            summary.reconnects = reconnects;
            Ok(summary)
        })
    })
}

/// The first of `tickets` at whose address its own listener answers, all tried at once for `patience`. The connection over
/// which it answered is used first.
pub fn first_reachable(tickets: &[Ticket], patience: Duration) -> Option<Contact> {
    let (answers, first) = mpsc::channel();
    let deadline = clock::now() + patience;
    for ticket in tickets {
        let (ticket, answers) = (ticket.clone(), answers.clone());
        let reach = move || {
            if let Some(channel) = link::reach(&ticket, deadline) {
                let _ = answers.send(Contact::Reached(ticket.into(), Reached::new(channel)));
            }
        };
        // One that cannot be tried does not answer.
        let _ = thread::Builder::new().name("reach".into()).spawn(reach);
    }
    drop(answers);
    first.recv_timeout(patience.into()).ok()
}

struct Client<'a> {
    /// Changes where a code is used up by the first connection.
    contact: Mutex<Contact>,
    role: Role,
    /// Content that a receiver takes on its first connection before it has answered. On a later one it goes on with what it
    /// has.
    early_bytes: u32,
    congestion: Option<&'a str>,
    transfer: String,
}

type Attempt<'a> = dyn FnMut(
        Link,
        &FurtherLinks<'_>,
        Time,
        u32,
        &mut dyn TransferObserver,
    ) -> Result<TransferSummary, TransferError>
    + 'a;

impl<'a> Client<'a> {
    fn new(
        contact: &Contact,
        role: Role,
        early_bytes: u32,
        congestion: Option<&'a str>,
    ) -> Result<Client<'a>, TransferError> {
        let contact = Mutex::new(contact.clone());
        Ok(Client { contact, role, early_bytes, congestion, transfer: transfer_id()? })
    }

    /// Runs `attempt` over a connection, and again over new ones while the path is what fails, for as long as
    /// `patience` after each connection that was made.
    fn run(
        &self,
        patience: Duration,
        observer: &mut dyn TransferObserver,
        mut attempt: impl FnMut(
            Link,
            &FurtherLinks<'_>,
            Time,
            u32,
            &mut dyn TransferObserver,
        ) -> Result<TransferSummary, TransferError>,
    ) -> Result<TransferSummary, TransferError> {
        let attempt: &mut Attempt<'_> = &mut attempt;
        let first = clock::now();
        let mut link = self.first_link()?;
        let mut reconnects = 0;
        loop {
            let error = match self.over_link(link, reconnects, first, observer, attempt) {
                Err(error) if error.is_of_the_path() => error,
                ended => return ended,
            };
            let give_up = clock::now() + patience;
            let mut pause = FIRST_PAUSE;
            link = loop {
                if clock::now() + pause >= give_up {
                    return Err(error);
                }
                observer.note(&format!("{error}; trying again in {pause}"));
                observer.interrupted(&error, pause);
                clock::sleep_until(clock::now() + pause);
                match self.dial(false, 0) {
                    Ok(link) => break link,
                    Err(error) if error.is_of_the_path() => {}
                    Err(error) => return Err(error),
                }
                pause = (pause * 2).min(LONGEST_PAUSE);
            };
            reconnects += 1;
        }
    }

    fn over_link(
        &self,
        link: Link,
        reconnects: u32,
        start: Time,
        observer: &mut dyn TransferObserver,
        attempt: &mut Attempt<'_>,
    ) -> Result<TransferSummary, TransferError> {
        let dial = || self.dial(true, 0);
        // Nothing arrives at the end that connects.
        let (_arrivals, arriving) = crossbeam_channel::bounded(1);
        let further = FurtherLinks { arriving, dial: Some(&dial) };
        attempt(link, &further, start, reconnects, observer)
    }

    /// The first connection. A server that is crowded drops who waits longest; an honest peer tries again.
    fn first_link(&self) -> Result<Link, TransferError> {
        const ATTEMPTS: u64 = 4;
        let mut attempt = 1;
        loop {
            match self.dial(false, self.early_bytes) {
                Err(TransferError::Tls { .. } | TransferError::PeerGone { .. })
                    if attempt < ATTEMPTS =>
                {
                    attempt += 1;
                    clock::sleep_until(clock::now() + Duration::from_millis(200) * attempt);
                }
                other => return other,
            }
        }
    }

    fn dial(&self, joins: bool, early_bytes: u32) -> Result<Link, TransferError> {
        let (contact, role) = (lock(&self.contact).clone(), self.role);
        let (link, further) =
            contact.dial(role, &self.transfer, joins, early_bytes, self.congestion)?;
        if let Some(ticket) = further {
            *lock(&self.contact) = ticket.into();
        }
        Ok(link)
    }
}

/// A new name for a transfer.
fn transfer_id() -> Result<String, TransferError> {
    let id: [u8; 16] = random_bytes("drawing a number")?;
    Ok(HEXLOWER.encode(&id))
}
