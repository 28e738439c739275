//! The end that connects: it may send or receive, and reconnects when the path breaks.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use data_encoding::HEXLOWER;
use sweetspot_control::TransferSummary;
use sweetspot_control::series::SeriesRecord;
use sweetspot_linux::clock;
use sweetspot_protocol::{Role, Ticket};
use sweetspot_units::{Bytes, Duration, Time};

use crate::ends::receive;
use crate::ends::receive_config::ReceiveConfig;
use crate::ends::send::{self, SendConfig};
use crate::files::target::Target;
use crate::lock::lock;
use crate::observer::{Agreed, FileLog, Progress, TransferObserver};
use crate::options::{ReceiveOptions, SendOptions};
use crate::wire::identity::random_bytes;
use crate::wire::link::{self, Contact, FurtherLinks, Link, Reached};
use crate::{Result, TransferError};

/// The pause before the first new attempt after the path broke; it doubles with each.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);
/// Refused connections in a row by which a listener has ended. A firewall that starts anew may refuse one.
const REFUSALS: u32 = 2;

/// Sends to the receiver at the other end of `contact`, and waits until it has verified everything. When the path breaks it
/// connects again and sends the missing parts.
pub fn send(
    contact: &Contact,
    options: &SendOptions,
    observer: &mut dyn TransferObserver,
) -> Result<TransferSummary> {
    let config = SendConfig::new(options.clone())?;
    let congestion = options.congestion.as_deref();
    let client = Client::new(contact, Role::Sender, 0, congestion)?;
    let patience = if config.list.can_be_repeated() { options.retry_for } else { Duration::ZERO };
    client.run(patience, observer, &mut |link, further, start, reconnects, observer| {
        send::send(&config, link, further, start, reconnects, observer)
    })
}

/// Receives from the sender at the other end of `contact`. When the path breaks it connects again and receives the missing
/// parts.
pub fn receive(
    contact: &Contact,
    options: &ReceiveOptions,
    observer: &mut dyn TransferObserver,
) -> Result<TransferSummary> {
    let client = Client::new(contact, Role::Receiver, options.early_bytes(), None)?;
    let repeatable = options.target != Target::Output;
    let patience = if repeatable { options.retry_for } else { Duration::ZERO };
    thread::scope(|scope| {
        // While the connection is made.
        let prepare = || ReceiveConfig::new(options.clone());
        let started = thread::Builder::new().name("prepare".into()).spawn_scoped(scope, prepare);
        let mut preparing = Some(started.map_err(TransferError::system("starting a thread"))?);
        let mut config = None;
        client.run(patience, observer, &mut |link, further, start, reconnects, observer| {
            if let Some(preparing) = preparing.take() {
                config = Some(preparing.join().unwrap_or(Err(TransferError::Interrupted))?);
            }
            let config = config.as_ref().ok_or(TransferError::Interrupted)?;
            let ended = receive::receive(config, None, link, further, start, None, observer);
            ended.result.map(|summary| TransferSummary { reconnects, ..summary })
        })
    })
}

/// The first of `tickets` with a listener that answers at its address; all are tried at once, for `patience`. The connection that
/// answered is used first.
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
    /// Content that a receiver accepts on its first connection before it has answered. On a later one it continues from its
    /// files.
    early_bytes: u32,
    congestion: Option<&'a str>,
    transfer: String,
    /// Whether the listener's key ends with its program, by its last welcome.
    ends_with_program: AtomicBool,
}

type Attempt<'a> = dyn FnMut(Link, &FurtherLinks<'_>, Time, u32, &mut dyn TransferObserver) -> Result<TransferSummary>
    + 'a;

impl<'a> Client<'a> {
    fn new(
        contact: &Contact,
        role: Role,
        early_bytes: u32,
        congestion: Option<&'a str>,
    ) -> Result<Client<'a>> {
        let contact = Mutex::new(contact.clone());
        let (transfer, ends_with_program) = (transfer_id()?, AtomicBool::new(false));
        Ok(Client { contact, role, early_bytes, congestion, transfer, ends_with_program })
    }

    /// Runs `attempt` over a connection, and again over new ones while the path fails, for `patience` after the peer's last data
    /// on each.
    fn run(
        &self,
        patience: Duration,
        observer: &mut dyn TransferObserver,
        attempt: &mut Attempt<'_>,
    ) -> Result<TransferSummary> {
        let first = clock::now();
        let mut link = self.first_link()?;
        let (mut reconnects, mut earlier) = (0, Bytes::ZERO);
        loop {
            let channel = Arc::clone(&link.channel);
            let mut counting = Counting { observer, moved: Bytes::ZERO };
            let ended = self.over_link(link, reconnects, first, &mut counting, attempt);
            let moved = counting.moved;
            let error = match ended {
                Err(error) if error.is_of_the_path() => error,
                Ok(last) if reconnects > 0 => {
                    return Ok(last.after(earlier, clock::now().since(first)));
                }
                ended => return ended,
            };
            earlier += moved;
            let lost = channel.last_received();
            observer.lost(lost);
            link = self.next_link(error, lost + patience, observer)?;
            reconnects += 1;
        }
    }

    /// A connection after one that broke by `error`, unless none can be made until `give_up`.
    fn next_link(
        &self,
        error: TransferError,
        give_up: Time,
        observer: &mut dyn TransferObserver,
    ) -> Result<Link> {
        let (mut pause, mut refusals) = (FIRST_PAUSE, 0);
        // Why the last attempt failed, if there was one.
        let mut latest = None;
        while clock::now() + pause < give_up {
            let cause = latest.as_ref().unwrap_or(&error);
            observer.interrupted(cause, pause);
            clock::sleep_until(clock::now() + pause);
            match self.dial(false, 0) {
                Err(TransferError::Unreachable { address, source })
                    if source.kind() == io::ErrorKind::ConnectionRefused =>
                {
                    refusals += 1;
                    if refusals >= REFUSALS && self.ends_with_program.load(Ordering::Relaxed) {
                        return Err(TransferError::Gone(address));
                    }
                    latest = Some(TransferError::Unreachable { address, source });
                }
                Err(error) if error.is_of_the_path() => {
                    refusals = 0;
                    latest = Some(error);
                }
                ended => return ended,
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        Err(error)
    }

    fn over_link(
        &self,
        link: Link,
        reconnects: u32,
        start: Time,
        observer: &mut dyn TransferObserver,
        attempt: &mut Attempt<'_>,
    ) -> Result<TransferSummary> {
        let dial = || self.dial(true, 0);
        // Nothing arrives at the end that connects.
        let (_arrivals, arriving) = crossbeam_channel::bounded(1);
        let further = FurtherLinks { arriving, dial: Some(&dial) };
        attempt(link, &further, start, reconnects, observer)
    }

    /// The first connection. A crowded server drops the client that has waited longest; an honest peer tries again.
    fn first_link(&self) -> Result<Link> {
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

    fn dial(&self, joins: bool, early_bytes: u32) -> Result<Link> {
        let (contact, role) = (lock(&self.contact).clone(), self.role);
        let greeted = contact.dial(role, &self.transfer, joins, early_bytes, self.congestion)?;
        self.ends_with_program.store(greeted.ends_with_program, Ordering::Relaxed);
        if let Some(ticket) = greeted.further {
            *lock(&self.contact) = ticket.into();
        }
        Ok(greeted.link)
    }
}

/// Counts the content that one connection moves, for an observer.
struct Counting<'a> {
    observer: &'a mut dyn TransferObserver,
    moved: Bytes,
}

impl TransferObserver for Counting<'_> {
    fn opened(&mut self, opened: &Agreed) {
        self.observer.opened(opened);
    }

    fn line(&mut self, line: &SeriesRecord) {
        if let SeriesRecord::Row(row) = line {
            self.moved = Bytes::new(row.bytes);
        }
        self.observer.line(line);
    }

    fn progress(&mut self, progress: &Progress) {
        self.observer.progress(progress);
    }

    fn lost(&mut self, since: Time) {
        self.observer.lost(since);
    }

    fn interrupted(&mut self, error: &TransferError, pause: Duration) {
        self.observer.interrupted(error, pause);
    }

    fn file_log(&self) -> Option<Arc<dyn FileLog>> {
        self.observer.file_log()
    }

    fn note(&mut self, note: &str) {
        self.observer.note(note);
    }
}

/// A new name for a transfer.
fn transfer_id() -> Result<String> {
    let id: [u8; 16] = random_bytes("drawing a number")?;
    Ok(HEXLOWER.encode(&id))
}
