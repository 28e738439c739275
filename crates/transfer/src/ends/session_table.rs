//! The sessions of a server: transfers and measurements of admitted peers.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex};

use crossbeam_channel::Sender;
use sweetspot_linux::clock;
use sweetspot_protocol::clients::Client;
use sweetspot_units::{Duration, Time};

use crate::TransferError;
use crate::ends::client_table::{has_expired, name_of};
use crate::limits::{Capacity, MAX_SESSION_CONNECTIONS, MAX_TAKEOVERS};
use crate::lock::lock;
use crate::wire::channel::Channel;
use crate::wire::link::Link;

/// How long a resumed transfer waits for its old connection's session to end.
const TAKEOVER_TIMEOUT: Duration = Duration::from_secs(20);

/// The running sessions, and the number that may still start.
pub(crate) struct SessionTable {
    capacity: Capacity,
    sessions: Mutex<Sessions>,
    ended: Condvar,
}

#[derive(Default)]
struct Sessions {
    /// Keyed by credential and name, so that no client can take over another client's transfers or discover their
    /// names.
    transfers: HashMap<TransferKey, Transfer>,
    /// Broken transfers, and the time until each may resume.
    broken: HashMap<TransferKey, Time>,
    measurements: HashMap<u64, Ongoing>,
    next_measurement: u64,
    /// Occupied places per credential.
    places: HashMap<String, usize>,
}

type TransferKey = (String, String);

struct Transfer {
    number: u64,
    session: Ongoing,
    links: Sender<Link>,
    /// Number of connections so far, which is limited.
    connections: usize,
}

struct Ongoing {
    client: Arc<Client>,
    channel: Arc<Channel>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The further connection's transfer does not run here.
    NoTransfer,
    ClientIsBusy,
    /// The host already runs as many sessions as it can.
    ServerIsBusy,
    /// The transfer, or all transfers together, have reached the maximum of connections.
    TooManyConnections,
    /// The server serves one transfer, and another one is running.
    Taken,
}

impl Refusal {
    /// The text for the peer and the log.
    pub fn in_words(self) -> &'static str {
        match self {
            Refusal::NoTransfer => "that transfer is not running here",
            Refusal::ClientIsBusy => {
                "this client has reached its limit of simultaneous transfers; try again when one has ended"
            }
            Refusal::ServerIsBusy => {
                "this end has reached its limit of simultaneous transfers; try again when one has ended"
            }
            Refusal::TooManyConnections => "this end has reached its limit of connections",
            Refusal::Taken => {
                "another transfer with this one-time ticket is running; if it was yours and was interrupted, try again in a moment, or \
                 ask for a new ticket"
            }
        }
    }

    /// The error that the server reports.
    pub fn error(self, peer: String) -> TransferError {
        match self {
            Refusal::NoTransfer => TransferError::NoTransfer(peer),
            Refusal::Taken => TransferError::Taken(peer),
            _ => TransferError::Full { peer, what: self.in_words() },
        }
    }
}

/// A place among the sessions; dropping it frees the place.
pub(crate) struct Place<'a> {
    table: &'a SessionTable,
    credential: String,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut sessions = lock(&self.table.sessions);
        if let Some(count) = sessions.places.get_mut(&self.credential) {
            *count -= 1;
            if *count == 0 {
                sessions.places.remove(&self.credential);
            }
        }
    }
}

/// Registers a measurement, so that it can be ended; dropping it removes the registration.
pub(crate) struct RunningMeasurement<'a>(&'a SessionTable, u64);

impl Drop for RunningMeasurement<'_> {
    fn drop(&mut self) {
        lock(&self.0.sessions).measurements.remove(&self.1);
    }
}

impl SessionTable {
    pub fn new(capacity: Capacity) -> SessionTable {
        SessionTable { capacity, sessions: Mutex::default(), ended: Condvar::new() }
    }

    /// Takes a place for a session of `client`: this transfer, or a measurement. A transfer that still runs may exceed
    /// the limit by [`MAX_TAKEOVERS`], because its path has broken and it must be able to resume.
    pub fn place(&self, client: &Client, transfer: Option<&str>) -> Result<Place<'_>, Refusal> {
        let credential = client.credential.id();
        let mut sessions = lock(&self.sessions);
        let runs =
            |name: &str| sessions.transfers.contains_key(&(credential.clone(), name.to_owned()));
        let more = if transfer.is_some_and(runs) { MAX_TAKEOVERS } else { 0 };
        let all: usize = sessions.places.values().sum();
        let of_client = sessions.places.get(&credential).copied().unwrap_or(0);
        // Several users may hold the only ticket of a server.
        let max = match name_of(client).is_none() {
            true => self.capacity.sessions,
            false => self.capacity.sessions_per_client,
        };
        if of_client >= max + more {
            return Err(Refusal::ClientIsBusy);
        }
        if all >= self.capacity.sessions + more {
            return Err(Refusal::ServerIsBusy);
        }
        *sessions.places.entry(credential.clone()).or_default() += 1;
        Ok(Place { table: self, credential })
    }

    /// Whether any session has a place.
    pub fn has_sessions(&self) -> bool {
        !lock(&self.sessions).places.is_empty()
    }

    /// Passes a further connection to its transfer. Returns the connection if the transfer does not run here, or has
    /// too many.
    pub fn join(
        &self,
        transfer: &str,
        client: &Client,
        link: Link,
    ) -> Result<(), (Refusal, Box<Link>)> {
        let mut sessions = lock(&self.sessions);
        let all: usize = sessions.transfers.values().map(|running| running.connections).sum();
        let running = sessions.transfers.get_mut(&key(client, transfer));
        let Some(running) = running.filter(|running| *running.session.client == *client) else {
            return Err((Refusal::NoTransfer, Box::new(link)));
        };
        if running.connections >= MAX_SESSION_CONNECTIONS || all >= self.capacity.connections {
            return Err((Refusal::TooManyConnections, Box::new(link)));
        }
        running.connections += 1;
        running.links.send(link).map_err(|refused| (Refusal::NoTransfer, Box::new(refused.0)))
    }

    /// Adds a transfer and returns its number. If one of that name still runs, its path has broken: it is ended first.
    pub fn enter(
        &self,
        transfer: &str,
        client: &Arc<Client>,
        links: Sender<Link>,
        channel: &Arc<Channel>,
        next: impl FnOnce() -> u64,
    ) -> u64 {
        let key = key(client, transfer);
        let mut sessions = lock(&self.sessions);
        let deadline = clock::now() + TAKEOVER_TIMEOUT;
        while let Some(old) = sessions.transfers.get(&key).filter(|_| clock::now() < deadline) {
            old.session.channel.sever();
            let look = std::time::Duration::from_millis(100);
            sessions = match self.ended.wait_timeout(sessions, look) {
                Ok((sessions, _)) => sessions,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
        let number = next();
        let session = Ongoing { client: Arc::clone(client), channel: Arc::clone(channel) };
        sessions.broken.remove(&key);
        sessions.transfers.insert(key, Transfer { number, session, links, connections: 1 });
        number
    }

    /// The path of a transfer broke. Until this time it may resume over a new connection, even if its credential expires.
    pub fn mark_broken(&self, transfer: &str, client: &Client, until: Time) {
        let (mut sessions, now) = (lock(&self.sessions), clock::now());
        sessions.broken.retain(|_, until| *until > now);
        if sessions.broken.len() < self.capacity.sessions {
            sessions.broken.insert(key(client, transfer), until);
        }
    }

    /// Whether a transfer of this name was admitted before, and is running or may resume.
    pub fn is_ongoing(&self, transfer: &str, client: &Client) -> bool {
        let (sessions, key) = (lock(&self.sessions), key(client, transfer));
        let is_awaited = |until: &Time| *until > clock::now();
        sessions.transfers.contains_key(&key) || sessions.broken.get(&key).is_some_and(is_awaited)
    }

    /// The time until a broken transfer may resume; `None` without any.
    pub fn resumable_until(&self) -> Option<Time> {
        let now = clock::now();
        lock(&self.sessions).broken.values().copied().filter(|until| *until > now).max()
    }

    /// Registers a measurement, so that it ends when its client is removed.
    pub fn measure(&self, client: &Arc<Client>, channel: &Arc<Channel>) -> RunningMeasurement<'_> {
        let mut sessions = lock(&self.sessions);
        let number = sessions.next_measurement;
        sessions.next_measurement += 1;
        let session = Ongoing { client: Arc::clone(client), channel: Arc::clone(channel) };
        sessions.measurements.insert(number, session);
        RunningMeasurement(self, number)
    }

    /// Ends the sessions of clients for which `is_kept` is false, and measurements with an expired credential.
    pub fn sever_unless(&self, is_kept: impl Fn(&Arc<Client>) -> bool) {
        let sessions = lock(&self.sessions);
        let transfers = sessions.transfers.values().map(|transfer| &transfer.session);
        let kept = |one: &&Ongoing| is_kept(&one.client);
        transfers.filter(|one| !kept(one)).for_each(|one| one.channel.sever());
        let measurements = sessions.measurements.values();
        measurements
            .filter(|one| !kept(one) || has_expired(&one.client))
            .for_each(|one| one.channel.sever());
    }

    /// Stops the transfers, and tells their peers that the ticket has ended.
    pub fn stop(&self) {
        let sessions = lock(&self.sessions);
        sessions.transfers.values().for_each(|transfer| transfer.session.channel.stop());
    }

    /// Waits until no transfer runs, at most for `patience`.
    pub fn wait_until_idle(&self, patience: Duration) {
        let sessions = lock(&self.sessions);
        let runs = |sessions: &mut Sessions| !sessions.transfers.is_empty();
        let _ = self.ended.wait_timeout_while(sessions, patience.into(), runs);
    }

    pub fn leave(&self, transfer: &str, client: &Client, number: u64) {
        let (mut sessions, key) = (lock(&self.sessions), key(client, transfer));
        if sessions.transfers.get(&key).is_some_and(|running| running.number == number) {
            sessions.transfers.remove(&key);
        }
        self.ended.notify_all();
    }
}

fn key(client: &Client, transfer: &str) -> TransferKey {
    (client.credential.id(), transfer.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sweetspot_protocol::Secret;
    use sweetspot_protocol::clients::{Credential, Rights};

    fn client(number: u8) -> Client {
        Client {
            credential: Credential::Secret(Secret([number; 16])),
            name: format!("client{number}"),
            directory: "/srv".into(),
            quota: None,
            rights: Rights::WRITE,
            expires: None,
            once: false,
        }
    }

    #[test]
    fn sessions_are_limited_per_client_and_per_server() {
        let table = SessionTable::new(Capacity::of(1 << 20));
        let (alice, bob) = (client(1), client(2));
        let take = |client, n: usize| -> Vec<_> {
            (0..n).map(|_| table.place(client, None).unwrap()).collect()
        };
        let max = table.capacity.sessions_per_client;
        let mut places = take(&alice, max);
        assert_eq!(table.place(&alice, None).err(), Some(Refusal::ClientIsBusy));
        places.pop();
        places.extend(take(&alice, 1));
        places.extend(take(&bob, max));
        drop(places);
        assert!(lock(&table.sessions).places.is_empty());
        // 1024 descriptors allow three sessions.
        let table = SessionTable::new(Capacity::of(1024));
        let places = [1, 2, 3].map(|n| table.place(&client(n), None).unwrap());
        assert_eq!(table.place(&bob, None).err(), Some(Refusal::ServerIsBusy));
        drop(places);
    }
}
