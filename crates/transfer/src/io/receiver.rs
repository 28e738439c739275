//! The receiving end of one transfer, once its sender is admitted.

use std::thread;

use sweetspot_linux::tcp::{Info, options};
use sweetspot_linux::{clock, process, sysctl};
use sweetspot_sizing::{KnownPath, Setting, Sizing};
use sweetspot_units::{Bytes, Duration, Time};

use super::admission::{Admitted, House};
use super::channel::{Channel, Incoming, READ_SIZE};
use super::helm::Helm;
use super::partial::Partial;
use super::sink::{Sink, Written};
use crate::TransferError;
use crate::name::FileName;
use crate::observer::{Observer, Opened};
use crate::outcome::{End, Outcome, Probes, Role, RttSource};
use crate::protocol::frame::Decoder;
use crate::protocol::{Accept, Arrival, Closing, Hello, Message, ReceiverOrder, Verdict};
use crate::steering::Steering;

/// IPv4 and TCP headers with the timestamp option (RFC 7323).
const HEADERS: Bytes = Bytes::new(52);

/// Receives one file from an admitted sender. `start` is when its connection was accepted.
pub(crate) fn receive(
    house: &House,
    admitted: Admitted,
    start: Time,
    observer: &mut dyn Observer,
) -> Result<Outcome, TransferError> {
    let channel = admitted.channel;
    let mut stream = Stream {
        channel: &channel,
        order: admitted.order,
        decoder: admitted.decoder,
        raw: vec![0; READ_SIZE],
        plain: admitted.rest,
        content: Bytes::ZERO,
    };
    let result = Plan::make(house, &admitted.hello, &channel).and_then(|plan| {
        let proof = admitted.session.receiver_proof();
        channel.say(&Message::Accept(plan.accept(house, proof)))?;
        stream.order.accept();
        plan.run(house, &mut stream, start, observer)
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
    setting: Setting,
    partial: Partial,
}

impl Plan {
    fn make(house: &House, hello: &Hello, channel: &Channel) -> Result<Plan, TransferError> {
        let name: FileName = hello.name.parse()?;
        let target = house.directory.join(name.as_str());
        // Asked early for a clear answer; the final rename asks again, in one step.
        if !house.overwrite && target.symlink_metadata().is_ok() {
            return Err(TransferError::Exists(target));
        }
        let asked = hello.sizing.as_deref().map(str::parse::<Sizing>).transpose()?;
        let sizing = house.sizing.or(asked).unwrap_or(Sizing::Sobas);
        let setting = setting(channel, house.path.or(hello.path.map(KnownPath::from)))?;
        // Known before anything moves whether this sizing can be had.
        sizing.controller(&setting)?;
        let size = Bytes::new(hello.size);
        let partial = Partial::create(&house.directory, size)?;
        Ok(Plan { name, size, sizing, setting, partial })
    }

    fn accept(&self, house: &House, proof: String) -> Accept {
        Accept {
            proof,
            sizing: self.sizing.to_string(),
            congestion: house.congestion.clone(),
            probes: house.probes,
        }
    }

    fn run(
        self,
        house: &House,
        stream: &mut Stream<'_>,
        start: Time,
        observer: &mut dyn Observer,
    ) -> Result<Outcome, TransferError> {
        let cpu = process::cpu_time();
        let peer = stream.channel.peer();
        observer.opened(&Opened {
            peer,
            name: self.name.to_string(),
            size: self.size,
            sizing: self.sizing,
        });
        let controller = self.sizing.controller(&self.setting)?;
        let steering = Steering::new(controller, start, clock::now());
        let helm = Helm::new(stream.channel, steering, house.recipe, observer);
        let sink = Sink::new(self.partial)?;
        let (verdict, closing) = thread::scope(|scope| {
            let clock = scope.spawn(|| {
                let kept = helm.keep_time();
                if kept.is_err() {
                    stream.channel.sever();
                }
                kept
            });
            let received = stream.receive(&helm, sink).and_then(|(written, sent)| {
                let hash = verify(&written, &sent)?;
                written.partial.keep(&house.directory, &self.name, house.overwrite)?;
                let verdict = verdict(hash, &helm, self.sizing, house);
                stream.channel.say(&Message::Verdict(verdict.clone()))?;
                Ok((verdict, stream.closing()))
            });
            helm.done();
            // Where the timekeeper failed first, its error is the cause and ours the effect.
            match clock.join() {
                Ok(Err(cause)) if received.is_err() => Err(cause),
                _ => received,
            }
        })?;
        let end = End {
            role: Role::Receiver,
            peer,
            name: self.name.as_str(),
            sizing: &self.sizing.to_string(),
            bytes: self.size,
            took: clock::now().since(start),
            cpu: process::cpu_time().saturating_sub(cpu),
        };
        Ok(Outcome::new(end, verdict, closing))
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
    // (TCP_DEFAULT_SCALING_RATIO, net/ipv4/tcp.h).
    Ok(Setting { mss, packet: mss + HEADERS, max_window: Bytes::new(limits.most.get() / 2), path })
}

fn verify(written: &Written, sent: &str) -> Result<String, TransferError> {
    let received = written.hash.to_hex().to_string();
    if received == sent {
        Ok(received)
    } else {
        Err(TransferError::WrongHash { sent: sent.to_owned(), received })
    }
}

fn verdict(hash: String, helm: &Helm<'_>, sizing: Sizing, house: &House) -> Verdict {
    Verdict {
        hash,
        rtt_s: None,
        rtt_source: RttSource::Nobody,
        probes: Probes::default(),
        window_final_bytes: helm.ask(|steering| steering.window().map(Bytes::get)),
        recipe: (sizing != Sizing::Kernel).then(|| house.recipe.to_string()),
        limits: Vec::new(),
    }
}

/// The sender's stream: bytes in, content out.
struct Stream<'a> {
    channel: &'a Channel,
    order: ReceiverOrder,
    decoder: Decoder,
    raw: Vec<u8>,
    plain: Vec<u8>,
    content: Bytes,
}

impl Stream<'_> {
    /// Receives all content into `sink`; returns what was written, and the hash that the sender
    /// gave.
    fn receive(
        &mut self,
        helm: &Helm<'_>,
        mut sink: Sink,
    ) -> Result<(Written, String), TransferError> {
        let mut read = Bytes::ZERO;
        let sent = loop {
            let before = self.content;
            let end = self.take_in(&mut sink)?;
            if let Some(hash) = end {
                break hash;
            }
            let failed = TransferError::system("SIOCINQ");
            let unread = options::unread(self.channel.socket()).map_err(failed)?;
            helm.handle_data(read, self.content - before, unread)?;
            read = self.read()?;
        };
        helm.finishing();
        Ok((sink.finish()?, sent))
    }

    /// Passes what was read on to the disk; returns the sender's hash at the end.
    fn take_in(&mut self, sink: &mut Sink) -> Result<Option<String>, TransferError> {
        let plain = std::mem::take(&mut self.plain);
        let (mut input, mut block) = (&plain[..], sink.buffer());
        let mut end = None;
        while let Some(piece) = self
            .decoder
            .next(&mut input)
            .map_err(|e| TransferError::Protocol { error: e.into() })?
        {
            match self.order.handle(piece)? {
                Arrival::Content(bytes) => block.extend_from_slice(bytes),
                Arrival::End { hash } => end = Some(hash),
                Arrival::Failed(reason) => return Err(TransferError::PeerFailed(reason)),
                Arrival::Hello(_) | Arrival::Closing(_) => {}
            }
        }
        self.content += Bytes::new(block.len() as u64);
        if !block.is_empty() {
            sink.write(block)?;
        }
        self.plain = plain;
        self.plain.clear();
        Ok(end)
    }

    fn read(&mut self) -> Result<Bytes, TransferError> {
        match self.channel.read(&mut self.raw, &mut self.plain)? {
            Incoming::Bytes(n) => Ok(n),
            Incoming::Closed => Err(self.channel.gone(self.content)),
        }
    }

    /// The sender's numbers, if it still gives them: the content is safe either way.
    fn closing(&mut self) -> Option<Closing> {
        let deadline = clock::now() + Duration::from_secs(10);
        loop {
            let left = deadline.since(clock::now());
            match self.channel.read_within(&mut self.raw, &mut self.plain, left) {
                Ok(Incoming::Bytes(_)) => {}
                _ => return None,
            }
            let mut input = &self.plain[..];
            if let Ok(Some(piece)) = self.decoder.next(&mut input) {
                return match self.order.handle(piece) {
                    Ok(Arrival::Closing(closing)) => Some(closing),
                    _ => None,
                };
            }
            self.plain.clear();
        }
    }
}
