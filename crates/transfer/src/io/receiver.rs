//! The receiving end of one transfer, once its sender is admitted.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;

use sweetspot_linux::tcp::{Info, options};
use sweetspot_linux::{clock, process, sysctl};
use sweetspot_protocol::probe::PacketAuthenticator;
use sweetspot_protocol::{
    Accept, ControlLoop, FileName, Hello, Message, OwnAccount, ReceiverSummary, Role,
    SenderSummary, Session, TransferSummary,
};
use sweetspot_sizing::{Controller, ControllerConfig, KnownPath, Probing, Sizing};
use sweetspot_units::{Bytes, Time};

use super::admission::{Admitted, ServerConfig};
use super::channel::Channel;
use super::content_stream::ContentStream;
use super::receiver_control::ReceiverControl;
use super::sink::{Sink, WrittenFile};
use super::temp_file::TempFile;
use super::udp_demux::{Registration, UdpDemux};
use crate::TransferError;
use crate::observer::{Agreed, TransferObserver};

/// IPv4 and TCP headers with the timestamp option (RFC 7323).
const TCP_HEADERS: Bytes = Bytes::new(52);

/// Receives one file from an admitted sender. `start` is when its connection was accepted.
pub(crate) fn receive(
    config: &ServerConfig,
    udp_demux: &UdpDemux,
    admitted: Admitted,
    start: Time,
    observer: &mut dyn TransferObserver,
) -> Result<TransferSummary, TransferError> {
    let Admitted { channel, session, hello, handshake } = admitted;
    let result = Accepted::make(config, &hello, &channel).and_then(|plan| {
        let registration = plan.probes.then(|| {
            let opened = udp_demux.register(session.probe_id(), PacketAuthenticator::new(&session));
            opened.map_err(TransferError::system("preparing probes"))
        });
        let transfer = RunningTransfer { config, channel: &channel, session: &session, start };
        let registration = registration.transpose()?;
        let result = transfer.run(
            plan,
            ContentStream::new(&channel, handshake),
            registration.clone(),
            observer,
        );
        registration.iter().for_each(|registration| udp_demux.deregister(registration));
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
struct Accepted {
    name: FileName,
    size: Bytes,
    sizing: Sizing,
    controller: Box<dyn Controller + Send>,
    temp_file: TempFile,
    probes: bool,
}

impl Accepted {
    fn make(
        config: &ServerConfig,
        hello: &Hello,
        channel: &Channel,
    ) -> Result<Accepted, TransferError> {
        let name: FileName = hello.name.parse()?;
        let target = config.directory.join(name.as_str());
        // Asked early for a clear answer; the final rename asks again, in one step.
        match target.symlink_metadata() {
            Ok(_) if !config.overwrite => return Err(TransferError::Exists(target)),
            Ok(existing) if existing.is_dir() => return Err(TransferError::IsDirectory(target)),
            _ => {}
        }
        let asked = hello.sizing.as_deref().map(str::parse::<Sizing>).transpose()?;
        let sizing = config.sizing.or(asked).unwrap_or(Sizing::Sobas);
        let size = Bytes::new(hello.size);
        let controller_config = ControllerConfig {
            size: Some(size),
            ..controller_config(channel, config.path.or(hello.path.map(KnownPath::from)))?
        };
        // Known before anything moves whether this sizing can be had.
        let controller = sizing.controller(&controller_config)?;
        let temp_file = TempFile::create(&config.directory, size)?;
        let wanted = controller.needs().probes != Probing::Never;
        let probes = config.probes && hello.probes && wanted;
        Ok(Accepted { name, size, sizing, controller, temp_file, probes })
    }
}

/// One transfer's surroundings.
struct RunningTransfer<'a> {
    config: &'a ServerConfig,
    channel: &'a Channel,
    session: &'a Session,
    start: Time,
}

impl RunningTransfer<'_> {
    fn run(
        &self,
        plan: Accepted,
        mut stream: ContentStream<'_>,
        registration: Option<Arc<Registration>>,
        observer: &mut dyn TransferObserver,
    ) -> Result<TransferSummary, TransferError> {
        let cpu = process::cpu_time();
        let (config, peer) = (self.config, self.channel.peer());
        self.channel.say(&Message::Accept(Accept {
            proof: self.session.receiver_proof(),
            sizing: plan.sizing.to_string(),
            congestion: config.congestion.clone(),
            probes: plan.probes,
        }))?;
        stream.accept();
        let (name, size, sizing) = (plan.name.to_string(), plan.size, plan.sizing);
        observer.opened(&Agreed { peer, name, size, sizing });
        let authenticator = registration.as_ref().map(|_| PacketAuthenticator::new(self.session));
        let control_loop = ControlLoop::new(
            plan.controller,
            self.start,
            clock::now(),
            authenticator,
            udp_headers(peer),
        );
        let receiver_control = ReceiverControl::new(
            self.channel,
            control_loop,
            config.clamp_method,
            registration,
            observer,
        )?;
        let (name, temp_file) = (plan.name, plan.temp_file);
        let (summary, closing) = thread::scope(|scope| {
            let timekeeper = scope.spawn(|| {
                let kept = receiver_control.keep_time();
                if kept.is_err() {
                    self.channel.sever();
                }
                kept
            });
            let received = self.take_in(&mut stream, &receiver_control, &name, temp_file, sizing);
            receiver_control.done();
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
        let end = OwnAccount {
            role: Role::Receiver,
            peer,
            name: name.as_str(),
            sizing: &sizing.to_string(),
            bytes: size,
            took: clock::now().since(self.start),
            cpu: process::cpu_time().saturating_sub(cpu),
        };
        Ok(TransferSummary::new(end, summary, closing))
    }

    /// Content to disk, hash checked, final name, summary sent, the one of the sender received.
    fn take_in(
        &self,
        stream: &mut ContentStream<'_>,
        receiver_control: &ReceiverControl<'_>,
        name: &FileName,
        temp_file: TempFile,
        sizing: Sizing,
    ) -> Result<(ReceiverSummary, Option<SenderSummary>), TransferError> {
        let (written, sent) = stream.receive(receiver_control, Sink::new(temp_file)?)?;
        let hash = verify(&written, &sent)?;
        written.temp_file.keep(&self.config.directory, name, self.config.overwrite)?;
        let summary = self.summary(hash, receiver_control, sizing);
        // Nothing is sent after the summary: a sender that leaves something unread would reset the
        // connection, and its closing with it.
        receiver_control.done();
        self.channel.say(&Message::ReceiverSummary(summary.clone()))?;
        Ok((summary, stream.closing()))
    }

    fn summary(
        &self,
        hash: String,
        receiver_control: &ReceiverControl<'_>,
        sizing: Sizing,
    ) -> ReceiverSummary {
        let (measured, wanted) =
            receiver_control.ask(|control_loop| (control_loop.measured(), control_loop.wanted()));
        let limit = wanted.and_then(|wanted| self.limit(wanted, measured.window));
        ReceiverSummary {
            hash,
            rtt_s: measured.rtt.map(|rtt| rtt.map(|t| t.as_secs_f64())),
            rtt_source: measured.rtt_source,
            probes: measured.probes,
            window_final_bytes: measured.window.map(Bytes::get),
            clamp_method: (sizing != Sizing::Kernel).then(|| self.config.clamp_method.to_string()),
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
fn controller_config(
    channel: &Channel,
    path: Option<KnownPath>,
) -> Result<ControllerConfig, TransferError> {
    let failed = || TransferError::system("reading the socket's limits");
    let info = Info::read(channel.socket()).map_err(failed())?;
    let limits = sysctl::tcp_rmem().map_err(failed())?;
    // The peer's segments are as large as ours unless the path is lopsided.
    let mss = info.snd_mss;
    // Half of a buffer is window where the kernel assumes the worst of its bookkeeping
    // (TCP_DEFAULT_SCALING_RATIO, include/net/tcp.h).
    let max_window = Bytes::new(limits.most.get() / 2);
    Ok(ControllerConfig { mss, packet: mss + TCP_HEADERS, max_window, size: None, path })
}

/// Bytes of IP and UDP headers.
fn udp_headers(peer: SocketAddr) -> Bytes {
    // An IPv4 address in IPv6 form travels as IPv4.
    Bytes::new(if peer.ip().to_canonical().is_ipv4() { 28 } else { 48 })
}

fn verify(written: &WrittenFile, sent: &str) -> Result<String, TransferError> {
    let received = written.hash.to_hex().to_string();
    if received == sent {
        Ok(received)
    } else {
        Err(TransferError::WrongHash { sent: sent.to_owned(), received })
    }
}
