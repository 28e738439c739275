//! The server, which admits peers and runs many transfers at once.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use sweetspot_control::TransferSummary;
use sweetspot_linux::event_fd::{EventFd, wait_readable};
use sweetspot_linux::tcp::ClampMethod;
use sweetspot_linux::{clock, process};
use sweetspot_protocol::clients::{Client, Credential, Rights};
use sweetspot_protocol::{Hello, Message, Role, Ticket, TicketHost, TicketProof};
use sweetspot_units::{Duration, Time};

use crate::control::udp_demux::UdpDemux;
use crate::ends::admission::{Admission, Admitted};
use crate::ends::claim::settle;
use crate::ends::client_table::{ClientTable, at, name_of};
use crate::ends::connection_table::ConnectionTable;
use crate::ends::expiry::Expiry;
use crate::ends::measure;
use crate::ends::once::OnceState;
use crate::ends::ports::{bind_both, reachable};
use crate::ends::session_table::{Refusal, SessionTable};
use crate::ends::turn;
use crate::ends::work::{Ended, Impossible, Task, Work};
use crate::ends::{receive, send};
use crate::limits::{Capacity, PARTING_TIMEOUT};
use crate::lock::lock;
use crate::observer::{AdmittedTransfer, ServerObserver};
use crate::options::{EndsAfter, Purpose, ServeOptions};
use crate::wire::channel::canonical;
use crate::wire::identity::{ClientAuth, Identity, draw_secret};
use crate::wire::link::{FurtherLinks, Link};
use crate::{Result, TransferError};

const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Interval between checks for clients removed from the clients file.
const CLIENTS_INTERVAL: Duration = Duration::from_secs(1);

/// A listener for transfers.
pub struct Server {
    listener: TcpListener,
    udp_demux: UdpDemux,
    connection_table: ConnectionTable,
    sessions: SessionTable,
    measure_accounts: measure::MeasureAccounts,
    admission: Admission,
    work: Work,
    ticket: Ticket,
    ends: EndsAfter,
    retry_for: Duration,
    /// The expiry of the only ticket or code; `None` for a service, to which clients may be added.
    expiry: Option<Expiry>,
    wake: EventFd,
}

impl Server {
    /// Binds the server's ports, and determines how this kernel's window is limited.
    pub fn bind(options: ServeOptions) -> Result<Server> {
        let (work, role, retry_for) = Work::prepare(&options.purpose)?;
        let address = options.listen.to_string();
        let cannot = |source| TransferError::Listen { address: address.clone(), source };
        let (listener, udp_demux) = match options.listener {
            Some(listener) => {
                let udp = listener.local_addr().and_then(UdpDemux::new);
                udp.map(|udp| (listener, udp))
            }
            None => bind_both(options.listen),
        }
        .map_err(cannot)?;
        listener.set_nonblocking(true).map_err(cannot)?;
        let bound = listener.local_addr().map_err(cannot)?;
        let ends_with_program = options.identity.is_none();
        let identity = options.identity.map_or_else(Identity::fresh, Ok)?;
        let expires = Ticket::expiry(clock::wall(), options.lifetime);
        let (host, port) = match options.advertise {
            Some((host, port)) => (host, port.unwrap_or(bound.port())),
            None => (TicketHost::Address(reachable(bound.ip())), bound.port()),
        };
        let (clients, proof, ask) = match &options.purpose {
            Purpose::Clients(service) => {
                let clients = ClientTable::of_file(&service.clients, service.uses.clone())?;
                (clients, TicketProof::OwnKey, ClientAuth::Certificate)
            }
            Purpose::Receive(_) | Purpose::Send(_) => {
                let secret = draw_secret()?;
                let credential = match &options.code {
                    Some(code) => Credential::Code(code.clone()),
                    None => Credential::Secret(secret.clone()),
                };
                let clients = ClientTable::of_one(holder(credential, expires));
                (clients, TicketProof::Secret { secret, expires }, ClientAuth::Nothing)
            }
        };
        // So that no peer can exhaust this host's descriptors.
        let descriptors = process::raise_descriptor_limit()
            .map_err(TransferError::system("raising the limit on open files"))?;
        let capacity = Capacity::of(descriptors);
        let fingerprint = identity.public_key().0;
        let expiry = match &proof {
            TicketProof::Secret { expires, .. } => {
                Some(Expiry::new(*expires, options.code.is_some()))
            }
            TicketProof::OwnKey => None,
        };
        let ticket = Ticket { host, port, fingerprint, proof };
        Ok(Server {
            listener,
            udp_demux,
            connection_table: ConnectionTable::new(capacity.unauthenticated),
            sessions: SessionTable::new(capacity),
            measure_accounts: measure::MeasureAccounts::default(),
            admission: Admission {
                config: identity.listening(ask)?,
                clients,
                role,
                ends_with_program,
            },
            work,
            ticket,
            ends: options.ends,
            retry_for,
            expiry,
            wake: EventFd::new().map_err(TransferError::system("making an eventfd"))?,
        })
    }

    /// The ticket that peers need.
    pub fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// The address on which the server listens.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// How this kernel's window is limited; `None` if the server sends.
    pub fn clamp_method(&self) -> Option<ClampMethod> {
        match &self.work {
            Work::One(Task::Receive(config)) => Some(config.clamp_method),
            Work::One(Task::Send(_)) => None,
            Work::Clients(work) => Some(work.clamp_method),
        }
    }

    /// Runs the server until [`Server::stop`], and then returns [`TransferError::Interrupted`]. A server of one transfer returns
    /// its result instead. A server with only one ticket or code returns [`TransferError::TicketExpired`] once that has expired
    /// and no transfer runs.
    pub fn run(&self, reception: &dyn ServerObserver) -> Result<TransferSummary> {
        let admitted = AtomicU64::new(0);
        let once = Mutex::new(OnceState::default());
        thread::scope(|scope| {
            scope.spawn(|| self.udp_demux.run());
            if let Work::Clients(_) = &self.work {
                scope.spawn(|| self.watch_clients(reception));
            }
            while !self.connection_table.is_closing() {
                let expiry_due = self.expiry.as_ref().map_or(Time::MAX, Expiry::due);
                let awaited = self.sessions.resumable_until().unwrap_or(Time::MAX);
                let due = lock(&once).due().min(expiry_due).min(awaited);
                let _ = wait_readable(&[self.listener.as_fd(), self.wake.as_fd()], due);
                self.wake.clear();
                if let Some((number, result)) = lock(&once).give_up(clock::now()) {
                    reception.ended(number, result);
                    self.stop();
                }
                self.end_if_expired(&once, reception);
                let (socket, address) = match self.listener.accept() {
                    Ok((socket, address)) => (socket, canonical(address)),
                    Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
                    Err(_) => {
                        // Usually no descriptors are left; some will be free again later.
                        clock::sleep_until(clock::now() + ACCEPT_PAUSE);
                        continue;
                    }
                };
                let start = clock::now();
                let Some(number) = self.connection_table.enter(&socket) else { continue };
                let (admitted, once) = (&admitted, &once);
                let serve = move || {
                    let accepted = (socket, address);
                    self.serve_connection(number, accepted, start, admitted, once, reception);
                    self.connection_table.leave(number);
                    if self.expiry.as_ref().is_some_and(Expiry::has_passed) {
                        self.wake.signal();
                    }
                };
                let builder = thread::Builder::new().name("connection".into());
                if builder.spawn_scoped(scope, serve).is_err() {
                    // Usually no thread could be created. This connection is dropped; later ones may succeed.
                    self.connection_table.leave(number);
                    clock::sleep_until(clock::now() + ACCEPT_PAUSE);
                }
            }
            self.sessions.wait_until_idle(PARTING_TIMEOUT);
            self.connection_table.close();
            self.udp_demux.shut_down();
        });
        match std::mem::take(&mut *lock(&once)) {
            OnceState::Over(result) => *result,
            _ => Err(TransferError::Interrupted),
        }
    }

    /// Closes all connections, and makes [`Server::run`] return.
    pub fn stop(&self) {
        self.connection_table.close();
        self.wake.signal();
    }

    /// Stops the server. If its ticket ends with the program, peers are notified first, within a second, so that they do not try
    /// again. A service's key survives: its clients continue with the next server.
    pub fn close(&self) {
        if !self.admission.ends_with_program {
            return self.stop();
        }
        self.connection_table.begin_closing();
        self.sessions.stop();
        self.wake.signal();
    }

    fn serve_connection(
        &self,
        connection: u64,
        accepted: (TcpStream, SocketAddr),
        start: Time,
        admitted: &AtomicU64,
        once: &Mutex<OnceState>,
        reception: &dyn ServerObserver,
    ) {
        let (address, mut proved) = (accepted.1, None);
        let peer = match self.admission.admit(accepted, &self.sessions, &mut proved) {
            Ok(admitted) => admitted,
            Err(_) if self.connection_table.is_closing() => return,
            Err(error) => {
                let client = proved.as_deref().and_then(name_of);
                reception.rejected(address, client, &error);
                return self.end_if_nobody_can_come(once, reception);
            }
        };
        let Admitted { link, hello, client, .. } = &peer;
        if hello.joins && !hello.measures {
            let Admitted { link, hello, client, .. } = peer;
            if let Err((refusal, link)) = self.sessions.join(hello.transfer.raw(), &client, link) {
                refuse(&link, name_of(&client), refusal, reception);
            }
            return;
        }
        // Until then the peer counts as unauthenticated.
        self.connection_table.authenticated(connection);
        if hello.measures {
            let _running = self.sessions.measure(client, &link.channel);
            let account = self.measure_accounts.of(client.credential.id());
            let Admitted { link, hello, client, stay: _stay } = peer;
            let address = link.channel.peer();
            let result = measure::serve(&self.udp_demux, link, hello.joins, &account);
            // A connection that TCP fills is part of a measurement, which another connection ends.
            if !hello.joins || result.is_err() {
                reception.measured(address, name_of(&client), &result);
            }
            return;
        }
        if self.ends != EndsAfter::Never && !self.take_turn(once, hello.transfer.raw(), connection)
        {
            return refuse(link, name_of(client), Refusal::Taken, reception);
        }
        self.serve_transfer(connection, peer, start, admitted, once, reception);
    }

    /// Whether the server of one transfer accepts this one. Waits briefly, because the previous one may be about to end.
    fn take_turn(&self, once: &Mutex<OnceState>, transfer: &str, connection: u64) -> bool {
        let take = || lock(once).takes(transfer, connection);
        turn::ask(take, |got_turn| !got_turn && !self.connection_table.is_closing())
    }

    /// Runs the transfer of an admitted peer.
    fn serve_transfer(
        &self,
        connection: u64,
        peer: Admitted<'_>,
        start: Time,
        admitted: &AtomicU64,
        once: &Mutex<OnceState>,
        reception: &dyn ServerObserver,
    ) {
        let Admitted { link, hello, client, stay } = peer;
        let claim = stay.as_ref().and_then(|stay| stay.claim.as_ref());
        let peer = link.channel.peer();
        let (links, arriving) = crossbeam_channel::unbounded();
        let number =
            self.sessions.enter(hello.transfer.raw(), &client, links, &link.channel, || {
                admitted.fetch_add(1, Ordering::AcqRel) + 1
            });
        let transfer = AdmittedTransfer { number, peer, client: name_of(&client) };
        let mut observer = reception.admitted(transfer);
        let further = FurtherLinks { arriving, dial: None };
        // The same transfer over an older connection may have succeeded meanwhile.
        let task = self.task(transfer, &hello, &client, reception);
        let moved = match task.and_then(|task| self.still_admits(&client, peer).map(|()| task)) {
            Ok(Task::Receive(config)) => {
                let demux = Some(&self.udp_demux);
                receive::receive(&config, demux, link, &further, start, claim, observer.as_mut())
            }
            Ok(Task::Send(config)) => {
                let result = send::send(&config, link, &further, start, 0, observer.as_mut());
                Ended { result, wrote: true }
            }
            Err(impossible) => {
                link.channel.hang_up(&Message::Refuse { reason: impossible.reason.into() });
                impossible.into()
            }
        };
        let moved = settle(claim, moved);
        drop(stay);
        drop(observer);
        let is_broken = moved.result.as_ref().is_err_and(TransferError::is_of_the_path);
        if is_broken && self.resumes(&moved) {
            let until = clock::now() + self.retry_for;
            self.sessions.mark_broken(hello.transfer.raw(), &client, until);
        }
        self.sessions.leave(hello.transfer.raw(), &client, number);
        // A transfer that ends because the server is closing did not fail by itself.
        let interrupted = moved.result.is_err() && self.connection_table.is_closing();
        let result = if interrupted { Err(TransferError::Interrupted) } else { moved.result };
        let ended = Ended { result, wrote: moved.wrote };
        if self.ends != EndsAfter::Never {
            self.end_of_one(once, connection, number, ended, reception);
        } else {
            reception.ended(number, &ended.result);
        }
    }

    /// The task of a transfer, with the log of its files.
    fn task(
        &self,
        transfer: AdmittedTransfer<'_>,
        hello: &Hello,
        client: &Client,
        reception: &dyn ServerObserver,
    ) -> Result<Task, Impossible> {
        match &self.work {
            Work::One(Task::Receive(config)) => {
                let log = reception.file_log(transfer, Role::Receiver);
                Ok(Task::Receive(config.with_file_log(log)))
            }
            Work::One(task) => Ok(task.clone()),
            Work::Clients(work) => {
                let role = hello.role.other();
                let log = reception.file_log(transfer, role);
                work.task(client, role, log)
            }
        }
    }

    /// Whether `client` still has the rights with which it was admitted.
    fn still_admits(&self, client: &Client, peer: SocketAddr) -> Result<(), Impossible> {
        if self.admission.clients.is_used_up(client) {
            let error = TransferError::UsedUp(at(client, peer));
            let reason = "this one-time ticket or code has already been used";
            return Err(Impossible { error, reason });
        }
        Ok(())
    }

    /// Ends the sessions of clients removed from the file, and reports faults in it.
    fn watch_clients(&self, reception: &dyn ServerObserver) {
        while !self.connection_table.is_closing() {
            let named = self.admission.clients.clients();
            for complaint in self.admission.clients.take_complaints() {
                reception.warned(&complaint);
            }
            self.sessions.sever_unless(|client| named.contains(client));
            clock::sleep_until(clock::now() + CLIENTS_INTERVAL);
        }
    }

    /// Ends a server with one code after a wrong attempt.
    fn end_if_nobody_can_come(&self, once: &Mutex<OnceState>, reception: &dyn ServerObserver) {
        if self.admission.clients.is_over() {
            reception.warned(&TransferError::CodeEnded.to_string());
            lock(once).end(Err(TransferError::CodeEnded));
            self.stop();
        }
    }

    /// Ends the server once its only ticket or code has expired and no transfer runs.
    fn end_if_expired(&self, once: &Mutex<OnceState>, reception: &dyn ServerObserver) {
        let Some(expiry) = self.expiry.as_ref().filter(|expiry| expiry.has_passed()) else {
            return;
        };
        let awaits = self.sessions.resumable_until().is_some();
        if awaits || self.sessions.has_sessions() || self.connection_table.has_authenticated() {
            return expiry.announce(|words| reception.warned(&words));
        }
        let mut state = lock(once);
        // The broken transfer did not resume in time.
        if let Some((number, result)) = state.give_up(Time::MAX) {
            reception.ended(number, result);
        }
        // The last transfer may have ended the server already.
        if !self.connection_table.is_closing() {
            let error = expiry.error();
            reception.warned(&error.to_string());
            state.end(Err(error));
        }
        drop(state);
        self.stop();
    }

    /// Handles the end of the only transfer's connection: the transfer is over, may resume over another connection, or does not
    /// count.
    fn end_of_one(
        &self,
        once: &Mutex<OnceState>,
        connection: u64,
        number: u64,
        ended: Ended,
        reception: &dyn ServerObserver,
    ) {
        let outlives = self.outlives(&ended);
        let resumes = self.resumes(&ended);
        let mut state = lock(once);
        match ended.result {
            Err(error) if state.is_superseded(connection) => reception.interrupted(number, &error),
            Err(error) if error.is_of_the_path() && resumes => {
                reception.interrupted(number, &error);
                state.wait(number, clock::now() + self.retry_for, error);
                drop(state);
                self.wake.signal();
            }
            result if outlives => {
                match &result {
                    Err(error) => reception.refused(number, error),
                    result => reception.tried(number, result),
                }
                state.free();
                drop(state);
                // The program that proved a code has ended. The next one must prove the code again.
                self.admission.clients.forget_peers();
                self.end_if_nobody_can_come(once, reception);
            }
            result => {
                reception.ended(number, &result);
                state.end(result);
                drop(state);
                self.stop();
            }
        }
    }

    /// Whether a transfer that ended like this may resume after its path broke.
    fn resumes(&self, ended: &Ended) -> bool {
        self.retry_for > Duration::ZERO && !(ended.wrote && self.work.writes_to_output())
    }

    /// Whether the server's only ticket remains valid after this attempt.
    fn outlives(&self, ended: &Ended) -> bool {
        let sends = self.admission.role == Some(Role::Sender);
        self.ends == EndsAfter::FirstNotRefused
            && !self.connection_table.is_closing()
            && match &ended.result {
                Ok(summary) => {
                    // Another receiver would not help if the sender failed.
                    let is_mendable = if sends { summary.some_refused } else { !ended.wrote };
                    summary.dry_run || summary.files.failed > 0 && is_mendable
                }
                Err(error) if sends => error.is_caused_by_peer(),
                Err(error) if error.is_of_the_path() => false,
                // Standard output's reader may have ended, so nothing more can be written there.
                Err(TransferError::NothingMoved { .. }) if self.work.writes_to_output() => false,
                Err(error) if !ended.wrote => !error.is_fault(),
                Err(error) => error.is_caused_by_peer() && !self.work.writes_to_output(),
            }
    }
}

/// Rejects an admitted connection.
fn refuse(link: &Link, client: Option<&str>, refusal: Refusal, reception: &dyn ServerObserver) {
    link.channel.hang_up(&Message::Refuse { reason: refusal.in_words().into() });
    let peer = link.channel.peer();
    reception.rejected(peer, client, &refusal.error(peer.to_string()));
}

/// The client that holds the one ticket or was given the one code.
fn holder(credential: Credential, expires: Time) -> Client {
    Client {
        credential,
        name: String::new(),
        directory: PathBuf::new(),
        quota: None,
        rights: Rights { read: true, write: true, overwrite: true, dotfiles: true },
        expires: Some(expires),
        once: false,
    }
}
