//! Diagnoses live connections by sampling them for a while.

use std::collections::HashSet;
use std::io::IsTerminal;
use std::net::{IpAddr, SocketAddr};

use sweetspot_diagnose::live::{Live, SAMPLE_INTERVAL, Side};
use sweetspot_diagnose::report::{DiagnosisReport, rank, still_opening};
use sweetspot_diagnose::{Flow, counted, name_shared_paths};
use sweetspot_linux::clock;
use sweetspot_linux::diag::{Detail, DiagConnection};
use sweetspot_linux::processes;
use sweetspot_system::Interruption;
use sweetspot_units::{Bytes, Duration, Time};

use super::target::LiveTarget;
use crate::ends::Ends;
use sweetspot_watch::{NamespaceConnections, Owners, diagnosis, sample};

/// Largest number of connections watched at once: the kernel is queried for each separately.
const MAX_WATCHED: usize = 1000;

/// Samples the connections of `target` for `time`, or until a signal arrives: then the second value is its exit code. Diagnoses
/// the `max` connections with the most payload.
pub fn watch(
    target: &LiveTarget,
    netns: Option<&str>,
    time: Duration,
    max: usize,
) -> Result<(DiagnosisReport, Option<u8>), Box<dyn std::error::Error>> {
    let mut host = match (netns, target) {
        (Some(name), _) => NamespaceConnections::named(name)?,
        (None, LiveTarget::Process(pid)) => NamespaceConnections::of_process(*pid)?,
        (None, LiveTarget::End(_)) => NamespaceConnections::own()?,
    };
    let target = Selection::of(target)?;
    let mut interruption = Interruption::hold()?;
    let mut interrupted = None;
    let started = clock::now();
    let end = started + time;
    let [mut selected, mut neighbours] = target.established(&mut host)?;
    let mut opening = target.opening(&mut host)?;
    // A connection that is opening may be established, repeat its SYN or give up in that time.
    while selected.is_empty() && !opening.is_empty() && interrupted.is_none() && clock::now() < end
    {
        interrupted = interruption.wait_until((clock::now() + SAMPLE_INTERVAL).min(end))?;
        let Ok(now_open) = target.established(&mut host) else { break };
        [selected, neighbours] = now_open;
        opening = target.opening(&mut host)?;
    }
    let mut remarks = Vec::new();
    if selected.len() > MAX_WATCHED {
        remarks.push(format!(
            "it has {} connections; {MAX_WATCHED} of them were watched",
            selected.len()
        ));
    }
    let (selected_count, all) =
        (selected.len().min(MAX_WATCHED), selected.into_iter().chain(neighbours));
    let mut watched: Vec<WatchedConnection> =
        all.take(MAX_WATCHED).map(WatchedConnection::new).collect();
    if selected_count > 0 {
        announce_start(&watched[..selected_count], time);
    }
    let mut samples = 0;
    while interrupted.is_none() {
        let now = clock::now();
        for each in watched.iter_mut().filter(|each| !each.closed) {
            each.sample(&mut host, now)?;
        }
        // Connections that are all opening need no samples.
        if now >= end || watched[..selected_count].iter().all(|each| each.closed) {
            break;
        }
        samples = (samples + 1).max(now.since(started).as_nanos() / SAMPLE_INTERVAL.as_nanos());
        interrupted = interruption.wait_until((started + sampled_at(samples)).min(end))?;
        if interrupted.is_some() {
            let seen = clock::now().since(started).as_secs_f64();
            remarks.push(format!("interrupted after {seen:.1} s of {time}"));
            break;
        }
    }
    let closed = watched[..selected_count].iter().filter(|each| each.closed).count();
    if closed > 0 {
        remarks.push(ended(closed, selected_count));
    }
    let mut flows = selected_flows(&watched, selected_count, host.is_own());
    opening = target.opening(&mut host).unwrap_or(opening);
    let (silent, others) = Flow::unanswered(opening.iter().map(repeated_syns));
    flows.extend(silent);
    remarks.extend(still_opening(&others));
    let left_out = flows.len().saturating_sub(max);
    flows.truncate(max);
    let report = DiagnosisReport {
        flows,
        flows_left_out: left_out as u64,
        packets: None,
        tcp_segments: None,
        remarks,
    };
    Ok((report, interrupted))
}

/// The flows of the first `selected_count` connections, the one with the most payload first. The others show which paths they
/// share. `is_own`: they are certainly in this process's network namespace.
fn selected_flows(watched: &[WatchedConnection], selected_count: usize, is_own: bool) -> Vec<Flow> {
    let mut owners = Owners::default();
    owners.learn(watched.iter().map(|each| each.connection.inode), clock::now());
    let mut flows: Vec<(u64, Flow)> =
        preferred_ends(watched).map(|each| each.flow(watched, &owners, is_own)).collect();
    rank(&mut flows);
    let mut flows: Vec<Flow> = flows.into_iter().map(|(_, flow)| flow).collect();
    name_shared_paths(&mut flows);
    let is_meant = |flow: &Flow| {
        let ends = |each: &WatchedConnection| [each.connection.local, each.connection.remote];
        let flow = [flow.source, flow.destination];
        let is = |ends: [SocketAddr; 2]| ends == flow || [ends[1], ends[0]] == flow;
        watched[..selected_count].iter().any(|each| is(ends(each)))
    };
    flows.retain(is_meant);
    flows
}

/// The ends of an opening connection, and the number of times that it repeated its SYN.
fn repeated_syns(connection: &DiagConnection) -> ([SocketAddr; 2], u64) {
    let again = connection.info.as_ref().map_or(0, |info| info.total_retrans.into());
    ([connection.local, connection.remote], again)
}

/// When sample `n` is due: once in each interval, at places in it that are spread evenly (multiples of the golden ratio). At equal
/// distances, samples would find a program that writes as often in the same state each time.
fn sampled_at(n: u64) -> Duration {
    let golden = (5_f64.sqrt() - 1.0) / 2.0;
    SAMPLE_INTERVAL * n + SAMPLE_INTERVAL.scaled((golden * n as f64).fract())
}

/// Tells a person at a terminal why nothing is printed yet.
fn announce_start(watched: &[WatchedConnection], time: Duration) {
    if !std::io::stderr().is_terminal() {
        return;
    }
    let what = match watched {
        [only] => only.connection.remote.to_string(),
        many => counted(many.len() as u64, "connection", "connections"),
    };
    note!("watching {what} for {time}; Ctrl-C ends it early");
}

/// One socket per connection. If both ends are on this host, the sender's, which knows more; if
/// nothing was sent, either.
fn preferred_ends(watched: &[WatchedConnection]) -> impl Iterator<Item = &WatchedConnection> {
    watched.iter().filter(move |each| {
        let ends = (each.connection.remote, each.connection.local);
        let other = watched.iter().find(|w| (w.connection.local, w.connection.remote) == ends);
        other.is_none_or(|other| match (each.live.direction(), other.live.direction()) {
            (Side::Sender, Side::Sender) => each.moved() || !other.moved() && ends.1 < ends.0,
            (Side::Receiver, Side::Sender) => false,
            _ => true,
        })
    })
}

/// A sampled connection.
struct WatchedConnection {
    connection: DiagConnection,
    live: Live,
    closed: bool,
}

impl WatchedConnection {
    fn new(connection: DiagConnection) -> WatchedConnection {
        let live = Live::between(connection.local.ip(), connection.remote.ip());
        WatchedConnection { connection, live, closed: false }
    }

    fn sample(&mut self, host: &mut NamespaceConnections, now: Time) -> Result<(), String> {
        // The query contains the cookie, so the answer is never about another connection.
        match host.read_again(&self.connection, Detail::ALL).map_err(|e| e.to_string())? {
            Some(seen) => {
                match sample(&seen, now) {
                    Some(sample) => self.live.handle(sample),
                    None => self.closed = true,
                }
                self.connection = seen;
            }
            None => self.closed = true,
        }
        Ok(())
    }

    /// Whether any data moved during sampling.
    fn moved(&self) -> bool {
        self.live.evidence().bytes > Bytes::ZERO
    }

    /// The flow in the direction of most data, with its payload. `all` may contain the other end's socket, too.
    fn flow(&self, all: &[WatchedConnection], owners: &Owners, is_own: bool) -> (u64, Flow) {
        let ends = (self.connection.remote, self.connection.local);
        let mut others = all.iter().map(|each| &each.connection);
        let other = others.find(|other| (other.local, other.remote) == ends);
        let pid = |end: &DiagConnection| owners.of(end.inode).map(|owner| owner.pid);
        let period = self.live.period();
        let flow = diagnosis(&self.connection, other, &period, pid, is_own)
            .with_deliveries(self.live.deliveries());
        (period.evidence.bytes.get(), flow)
    }
}

/// The connections of a target.
enum Selection<'a> {
    Ends(&'a Ends),
    /// The connections of a process and its children, by the inodes of their sockets.
    Process(u32, Vec<u64>),
}

impl<'a> Selection<'a> {
    fn of(target: &'a LiveTarget) -> Result<Selection<'a>, String> {
        Ok(match target {
            LiveTarget::End(ends) => Selection::Ends(ends),
            LiveTarget::Process(pid) => {
                let mut inodes = sockets(*pid)?;
                // The sockets of a child that has ended, or belongs to another user, cannot be listed.
                let children = processes::family(*pid).into_iter().filter(|child| child != pid);
                inodes.extend(children.filter_map(|child| sockets(child).ok()).flatten());
                Selection::Process(*pid, inodes)
            }
        })
    }

    fn has(&self, connection: &DiagConnection) -> bool {
        match self {
            Selection::Ends(ends) => {
                ends.contains(connection.local) || ends.contains(connection.remote)
            }
            Selection::Process(_, inodes) => inodes.contains(&connection.inode),
        }
    }

    /// The connections that are established, and the other connections between the same hosts, which share their path.
    fn established(
        &self,
        host: &mut NamespaceConnections,
    ) -> Result<[Vec<DiagConnection>; 2], String> {
        let all = host.read(Detail::NONE).map_err(|e| e.to_string())?;
        let (selected, mut neighbours): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|c| self.has(c));
        if selected.is_empty() && self.opening(host)?.is_empty() {
            return Err(self.missing());
        }
        let paths: HashSet<[IpAddr; 2]> = selected.iter().filter_map(path).collect();
        neighbours.retain(|c| path(c).is_some_and(|p| paths.contains(&p)));
        Ok([selected, neighbours])
    }

    /// The connections in the state SYN-SENT.
    fn opening(&self, host: &mut NamespaceConnections) -> Result<Vec<DiagConnection>, String> {
        let mut all = host.read_opening().map_err(|e| e.to_string())?;
        all.retain(|connection| self.has(connection));
        Ok(all)
    }

    /// The error if there is no connection.
    fn missing(&self) -> String {
        match self {
            Selection::Ends(ends) => format!(
                "no TCP connection here begins or ends at {ends}; sweetspot top --once lists \
                 them (--netns NAME for another namespace)"
            ),
            Selection::Process(pid, _) => format!(
                "process {pid} and its children have no TCP connection open; sweetspot top \
                 lists all"
            ),
        }
    }
}

/// The hosts at both ends of a connection's path; `None` within a host.
fn path(connection: &DiagConnection) -> Option<[IpAddr; 2]> {
    let [local, remote] = [connection.local.ip(), connection.remote.ip()];
    (local != remote && !local.is_loopback()).then_some([local, remote])
}

fn sockets(pid: u32) -> Result<Vec<u64>, String> {
    let found = processes::sockets(pid).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            let port = match u16::try_from(pid) {
                Ok(port) => format!("; for port {port}, name the host, too: 192.0.2.7:{port}"),
                Err(_) => String::new(),
            };
            format!(
                "there is no process {pid}; did it end? `sweetspot top` lists processes with connections{port}"
            )
        }
        std::io::ErrorKind::PermissionDenied => format!(
            "no permission to see which sockets process {pid} has; run as its user or as root, or \
             name an end of the connection (ADDRESS:PORT)"
        ),
        _ => format!("cannot see the sockets of process {pid}: {error}"),
    })?;
    Ok(found.into_iter().map(|descriptor| descriptor.inode).collect())
}

/// The remark that `closed` of `all` connections ended early.
fn ended(closed: usize, all: usize) -> String {
    match (closed, all) {
        (1, 1) => "the connection ended while it was watched".to_owned(),
        (closed, all) if closed == all => match all {
            2 => "both connections ended while they were watched".to_owned(),
            _ => format!("all {all} connections ended while they were watched"),
        },
        (closed, all) => format!("{closed} of {all} connections ended while they were watched"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program writes every 100 ms and pauses for 90 ms between: one sample in ten finds it writing, 10 of 100, and one more or less
    /// where the spread rounds.
    #[test]
    fn samples_cover_a_periodic_program_evenly() {
        let period = SAMPLE_INTERVAL.as_nanos();
        let place = |n| sampled_at(n).as_nanos() % period;
        for part in 0..10 {
            let is_in = |at: &u64| (period * part / 10..period * (part + 1) / 10).contains(at);
            let found = (0..100).map(place).filter(is_in).count();
            assert!((9..=11).contains(&found), "{part}: {found}");
        }
        assert!((0..100).all(|n| sampled_at(n + 1) > sampled_at(n)));
    }

    #[test]
    fn the_message_about_ended_connections_agrees_in_number() {
        assert_eq!(ended(1, 1), "the connection ended while it was watched");
        assert_eq!(ended(2, 2), "both connections ended while they were watched");
        assert_eq!(ended(3, 3), "all 3 connections ended while they were watched");
        assert_eq!(ended(1, 3), "1 of 3 connections ended while they were watched");
    }
}
