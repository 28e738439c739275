//! The receiving end of one transfer, once its sender is admitted.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;

use sweetspot_linux::tcp::{Info, options};
use sweetspot_linux::{clock, process, sysctl};
use sweetspot_sizing::{Controller, KnownPath, Probing, Setting, Sizing};
use sweetspot_units::{Bytes, Time};

use super::admission::{Admitted, House};
use super::channel::Channel;
use super::helm::Helm;
use super::partial::Partial;
use super::sink::{Sink, Written};
use super::stream::Stream;
use super::switchboard::{Line, Switchboard};
use crate::TransferError;
use crate::name::FileName;
use crate::observer::{Observer, Opened};
use crate::outcome::{End, Outcome, Role};
use crate::probe::Seal;
use crate::protocol::{Accept, Closing, Hello, Message, Session, Verdict};
use crate::steering::Steering;

/// IPv4 and TCP headers with the timestamp option (RFC 7323).
const TCP_HEADERS: Bytes = Bytes::new(52);

/// Receives one file from an admitted sender. `start` is when its connection was accepted.
pub(crate) fn receive(
    house: &House,
    switchboard: &Switchboard,
    admitted: Admitted,
    start: Time,
    observer: &mut dyn Observer,
) -> Result<Outcome, TransferError> {
    let Admitted { channel, session, hello, opening } = admitted;
    let result = Plan::make(house, &hello, &channel).and_then(|plan| {
        let line = plan.probes.then(|| {
            let opened = switchboard.open_line(session.probe_id(), Seal::new(&session));
            opened.map_err(TransferError::system("preparing probes"))
        });
        let transfer = Transfer { house, channel: &channel, session: &session, start };
        let line = line.transpose()?;
        let result = transfer.run(plan, Stream::new(&channel, opening), line.clone(), observer);
        line.iter().for_each(|line| switchboard.close_line(line));
        result
    });
    if let Err(error) = &result {
        part(&channel, error);
    }
    result
}

/// Tells the sender why it ends, unless that is its own doing.
fn part(channel: &Channel, error: &TransferError) {
    match error {
        TransferError::PeerFailed(_)
        | TransferError::PeerGone { .. }
        | TransferError::Silent { .. } => channel.sever(),
        _ => channel.hang_up(&Message::Failed { reason: error.to_string() }),
    }
}

/// What was agreed, and the file it goes to.
struct Plan {
    name: FileName,
    size: Bytes,
    sizing: Sizing,
    controller: Box<dyn Controller + Send>,
    partial: Partial,
    probes: bool,
}

impl Plan {
    fn make(house: &House, hello: &Hello, channel: &Channel) -> Result<Plan, TransferError> {
        let name: FileName = hello.name.parse()?;
        let target = house.directory.join(name.as_str());
        // Asked early for a clear answer; the final rename asks again, in one step.
        match target.symlink_metadata() {
            Ok(_) if !house.overwrite => return Err(TransferError::Exists(target)),
            Ok(existing) if existing.is_dir() => return Err(TransferError::IsDirectory(target)),
            _ => {}
        }
        let asked = hello.sizing.as_deref().map(str::parse::<Sizing>).transpose()?;
        let sizing = house.sizing.or(asked).unwrap_or(Sizing::Sobas);
        let size = Bytes::new(hello.size);
        let setting = Setting {
            size: Some(size),
            ..setting(channel, house.path.or(hello.path.map(KnownPath::from)))?
        };
        // Known before anything moves whether this sizing can be had.
        let controller = sizing.controller(&setting)?;
        let partial = Partial::create(&house.directory, size)?;
        let wanted = controller.needs().probes != Probing::Never;
        let probes = house.probes && hello.probes && wanted;
        Ok(Plan { name, size, sizing, controller, partial, probes })
    }
}

/// One transfer's surroundings.
struct Transfer<'a> {
    house: &'a House,
    channel: &'a Channel,
    session: &'a Session,
    start: Time,
}

impl Transfer<'_> {
    fn run(
        &self,
        plan: Plan,
        mut stream: Stream<'_>,
        line: Option<Arc<Line>>,
        observer: &mut dyn Observer,
    ) -> Result<Outcome, TransferError> {
        let cpu = process::cpu_time();
        let (house, peer) = (self.house, self.channel.peer());
        self.channel.say(&Message::Accept(Accept {
            proof: self.session.receiver_proof(),
            sizing: plan.sizing.to_string(),
            congestion: house.congestion.clone(),
            probes: plan.probes,
        }))?;
        stream.accept();
        let (name, size, sizing) = (plan.name.to_string(), plan.size, plan.sizing);
        observer.opened(&Opened { peer, name, size, sizing });
        let seal = line.as_ref().map(|_| Seal::new(self.session));
        let steering =
            Steering::new(plan.controller, self.start, clock::now(), seal, udp_headers(peer));
        let helm = Helm::new(self.channel, steering, house.clamp_method, line, observer)?;
        let (name, partial) = (plan.name, plan.partial);
        let (verdict, closing) = thread::scope(|scope| {
            let timekeeper = scope.spawn(|| {
                let kept = helm.keep_time();
                if kept.is_err() {
                    self.channel.sever();
                }
                kept
            });
            let received = self.take_in(&mut stream, &helm, &name, partial, sizing);
            helm.done();
            match (timekeeper.join(), received) {
                // The timekeeper cut the connection: its reason is the cause, ours the effect.
                (Ok(Err(cause)), Err(TransferError::PeerGone { .. }))
                    if !matches!(cause, TransferError::PeerGone { .. }) =>
                {
                    Err(cause)
                }
                (_, received) => received,
            }
        })?;
        let end = End {
            role: Role::Receiver,
            peer,
            name: name.as_str(),
            sizing: &sizing.to_string(),
            bytes: size,
            took: clock::now().since(self.start),
            cpu: process::cpu_time().saturating_sub(cpu),
        };
        Ok(Outcome::new(end, verdict, closing))
    }

    /// Content to disk, hash checked, final name, verdict said, closing heard.
    fn take_in(
        &self,
        stream: &mut Stream<'_>,
        helm: &Helm<'_>,
        name: &FileName,
        partial: Partial,
        sizing: Sizing,
    ) -> Result<(Verdict, Option<Closing>), TransferError> {
        let (written, sent) = stream.receive(helm, Sink::new(partial)?)?;
        let hash = verify(&written, &sent)?;
        written.partial.keep(&self.house.directory, name, self.house.overwrite)?;
        let verdict = self.verdict(hash, helm, sizing);
        // Nothing is said after the verdict: a sender that leaves something unread would reset the
        // connection, and its closing with it.
        helm.done();
        self.channel.say(&Message::Verdict(verdict.clone()))?;
        Ok((verdict, stream.closing()))
    }

    fn verdict(&self, hash: String, helm: &Helm<'_>, sizing: Sizing) -> Verdict {
        let (measured, wanted) = helm.ask(|steering| (steering.measured(), steering.wanted()));
        let limit = wanted.and_then(|wanted| self.limit(wanted, measured.window));
        Verdict {
            hash,
            rtt_s: measured.rtt.map(|rtt| rtt.map(|t| t.as_secs_f64())),
            rtt_source: measured.rtt_source,
            probes: measured.probes,
            window_final_bytes: measured.window.map(Bytes::get),
            clamp_method: (sizing != Sizing::Kernel).then(|| self.house.clamp_method.to_string()),
            limits: limit.into_iter().collect(),
        }
    }

    /// The sysctl that kept the window below what was wanted, if one did.
    fn limit(&self, wanted: Bytes, advertised: Option<Bytes>) -> Option<String> {
        let most = sysctl::tcp_rmem().ok()?.most;
        let buffer = options::receive_buffer(self.channel.socket()).ok()?;
        // A buffer below its limit was not held back by it; the window is rounded down to
        // whole segments.
        (buffer >= most && advertised? < wanted.scaled(0.9)).then(|| {
            format!(
                "a window of {wanted} was wanted: raise net.ipv4.tcp_rmem (its third number), now {}, on the receiving host",
                most.get()
            )
        })
    }
}

/// What a controller needs to know of this host and this connection.
fn setting(channel: &Channel, path: Option<KnownPath>) -> Result<Setting, TransferError> {
    let failed = || TransferError::system("reading the socket's limits");
    let info = Info::read(channel.socket()).map_err(failed())?;
    let limits = sysctl::tcp_rmem().map_err(failed())?;
    // The peer's segments are as large as ours unless the path is lopsided.
    let mss = info.snd_mss;
    // Half of a buffer is window where the kernel assumes the worst of its bookkeeping
    // (TCP_DEFAULT_SCALING_RATIO, include/net/tcp.h).
    let max_window = Bytes::new(limits.most.get() / 2);
    Ok(Setting { mss, packet: mss + TCP_HEADERS, max_window, size: None, path })
}

/// Bytes of IP and UDP headers.
fn udp_headers(peer: SocketAddr) -> Bytes {
    // An IPv4 address in IPv6 form travels as IPv4.
    Bytes::new(if peer.ip().to_canonical().is_ipv4() { 28 } else { 48 })
}

fn verify(written: &Written, sent: &str) -> Result<String, TransferError> {
    let received = written.hash.to_hex().to_string();
    if received == sent {
        Ok(received)
    } else {
        Err(TransferError::WrongHash { sent: sent.to_owned(), received })
    }
}
