use std::collections::BTreeMap;
use std::net::IpAddr;
use std::str::FromStr;

use sweetspot_linux::clock;
use sweetspot_linux::diag::State;
use sweetspot_linux::live::{BorrowError, LiveSocket};
use sweetspot_linux::tcp::options;
use sweetspot_sizing::{Controller, EventKind, Rledbat, Setting, sobas};
use sweetspot_units::{Bytes, Duration, Rate, Time};

use crate::bundle::Bundle;
use crate::error::TuneError;
use crate::event::{Event, Kind, Who};
use crate::guard::Leases;
use crate::look::{Seen, limit, look};
use crate::metrics::Snapshot;
use crate::policy::Subject;
use crate::scope::{Found, Scope};
use crate::share::max_min;
use crate::upload::Upload;

/// Between two searches for new connections: a handshake and a request take two round trips and
/// slow start three more before anything can overflow.
const SEARCH: Duration = Duration::from_millis(50);

/// What looking may cost: a search for new connections, or a round of looks, is followed by a pause
/// so many times as long as it took. Together that is less than a hundredth of a core.
const SEARCH_THRIFT: u64 = 400;
const ROUND_THRIFT: u64 = 250;

/// How a tuner goes about its work.
#[derive(Debug, Clone)]
pub struct Options {
    /// The most that all windows together may be.
    pub memory: Option<Bytes>,
    /// Whether uploads get advice.
    pub uploads: bool,
    /// Decide and tell, but touch nothing.
    pub dry_run: bool,
    /// The largest window that this host allows a connection.
    pub max_window: Bytes,
}

/// What a transfer is to aim for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Goal {
    /// As fast as the path allows, without a standing queue.
    Throughput,
    /// Only what others leave (RFC 9840).
    LessThanBestEffort,
}

impl FromStr for Goal {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Goal, &'static str> {
        match text {
            "throughput" => Ok(Goal::Throughput),
            "less-than-best-effort" => Ok(Goal::LessThanBestEffort),
            _ => Err("goals are throughput and less-than-best-effort; in a policy also leave"),
        }
    }
}

impl Goal {
    fn controller(self, setting: &Setting) -> Box<dyn Controller + Send> {
        match self {
            Goal::Throughput => Box::new(sobas::Live::new(setting)),
            Goal::LessThanBestEffort => Box::new(Rledbat::new(setting)),
        }
    }
}

/// Looks at connections and acts on them.
///
/// **Contract.** At [`Tuner::poll_timeout`], or when that has passed, [`Tuner::handle_timeout`] is
/// called. At the end [`Tuner::lift`] undoes what was done.
pub struct Tuner<S> {
    scope: S,
    options: Options,
    leases: Leases,
    next_search: Time,
    bundles: BTreeMap<Ends, Path>,
    refused: Vec<BorrowError>,
    events: Vec<Event>,
    counts: BTreeMap<Kind, u64>,
}

/// The two hosts of a bundle, here and there, and what its transfers aim for.
type Ends = (IpAddr, IpAddr, Goal);

/// A bundle and the connections in it.
struct Path {
    bundle: Bundle,
    connections: BTreeMap<u64, Connection>,
    next_round: Time,
    /// Events to be told once it shows what the kernel made of them.
    pending: Vec<(Time, Event)>,
}

struct Connection {
    socket: LiveSocket,
    started: u64,
    who: Who,
    /// Whether it was told of.
    claimed: bool,
    /// Whether there is something to undo.
    touched: bool,
    advertised: Option<Bytes>,
    upload: Upload,
}

impl<S: Scope> Tuner<S> {
    /// A tuner that has not looked yet.
    pub fn new(scope: S, options: Options, leases: Leases) -> Tuner<S> {
        Tuner {
            scope,
            options,
            leases,
            next_search: Time::ZERO,
            bundles: BTreeMap::new(),
            refused: Vec::new(),
            events: Vec::new(),
            counts: BTreeMap::new(),
        }
    }

    /// When to call [`Tuner::handle_timeout`] next.
    pub fn poll_timeout(&self) -> Time {
        self.bundles.values().map(|path| path.next_round).fold(self.next_search, Time::min)
    }

    /// Looks, decides and acts, for whatever is due at `now`.
    pub fn handle_timeout(&mut self, now: Time) -> Result<(), TuneError> {
        if now >= self.next_search {
            for found in self.scope.find(now, &mut self.refused)? {
                self.welcome(now, &found);
            }
            self.share_memory();
            let done = clock::now();
            self.next_search = done + SEARCH.max(done.since(now) * SEARCH_THRIFT);
        }
        let due: Vec<Ends> =
            self.bundles.iter().filter(|(_, p)| p.next_round <= now).map(|(e, _)| *e).collect();
        for ends in due {
            self.round(ends);
        }
        Ok(())
    }

    /// What was done since the last call.
    pub fn take_events(&mut self) -> Vec<Event> {
        for event in &self.events {
            *self.counts.entry(event.kind).or_default() += 1;
        }
        std::mem::take(&mut self.events)
    }

    /// How things stand.
    pub fn snapshot(&self) -> Snapshot {
        let paths = || self.bundles.values();
        let limits = |path: &Path| {
            path.connections.keys().filter_map(|c| path.bundle.limit(*c)).collect::<Vec<_>>()
        };
        Snapshot {
            watched: paths().map(|p| p.connections.len()).sum(),
            limited: paths().map(|p| limits(p).len()).sum(),
            window: paths().flat_map(limits).sum(),
            rate: paths().fold(Rate::ZERO, |sum, path| sum + path.bundle.rate()),
            events: self.counts.clone(),
        }
    }

    /// What was forbidden since the last call.
    pub fn take_refusals(&mut self) -> Vec<BorrowError> {
        std::mem::take(&mut self.refused)
    }

    /// Whether the guardian has gone, so that nothing must be done any more.
    pub fn is_unguarded(&self) -> bool {
        self.leases.are_worthless()
    }

    /// Undoes all that was done.
    pub fn lift(&mut self, why: &str) {
        for path in self.bundles.values_mut() {
            for (cookie, connection) in &path.connections {
                if !connection.touched {
                    continue;
                }
                // One that is no more needs nothing.
                let _ = limit(&connection.socket, None);
                // A guardian that is gone needs no telling.
                let _ = self.leases.release(*cookie);
                let change = (path.bundle.limit(*cookie), None);
                self.events.push(event(&path.bundle, connection, Kind::Lifted, why, change));
            }
        }
        self.bundles.clear();
    }

    /// Divides the memory there is max-min fair over the bundles.
    fn share_memory(&mut self) {
        let Some(memory) = self.options.memory else { return };
        let most = self.options.max_window;
        let demand =
            |path: &Path| path.bundle.window().unwrap_or(most * path.connections.len() as u64);
        let demands: Vec<Bytes> = self.bundles.values().map(demand).collect();
        for (path, share) in self.bundles.values_mut().zip(max_min(memory, &demands)) {
            path.bundle.set_ceiling(Some(share));
        }
    }

    /// Takes a socket in if it is a TCP connection with data to come.
    fn welcome(&mut self, now: Time, found: &Found) {
        let (fd, inode) = (found.descriptor.fd, found.descriptor.inode);
        let socket = match LiveSocket::name(&found.process, fd, inode, None) {
            Ok(socket) => socket,
            Err(error) if error.is_over() => return,
            Err(error) => return self.refused.push(error),
        };
        // Neither TCP nor anything else that can be looked at.
        let Ok(Ok(seen)) = look(&socket, None) else { return };
        match State::from_number(seen.info.state) {
            Some(State::SynSent | State::SynReceived | State::Close) => {
                return self.scope.forget(inode);
            }
            Some(State::Established | State::FinWait1 | State::FinWait2) => {}
            _ => return,
        }
        let ends = socket.with(|fd| options::ends(fd));
        let Ok(Ok(Some((local, remote)))) = ends else { return };
        let (pid, cookie) = (found.process.pid(), socket.cookie());
        let (uid, program) = (found.uid, found.program.as_str());
        let subject = Subject { uid, program, local, remote };
        let Some(goal) = self.scope.goal(&subject) else { return };
        let who = Who { pid, program: program.to_owned(), local, remote, cookie };
        let path = self.path(now, (local.ip(), remote.ip(), goal), &seen);
        path.bundle.add(cookie, seen.look);
        path.next_round = now;
        let connection = Connection {
            socket,
            started: found.started,
            who,
            claimed: false,
            touched: false,
            advertised: None,
            upload: Upload::default(),
        };
        path.connections.insert(cookie, connection);
    }

    fn path(&mut self, now: Time, ends: Ends, seen: &Seen) -> &mut Path {
        let max_window = self.options.max_window;
        self.bundles.entry(ends).or_insert_with(|| {
            let mss = seen.info.advmss.max(LEAST_MSS);
            let setting = Setting { mss, packet: mss + HEADERS, max_window, path: None };
            let bundle = Bundle::new(ends.2.controller(&setting), mss);
            Path { bundle, connections: BTreeMap::new(), next_round: now, pending: Vec::new() }
        })
    }

    /// Looks at every connection of a bundle, and does what its controller then wants.
    fn round(&mut self, ends: Ends) {
        let bundles = self.bundles.len() as u64;
        let Some(path) = self.bundles.get_mut(&ends) else { return };
        let (now, mut gone) = (clock::now(), Vec::new());
        for (cookie, connection) in &mut path.connections {
            let limit = path.bundle.limit(*cookie).filter(|_| connection.touched);
            match look(&connection.socket, limit) {
                Ok(Ok(seen)) => {
                    connection.advertised = seen.info.rcv_wnd;
                    if self.options.uploads
                        && let Some(advice) = connection.upload.handle_look(now, &seen.info)
                    {
                        let mut event =
                            event(&path.bundle, connection, Kind::Advised, &advice, (None, None));
                        event.rtt = (seen.info.rtt, Some(seen.info.min_rtt));
                        self.events.push(event);
                    }
                    path.bundle.handle_look(clock::now(), *cookie, seen.look);
                }
                Ok(Err(_)) | Err(_) => gone.push(*cookie),
            }
        }
        for cookie in gone {
            path.bundle.remove(cookie);
            let Some(connection) = path.connections.remove(&cookie) else { continue };
            if connection.touched {
                let _ = self.leases.release(cookie);
            }
            if connection.claimed {
                let why = "the connection is over";
                self.events.push(event(&path.bundle, &connection, Kind::Gone, why, (None, None)));
            }
        }
        if path.connections.is_empty() {
            self.events.extend(path.ripe(Time::MAX));
            self.bundles.remove(&ends);
            return;
        }
        path.bundle.handle_round(clock::now());
        path.act(&mut self.leases, self.options.dry_run);
        let done = clock::now();
        self.events.extend(path.ripe(done));
        path.next_round = done + path.bundle.pause(done, done.since(now) * ROUND_THRIFT * bundles);
    }
}

/// What every host must be able to receive (RFC 9293 section 3.7.1).
const LEAST_MSS: Bytes = Bytes::new(536);
/// IPv4 and TCP headers with timestamps.
const HEADERS: Bytes = Bytes::new(52);

impl Path {
    fn act(&mut self, leases: &mut Leases, dry_run: bool) {
        let mut said = Vec::new();
        while let Some(event) = self.bundle.poll_event() {
            said.extend(words(&event.kind));
        }
        let mut before = BTreeMap::new();
        while let Some(action) = self.bundle.poll_action() {
            let Some(connection) = self.connections.get_mut(&action.cookie) else { continue };
            before.insert(action.cookie, action.before);
            if dry_run {
                continue;
            }
            let (socket, started) = (&connection.socket, connection.started);
            // Without a guardian nothing is done.
            if leases.take(socket, started).is_ok() {
                connection.touched = true;
                // A connection that has gone meanwhile is found out at the next look.
                let _ = limit(socket, action.limit);
            }
        }
        let due = clock::now() + self.bundle.round_trips().0 * 2 + SETTLING;
        for (cookie, connection) in &mut self.connections {
            let to = self.bundle.limit(*cookie);
            let from = before.get(cookie).copied().unwrap_or(to);
            let mut tell = |kind, why: &str| {
                let event = event(&self.bundle, connection, kind, why, (from, to));
                self.pending.push((due, event));
            };
            if !connection.claimed && to.is_some() {
                tell(Kind::Taken, "a bulk transfer; its window opens step by step");
            }
            if connection.claimed {
                said.iter().for_each(|(kind, why)| tell(*kind, why));
            }
            connection.claimed |= to.is_some();
        }
    }

    /// The events of which it shows by `now` what the kernel made.
    fn ripe(&mut self, now: Time) -> Vec<Event> {
        let (ripe, pending) = self.pending.drain(..).partition(|(due, _)| *due <= now);
        self.pending = pending;
        let mut ripe: Vec<Event> = Vec::into_iter(ripe).map(|(_, event)| event).collect();
        for event in &mut ripe {
            if let Some(connection) = self.connections.get(&event.who.cookie) {
                event.advertised = connection.advertised;
                let clamp = connection.socket.with(|fd| options::window_clamp(fd));
                event.clamp = clamp.ok().and_then(Result::ok);
            }
        }
        ripe
    }
}

/// Besides two round trips, until it shows what an action led to.
const SETTLING: Duration = Duration::from_millis(20);

fn event(
    bundle: &Bundle,
    connection: &Connection,
    kind: Kind,
    why: &str,
    (from, to): (Option<Bytes>, Option<Bytes>),
) -> Event {
    Event {
        wall_s: clock::wall().as_nanos() as f64 / 1e9,
        who: connection.who.clone(),
        kind,
        why: why.to_owned(),
        from,
        to,
        clamp: None,
        advertised: connection.advertised,
        rate: bundle.rate(),
        rtt: bundle.round_trips(),
    }
}

/// What the controller did, in words.
fn words(kind: &EventKind) -> Option<(Kind, String)> {
    Some(match kind {
        EventKind::Saturated { rate, rtt } => {
            (Kind::Held, format!("the path is full at {rate} and a round trip of {rtt}"))
        }
        EventKind::Tightened { .. } => (Kind::Tightened, "a queue stood".to_owned()),
        EventKind::Reopened => {
            (Kind::Reopened, "the queue is gone though the window binds".to_owned())
        }
        EventKind::Overflowed { rate } => {
            (Kind::Overflowed, format!("the bottleneck's buffer overflowed at {rate}"))
        }
        EventKind::Congested => {
            (Kind::LetGo, "others keep a queue and take the path: holding does not help".to_owned())
        }
        _ => return None,
    })
}
