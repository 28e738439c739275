//! The sending end of a transfer, once both ends know each other.

mod account;
mod listing;
mod steering;

use std::net::TcpStream;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;

use crossbeam_channel::{Receiver, Sender};
use sweetspot_control::{OwnAccount, TransferSummary};
use sweetspot_linux::event_fd::EventFd;
use sweetspot_linux::tcp::options;
use sweetspot_linux::{clock, process};
use sweetspot_protocol::probe::PacketAuthenticator;
use sweetspot_protocol::{
    Accept, Message, Offer, ReceiverItem, ReceiverSummary, Role, SenderOrder, SenderSummary,
    Session,
};
use sweetspot_sizing::Sizing;
use sweetspot_units::{Bytes, Duration, Time};

use crate::control::probe_responder::ProbeResponder;
use crate::control::sender_link::SenderLink;
use crate::files::file_reader::{FileReader, Frames};
use crate::files::outgoing::OutgoingFiles;
use crate::files::packing::Packer;
use crate::files::source::SourceList;
use crate::lock::lock;
use crate::observer::{Agreed, FileLog, TransferObserver, joined};
use crate::options::SendOptions;
use crate::wire::channel::Channel;
use crate::wire::end_signal::EndSignal;
use crate::wire::frame_reader::FrameReader;
use crate::wire::link::{FurtherLinks, Link, named_congestion, set_congestion};
use crate::{Result, TransferError};
use steering::LastControl;

/// The receiver takes no longer to answer an offer, looking at its disk included.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// Buffers between the disk and the connections.
const READ_AHEAD: usize = 16;
/// Threads that read files: two, so that one reads while the other waits for the disk.
const READERS: usize = 2;

pub(crate) struct SendConfig {
    pub options: SendOptions,
    pub list: SourceList,
    pub log: Option<Arc<dyn FileLog>>,
}

impl SendConfig {
    /// These options, with their sources checked.
    pub fn new(options: SendOptions) -> Result<SendConfig> {
        let list = SourceList::new(&options.sources)?;
        // Before a connection is made, or waited for.
        if let Some(name) = &options.congestion {
            named_congestion(name, options::check_congestion(name))?;
        }
        Ok(SendConfig { options, list, log: None })
    }
}

/// Sends to the receiver at the other end of `link`. `start` is when the connection was made.
pub(crate) fn send(
    config: &SendConfig,
    link: Link,
    further: &FurtherLinks<'_>,
    start: Time,
    reconnects: u32,
    observer: &mut dyn TransferObserver,
) -> Result<TransferSummary> {
    let SendConfig { options, list, log } = config;
    let channel = Arc::clone(&link.channel);
    let result = (|| {
        if let Some(writer) = &options.writer {
            channel.write_slowly(Arc::clone(writer))?;
        }
        if let Some(rate) = options.rate_limit {
            channel.limit_rate(rate)?;
        }
        let sending = Sending {
            options,
            channel: &channel,
            files: OutgoingFiles::new(options.dry_run, joined([log.clone(), observer.file_log()])),
            order: Mutex::default(),
            probe_responder: offer(options, list, &link, further, observer)?,
            // After a broken path, the receiver's existing data are compared.
            early_bytes: if reconnects == 0 { link.early_bytes } else { 0 },
            accept: OnceLock::new(),
            start,
            links: Mutex::default(),
            last_control: Mutex::default(),
            streams: AtomicU32::new(1),
            over: EndSignal::default(),
            failed: Mutex::default(),
            event_fd: EventFd::new().map_err(TransferError::system("making an eventfd"))?,
        };
        sending.run(list, link.frames, further, reconnects, observer)
    })();
    if let Err(error) = &result {
        channel.part(error);
    }
    result
}

/// Makes the offer. Returns the probe responder, if this end can answer probes.
fn offer(
    options: &SendOptions,
    list: &SourceList,
    link: &Link,
    further: &FurtherLinks<'_>,
    observer: &mut dyn TransferObserver,
) -> Result<Option<ProbeResponder>> {
    // The connecting end knows the other's UDP port: a listening sender does not answer probes.
    let can_answer = options.probes && further.dial.is_some();
    let probe_responder = probe_responder(&link.channel, &link.session, can_answer, observer);
    link.channel.send_message(&Message::Offer(Offer {
        name: list.offered.as_str().into(),
        size: list.size.map(Bytes::get),
        one_file: list.one_file,
        many: list.many,
        checksum: options.checksum,
        dry_run: options.dry_run,
        sizing: options.sizing.map(|sizing| sizing.to_string().into()),
        congestion: options.congestion.as_deref().map(Into::into),
        path: options.path.map(Into::into),
        probes: can_answer,
        streams: options.streams,
        greedy: options.greedy,
        attributes: options.sources.attributes,
        contents_of: list.contents_of.clone(),
    }))?;
    // On the heels of the offer, so that the receiver can probe as soon as it has answered.
    probe_responder.iter().for_each(ProbeResponder::punch);
    Ok(probe_responder)
}

/// Answers probes if `wanted` and if this host allows it.
fn probe_responder(
    channel: &Arc<Channel>,
    session: &Session,
    wanted: bool,
    observer: &mut dyn TransferObserver,
) -> Option<ProbeResponder> {
    if !wanted {
        return None;
    }
    let probe_responder =
        ProbeResponder::new(Arc::clone(channel), PacketAuthenticator::new(session));
    if let Err(error) = &probe_responder {
        observer.note(&format!("probes cannot be answered: {error}"));
    }
    probe_responder.ok()
}

struct Sending<'a> {
    options: &'a SendOptions,
    /// The first connection, on which both ends speak.
    channel: &'a Arc<Channel>,
    files: OutgoingFiles,
    order: Mutex<SenderOrder>,
    probe_responder: Option<ProbeResponder>,
    /// Content that the receiver takes before it has answered, bytes.
    early_bytes: u32,
    /// The receiver's answer to the offer, once it has arrived.
    accept: OnceLock<Accept>,
    start: Time,
    links: Mutex<Vec<Arc<SenderLink>>>,
    /// The receiver's last steering message.
    last_control: Mutex<LastControl>,
    /// How many connections the receiver wants.
    streams: AtomicU32,
    over: EndSignal,
    /// Why a thread beside the main one ended the transfer.
    failed: Mutex<Option<TransferError>>,
    event_fd: EventFd,
}

impl Sending<'_> {
    fn run(
        &self,
        list: &SourceList,
        mut frames: FrameReader,
        further: &FurtherLinks<'_>,
        reconnects: u32,
        observer: &mut dyn TransferObserver,
    ) -> Result<TransferSummary> {
        let cpu = process::cpu_time();
        let connects = further.dial.is_some();
        let (requests, wanted) = crossbeam_channel::unbounded();
        let (out, ready) = crossbeam_channel::bounded::<Frames>(READ_AHEAD);
        let (spent, empty) = crossbeam_channel::bounded(READ_AHEAD * 2);
        let outcome = thread::scope(|scope| {
            // Not after the offer was accepted: the receiver answers both in the same round trip.
            let lister = scope.spawn(|| {
                let listed = self.list(list);
                listed.unwrap_or_else(|error| self.fail(error));
            });
            let accepted = self.wait_for_accept(&mut frames);
            let accepted = accepted.and_then(|accept| self.begin(list, accept, observer));
            if let Err(error) = accepted {
                self.stop_listening(&error);
                return Err(self.cause(error));
            }
            if let Some(probe_responder) = self.probe_responder() {
                scope.spawn(|| probe_responder.run());
            }
            scope.spawn(|| self.sample(observer));
            for _ in 0..READERS {
                let mut reader = self.reader(&out, &empty);
                let wanted = wanted.clone();
                scope.spawn(move || {
                    if let Err(error) = reader.run(&wanted) {
                        self.fail(error);
                    }
                });
            }
            drop((out, empty, wanted));
            let (first_ready, first_spent) = (ready.clone(), spent.clone());
            let channel = self.channel;
            scope.spawn(move || self.write(channel, &first_ready, &first_spent));
            scope.spawn(move || self.join_links(further, &ready, &spent));
            let listener = scope.spawn(move || {
                let received = self.listen(frames, &requests);
                if let Err(error) = &received {
                    self.stop_listening(error);
                }
                received
            });
            let _ = lister.join();
            if self.files.wait_until_sent() {
                lock(&self.order).end();
                self.channel.send_message(&Message::End).unwrap_or_else(|error| self.fail(error));
                if !connects {
                    // The content is safe, whether or not the receiver hears our numbers.
                    let _ = self.summarise_once_left();
                }
            }
            let received = listener.join().unwrap_or(Err(TransferError::Interrupted));
            self.close(received, connects)
        });
        let (summary, closing) = outcome?;
        let cpu = process::cpu_time().saturating_sub(cpu);
        self.account(list, summary, closing, cpu, reconnects)
    }

    /// A reader of files, which puts frames into `out` and takes used buffers from `empty`.
    fn reader(&self, out: &Sender<Frames>, empty: &Receiver<Vec<u8>>) -> FileReader<'_> {
        FileReader {
            files: &self.files,
            channel: self.channel,
            out: out.clone(),
            spent: empty.clone(),
            packer: self.options.compress.then(Packer::new).flatten(),
            small: Vec::new(),
            small_content: 0,
        }
    }

    /// Ends all work, after the receiver's summary was `received`. Returns it with this end's counts.
    fn close(
        &self,
        received: Result<ReceiverSummary>,
        connects: bool,
    ) -> Result<(ReceiverSummary, Option<SenderSummary>)> {
        self.over.set();
        self.files.end();
        self.event_fd.signal();
        if let Some(probe_responder) = self.probe_responder() {
            probe_responder.done();
        }
        let closing = received.is_ok().then(|| self.closing());
        if let (true, Some(Ok(closing))) = (connects, &closing) {
            let _ = self.channel.send_message(&Message::SenderSummary(closing.clone()));
        }
        for link in lock(&self.links).iter().skip(1) {
            link.channel.sever();
        }
        let summary = received.map_err(|error| self.cause(error))?;
        match lock(&self.failed).take() {
            Some(cause) => Err(cause),
            None => Ok((summary, closing.transpose()?)),
        }
    }

    /// The transfer's summary at this end.
    fn account(
        &self,
        list: &SourceList,
        mut summary: ReceiverSummary,
        closing: Option<SenderSummary>,
        cpu: Duration,
        reconnects: u32,
    ) -> Result<TransferSummary> {
        let accept = self.accept.get().ok_or(TransferError::Interrupted)?;
        let failures = self.files.conclude(&mut summary.files)?;
        let end = OwnAccount {
            role: Role::Sender,
            peer: self.channel.peer(),
            name: &list.name.as_str().into(),
            sizing: accept.sizing.raw(),
            bytes: Bytes::new(summary.content_bytes),
            took: clock::now().since(self.start),
            cpu,
            reconnects,
            failures: &failures,
        };
        let mut summary = TransferSummary::new(end, summary, closing);
        summary.deleted = self.files.deleted_names();
        if self.options.dry_run {
            self.files.take_dry_run().conclude(&mut summary);
        }
        summary.skipped = self.files.skipped_names();
        summary.special_bits_dropped = self.files.special_bits();
        summary.present_bytes = self.files.present().get();
        summary.grown = self.files.grown_names();
        summary.some_refused = self.files.some_refused();
        Ok(summary)
    }

    fn wait_for_accept(&self, frames: &mut FrameReader) -> Result<Accept> {
        let deadline = clock::now() + ANSWER_TIMEOUT;
        frames.wait_for(deadline, |part| match lock(&self.order).handle(part)? {
            ReceiverItem::Message(Message::Accept(accept)) => Ok(Some(accept)),
            ReceiverItem::Message(Message::Refuse { reason } | Message::Failed { reason }) => {
                Err(TransferError::Refused(reason))
            }
            _ => Ok(None),
        })
    }

    /// Content may be sent, in the way that the receiver asks for.
    fn begin(
        &self,
        list: &SourceList,
        accept: Accept,
        observer: &mut dyn TransferObserver,
    ) -> Result<()> {
        let sizing = accept.sizing.parse::<Sizing>()?;
        let _ = self.accept.set(accept);
        self.add_link(self.channel)?;
        let (peer, name, size) = (self.channel.peer(), list.name.as_str().into(), list.size);
        observer.opened(&Agreed { peer, name, size, sizing });
        Ok(())
    }

    /// Sets the congestion control that a user named, at either end.
    fn set_named_congestion(&self, socket: &TcpStream) -> Result<()> {
        let requested = self.accept.get().and_then(|accept| accept.congestion.as_ref());
        match (requested, &self.options.congestion) {
            (Some(name), _) => {
                set_congestion(socket, name.raw()).map_err(TransferError::requested_by_peer)
            }
            (None, Some(name)) => set_congestion(socket, name),
            (None, None) => Ok(()),
        }
    }

    /// Answers probes, if the receiver sends them.
    fn probe_responder(&self) -> Option<&ProbeResponder> {
        let probes = self.accept.get().is_some_and(|accept| accept.probes);
        self.probe_responder.as_ref().filter(|_| probes)
    }

    /// Whether a user chose the congestion control, at either end.
    fn is_congestion_named(&self) -> bool {
        let here = self.options.congestion.is_some() && !self.options.may_switch;
        here || self.accept.get().is_some_and(|accept| accept.congestion.is_some())
    }

    /// The reason why the transfer ended, if reading from the receiver failed with `error`.
    fn cause(&self, error: TransferError) -> TransferError {
        match (error, lock(&self.failed).take()) {
            // The receiver's last message before it hung up gives the reason.
            (
                reported @ (TransferError::Refused(_)
                | TransferError::PeerFailed(_)
                | TransferError::Stopped
                | TransferError::Protocol { .. }),
                _,
            ) => reported,
            (TransferError::PeerGone { peer, .. }, None | Some(TransferError::Interrupted))
            | (_, Some(TransferError::PeerGone { peer, .. })) => {
                TransferError::PeerGone { peer, done: self.files.so_far().0 }
            }
            (error, None | Some(TransferError::Interrupted)) => error,
            (_, Some(cause)) => cause,
        }
    }

    /// Nothing of the receiver can be read any more, because of `error`.
    fn stop_listening(&self, error: &TransferError) {
        self.stop(error);
        // After a failure at this end, which has stopped reading, the receiver must still be told of it.
        if error.is_caused_by_peer() && lock(&self.failed).is_none() {
            // The receiver may never open its window again: a write would block for a minute.
            self.channel.sever();
        }
    }

    /// Ends the transfer from a thread beside the main one.
    fn fail(&self, error: TransferError) {
        if self.over.is_set() {
            return;
        }
        // Noted first: stopping wakes the thread that reads, which then asks for the cause.
        let mut failed = lock(&self.failed);
        self.stop(failed.get_or_insert(error));
    }

    /// Wakes all threads, because the transfer ends early.
    fn stop(&self, error: &TransferError) {
        self.files.end();
        // The receiver's last message can still be read after it hung up, and this end's last message still be sent.
        let ours = !matches!(error, TransferError::PeerGone { .. } | TransferError::Silent { .. });
        if ours {
            self.channel.stop_reading();
        }
        for link in lock(&self.links).iter().skip(1) {
            link.channel.sever();
        }
    }

    /// Writes frames to one connection until there are no more.
    fn write(&self, channel: &Channel, ready: &Receiver<Frames>, spent: &Sender<Vec<u8>>) {
        for frames in ready {
            let length = frames.bytes.len();
            // The receiver may have given a file up while its pieces waited here.
            if !frames.entry.is_some_and(|entry| self.files.is_given_up(entry)) {
                self.note_if_dry(channel);
                self.files.writing(frames.content, length);
                if let Err(error) = channel.write(&[&frames.bytes]) {
                    return self.fail(error);
                }
            }
            self.files.written(clock::now(), length);
            let _ = spent.try_send(frames.bytes);
        }
    }

    /// Notes that the connection ran dry: all that was written before has left already.
    fn note_if_dry(&self, channel: &Channel) {
        let Some(probe_responder) = self.probe_responder() else { return };
        let begun = self.files.so_far().0 > Bytes::ZERO;
        if begun && options::unsent(channel.socket()).is_ok_and(|n| n == Bytes::ZERO) {
            probe_responder.starved();
        }
    }
}
