//! The sending end of a transfer, once both ends know each other.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;

use crossbeam_channel::{Receiver, Sender};
use sweetspot_control::series::{SeriesRecord, SeriesRow};
use sweetspot_control::{OwnAccount, ROW_INTERVAL, TransferSummary};
use sweetspot_linux::event_fd::{EventFd, wait_readable};
use sweetspot_linux::tcp::{Info, options};
use sweetspot_linux::{clock, process};
use sweetspot_protocol::frame::MAX_RECORD_BYTES;
use sweetspot_protocol::probe::PacketAuthenticator;
use sweetspot_protocol::record::{Entry, EntryKind, MAX_BATCH, Record};
use sweetspot_protocol::{
    Accept, Message, Offer, ProtocolError, ReceiverItem, ReceiverSummary, Role, SenderOrder,
    SenderSummary, Session,
};
use sweetspot_sizing::{CongestionChoice, Sizing};
use sweetspot_units::{Bytes, Duration, Rate, Time};

use crate::TransferError;
use crate::control::limit_watch::LimitWatch;
use crate::control::probe_responder::ProbeResponder;
use crate::control::sender_link::{self, LinkState, SenderLink};
use crate::files::file_reader::{self, FileReader, Frames};
use crate::files::outgoing::{OutgoingFiles, Want};
use crate::files::source::{Listed, SourceFile, SourceList};
use crate::limits::{MAX_EARLY_CONTENT, MAX_PHASE_LENGTH};
use crate::lock::lock;
use crate::observer::{Agreed, FileLog, Progress, TransferObserver};
use crate::options::SendOptions;
use crate::wire::channel::Channel;
use crate::wire::frame_reader::FrameReader;
use crate::wire::link::{FurtherLinks, Link, set_congestion};
use crate::wire::over::Over;
use crate::wire::stall::StallWatch;

/// Faster than any path, yet finite: a socket that was paced once is paced for good, then at twice
/// cwnd per round trip in slow start (tcp_update_pacing_rate, net/ipv4/tcp_input.c).
const UNLIMITED_PACE: Rate = Rate::from_mbit_per_second(1_000_000);
/// The slowest pace: one full packet per second.
const MIN_PACE: Rate = Rate::from_bits_per_second(12_000);
/// The receiver takes no longer to answer an offer, looking at its disk included.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// Buffers between the disk and the connections.
const READ_AHEAD: usize = 16;
/// Threads that read files: two, so that one reads while the other waits for the disk.
const READERS: usize = 2;
/// The interval between checks whether all content has left.
const UNSENT_INTERVAL: Duration = Duration::from_millis(2);
/// The interval after which a keepalive is sent, so that the receiver knows that this end is there.
const BUSY_INTERVAL: Duration = Duration::from_secs(5);

/// The files to send, and the options.
pub(crate) struct SendConfig {
    pub options: SendOptions,
    pub list: SourceList,
    /// Receives a record of each file.
    pub log: Option<Arc<dyn FileLog>>,
}

impl SendConfig {
    /// These options, with their sources checked.
    pub fn new(options: SendOptions) -> Result<SendConfig, TransferError> {
        let list = SourceList::new(&options.sources)?;
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
) -> Result<TransferSummary, TransferError> {
    let SendConfig { options, list, log } = config;
    let channel = Arc::clone(&link.channel);
    let result = (|| {
        if let Some(writer) = &options.writer {
            channel.write_slowly(Arc::clone(writer))?;
        }
        let sending = Sending {
            options,
            channel: &channel,
            files: OutgoingFiles::new(options.dry_run, log.clone()),
            order: Mutex::default(),
            probe_responder: offer(options, list, &link, further, observer)?,
            // After a broken path, the receiver's existing data are compared.
            early_bytes: if reconnects == 0 { link.early_bytes } else { 0 },
            accept: OnceLock::new(),
            start,
            links: Mutex::default(),
            last_control: Mutex::default(),
            streams: AtomicU32::new(1),
            over: Over::default(),
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
) -> Result<Option<ProbeResponder>, TransferError> {
    // The connecting end knows the other's UDP port: a listening sender does not answer probes.
    let can_answer = options.probes && further.dial.is_some();
    let probe_responder = probe_responder(&link.channel, &link.session, can_answer, observer);
    link.channel.say(&Message::Offer(Offer {
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

/// A transfer that runs.
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
    over: Over,
    /// Why a thread beside the main one ended the transfer.
    failed: Mutex<Option<TransferError>>,
    event_fd: EventFd,
}

/// The content of the receiver's last steering message.
#[derive(Default, Clone)]
struct LastControl {
    pacing: Option<Rate>,
    window: Option<Bytes>,
    congestion: CongestionChoice,
    phase: Option<String>,
}

impl Sending<'_> {
    fn run(
        &self,
        list: &SourceList,
        mut frames: FrameReader,
        further: &FurtherLinks<'_>,
        reconnects: u32,
        observer: &mut dyn TransferObserver,
    ) -> Result<TransferSummary, TransferError> {
        let cpu = process::cpu_time();
        let connects = further.dial.is_some();
        let (wants, wanted) = crossbeam_channel::unbounded();
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
                let mut reader = FileReader {
                    files: &self.files,
                    channel: self.channel,
                    out: out.clone(),
                    spent: empty.clone(),
                    small: Vec::new(),
                    small_content: 0,
                };
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
                let heard = self.listen(frames, &wants);
                if let Err(error) = &heard {
                    self.stop_listening(error);
                }
                heard
            });
            let _ = lister.join();
            if self.files.wait_until_sent() {
                lock(&self.order).end();
                self.channel.say(&Message::End).unwrap_or_else(|error| self.fail(error));
                if !connects {
                    // The content is safe, whether or not the receiver hears our numbers.
                    let _ = self.summarise_once_left();
                }
            }
            let heard = listener.join().unwrap_or(Err(TransferError::Interrupted));
            self.over.set();
            self.files.end();
            self.event_fd.signal();
            if let Some(probe_responder) = self.probe_responder() {
                probe_responder.done();
            }
            let closing = heard.is_ok().then(|| self.closing());
            if let (true, Some(Ok(closing))) = (connects, &closing) {
                let _ = self.channel.say(&Message::SenderSummary(closing.clone()));
            }
            for link in lock(&self.links).iter().skip(1) {
                link.channel.sever();
            }
            match heard {
                Err(error) => Err(self.cause(error)),
                Ok(summary) => match lock(&self.failed).take() {
                    Some(cause) => Err(cause),
                    None => Ok((summary, closing.transpose()?)),
                },
            }
        });
        let (mut summary, closing) = outcome?;
        let accept = self.accept.get().ok_or(TransferError::Interrupted)?;
        let failures = self.files.conclude(&mut summary.files)?;
        let end = OwnAccount {
            role: Role::Sender,
            peer: self.channel.peer(),
            name: &list.name.as_str().into(),
            sizing: accept.sizing.raw(),
            bytes: Bytes::new(summary.content_bytes),
            took: clock::now().since(self.start),
            cpu: process::cpu_time().saturating_sub(cpu),
            reconnects,
            failures: &failures,
        };
        let mut summary = TransferSummary::new(end, summary, closing);
        summary.would_move = self.files.would_move();
        Ok(summary)
    }

    fn wait_for_accept(&self, frames: &mut FrameReader) -> Result<Accept, TransferError> {
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
    ) -> Result<(), TransferError> {
        let sizing = accept.sizing.parse::<Sizing>()?;
        if let Some(congestion) = &accept.congestion {
            set_congestion(self.channel.socket(), congestion.raw())?;
        }
        let (peer, name, size) = (self.channel.peer(), list.name.as_str().into(), list.size);
        observer.opened(&Agreed { peer, name, size, sizing });
        let _ = self.accept.set(accept);
        self.add_link(self.channel)
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
                said @ (TransferError::Refused(_)
                | TransferError::PeerFailed(_)
                | TransferError::Protocol { .. }),
                _,
            ) => said,
            (error, None | Some(TransferError::Interrupted)) => error,
            (_, Some(cause)) => cause,
        }
    }

    /// Nothing of the receiver can be read any more, because of `error`.
    fn stop_listening(&self, error: &TransferError) {
        self.stop(error);
        if error.is_peers_doing() {
            // The receiver may never open its window again: a write would block for a minute.
            self.channel.sever();
        }
    }

    /// Ends the transfer from a thread beside the main one.
    fn fail(&self, error: TransferError) {
        if self.over.is_set() {
            return;
        }
        self.stop(&error);
        lock(&self.failed).get_or_insert(error);
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

    /// Lists everything that there is.
    fn list(&self, list: &SourceList) -> Result<(), TransferError> {
        let (mut entries, mut files) = (Vec::new(), Vec::new());
        let (mut count, mut with_content, mut bytes) = (0u32, 0u32, 0u64);
        let mut last = clock::now();
        list.list(|item| {
            match item {
                Listed::LeftOut(reason) => self.files.left_out(reason),
                Listed::Entry(entry, file) => {
                    count += 1;
                    with_content += u32::from(file.is_some());
                    bytes += file.as_ref().and_then(SourceFile::size).unwrap_or(0);
                    entries.push(entry);
                    files.push(file);
                }
            }
            // At first a few, so that the receiver does not wait for a slow disk to be listed.
            let waited = clock::now().since(last) >= Duration::from_millis(5);
            if entries.len() < MAX_BATCH && !waited || entries.is_empty() {
                return Ok(());
            }
            last = clock::now();
            let first = count - entries.len() as u32;
            self.tell_entries(first, &mut entries, &mut files)
        })?;
        let first = count - entries.len() as u32;
        self.tell_entries(first, &mut entries, &mut files)?;
        self.files.listed(u64::from(with_content), Bytes::new(bytes));
        self.channel.tell(&Record::Listed { entries: count, files: with_content, bytes })
    }

    /// Lists entries; the first has the number `first`.
    fn tell_entries(
        &self,
        first: u32,
        entries: &mut Vec<Entry>,
        files: &mut Vec<Option<SourceFile>>,
    ) -> Result<(), TransferError> {
        if entries.is_empty() {
            return Ok(());
        }
        let early = if first == 0 { self.beginnings(files) } else { Vec::new() };
        self.files.send_early(early.iter().cloned());
        lock(&self.order).listed(entries.len() as u64);
        if !self.files.listing(files.drain(..)) {
            return Err(TransferError::Interrupted);
        }
        // Extended attributes make entries large: as many go together as fit a record.
        let mut batch = Vec::new();
        let mut size = 0;
        for entry in entries.drain(..) {
            let length = encoded_bound(&entry);
            if size + length > MAX_RECORD_BYTES as usize && !batch.is_empty() {
                self.channel.tell(&Record::Entries(std::mem::take(&mut batch)))?;
                size = 0;
            }
            size += length;
            batch.push(entry);
        }
        let early = early.into_iter().map(|(entry, content)| Record::Early { entry, content });
        let records = [Record::Entries(batch)].into_iter().chain(early);
        let frames: Vec<Vec<u8>> = records.map(|record| record.to_frame()).collect();
        // In one write: the rest of these files must not overtake it.
        self.channel.write(&frames.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }

    /// Content that may leave before the receiver has answered, of the files listed first: as much as the connection carries
    /// until the answers arrive. It would idle otherwise, so content that the receiver does not want costs no time.
    fn beginnings(&self, files: &[Option<SourceFile>]) -> Vec<(u32, Vec<u8>)> {
        let unlikely = self.options.dry_run || self.options.checksum;
        let Some(info) = Info::read(self.channel.socket()).ok().filter(|_| !unlikely) else {
            return Vec::new();
        };
        let window = info.snd_mss.get() * u64::from(info.snd_cwnd.saturating_sub(info.unacked));
        let mut left = window.min(self.early_bytes.min(MAX_EARLY_CONTENT).into());
        let mut early = Vec::new();
        for (entry, file) in (0..).zip(files) {
            if left == 0 {
                break;
            }
            if let Some(content) = file.as_ref().and_then(|file| file_reader::beginning(file, left))
            {
                left -= content.len() as u64;
                early.push((entry, content));
            }
        }
        early
    }

    /// Writes frames to one connection until there are no more.
    fn write(&self, channel: &Channel, ready: &Receiver<Frames>, spent: &Sender<Vec<u8>>) {
        for frames in ready {
            // The receiver may have given a file up while its pieces waited here.
            if !frames.entry.is_some_and(|entry| self.files.is_given_up(entry)) {
                self.note_if_dry(channel);
                self.files.writing(frames.content);
                if let Err(error) = channel.write(&[&frames.bytes]) {
                    return self.fail(error);
                }
            }
            self.files.written();
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

    /// Makes the connections that the receiver wants, where this end connects, and takes in those that arrive.
    fn join_links(
        &self,
        further: &FurtherLinks<'_>,
        ready: &Receiver<Frames>,
        spent: &Sender<Vec<u8>>,
    ) {
        thread::scope(|scope| {
            let wanted = || self.streams.load(Ordering::Acquire);
            further.run(&self.over, wanted, |link| {
                let channel = link.channel;
                channel.share_last_heard(self.channel);
                if self.add_link(&channel).is_ok() {
                    scope.spawn(move || self.write(&channel, ready, spent));
                }
            });
        });
    }

    fn add_link(&self, channel: &Arc<Channel>) -> Result<(), TransferError> {
        let link = SenderLink::new(channel, self.is_congestion_named(), self.options.send_buffer)?;
        lock(&self.links).push(Arc::new(link));
        let control = lock(&self.last_control).clone();
        self.apply(&control)
    }

    /// Carries out the receiver's messages until its summary, which it returns.
    fn listen(
        &self,
        mut frames: FrameReader,
        wants: &Sender<Vec<Want>>,
    ) -> Result<ReceiverSummary, TransferError> {
        loop {
            let mut control = None;
            while let Some(part) = frames.next_part()? {
                let item = lock(&self.order).handle(part)?;
                match item {
                    ReceiverItem::Answers(answers) => self.files.answered(answers, wants)?,
                    ReceiverItem::Hashes(entry, first, hashes) => {
                        self.files.hashes(entry, first, hashes)?;
                    }
                    ReceiverItem::Results(results) => self.files.results(results)?,
                    ReceiverItem::Message(Message::ReceiverSummary(summary)) => return Ok(summary),
                    ReceiverItem::Message(message) => {
                        control = self.obey(message)?.or(control);
                    }
                }
            }
            // Only the last of several messages counts: however often a receiver steers, each read costs one change.
            if let Some(control) = control {
                self.apply(&control)?;
                *lock(&self.last_control) = control;
            }
            if frames.read(None)?.is_none() {
                let peer = self.channel.peer().to_string();
                return Err(TransferError::PeerGone { peer, done: self.files.so_far().0 });
            }
        }
    }

    /// Carries out one message. Returns how the receiver steers, if it says so.
    fn obey(&self, message: Message) -> Result<Option<LastControl>, TransferError> {
        match message {
            Message::Steer { pacing_bps, window, congestion, phase } => {
                return Ok(Some(LastControl {
                    pacing: pacing_bps.map(Rate::from_bits_per_second),
                    window: window.map(Bytes::new),
                    congestion: congestion.into(),
                    phase: Some(phase.to_string().chars().take(MAX_PHASE_LENGTH).collect()),
                }));
            }
            Message::Train { id, packets, payload_bytes } => {
                if let Some(probe_responder) = self.probe_responder() {
                    probe_responder.send_train(id, packets, payload_bytes);
                }
            }
            Message::Streams { count } => {
                let count = count.min(sweetspot_protocol::MAX_STREAMS);
                self.streams.store(count, Ordering::Release);
            }
            Message::Failed { reason } => return Err(TransferError::PeerFailed(reason)),
            Message::Busy => {}
            other => {
                let (what, when) = (other.kind(), "in the midst of content");
                return Err(ProtocolError::OutOfOrder { what, when }.into());
            }
        }
        Ok(None)
    }

    /// Gives every connection its share of the receiver's request.
    fn apply(&self, control: &LastControl) -> Result<(), TransferError> {
        let before = lock(&self.last_control).clone();
        let links = lock(&self.links).clone();
        let n = links.len() as u64;
        for link in &links {
            let socket = link.channel.socket();
            let stays = before.congestion == control.congestion;
            if stays && control.congestion.begins_anew(before.pacing, control.pacing) {
                link.congestion.switch(socket, CongestionChoice::Own);
            }
            if control.congestion != CongestionChoice::Own || !stays {
                link.congestion.switch(socket, control.congestion);
            }
            if control.pacing.is_some() || before.pacing.is_some() {
                let pace =
                    control.pacing.map_or(UNLIMITED_PACE, |pace| pace.scaled(1.0 / n as f64));
                options::set_max_pacing_rate(socket, Some(pace.max(MIN_PACE)))
                    .map_err(TransferError::system("SO_MAX_PACING_RATE"))?;
            }
            if let Some(window) = control.window {
                link.send_buffer.make(Bytes::new(window.get() / n))?;
            }
        }
        Ok(())
    }

    /// Sends this end's counts as soon as all content has left, without the round trip that the receiver's summary takes: a
    /// user waits at the connecting end. Later retransmissions are not in it.
    fn summarise_once_left(&self) -> Result<(), TransferError> {
        let has_unsent = |link: &Arc<SenderLink>| {
            options::unsent(link.channel.socket()).is_ok_and(|unsent| unsent > Bytes::ZERO)
        };
        while lock(&self.links).iter().any(has_unsent) {
            if self.files.is_over() {
                return Ok(());
            }
            clock::sleep_until(clock::now() + UNSENT_INTERVAL);
        }
        self.channel.say(&Message::SenderSummary(self.closing()?))
    }

    fn closing(&self) -> Result<SenderSummary, TransferError> {
        let failed = || TransferError::system("TCP_INFO");
        let (mut segments, mut retransmitted, mut limits) = (0, 0, Vec::new());
        for link in lock(&self.links).iter() {
            let info = Info::read(link.channel.socket()).map_err(failed())?;
            segments += u64::from(info.data_segs_out);
            retransmitted += u64::from(info.total_retrans);
            let more = link.send_buffer.limits().into_iter();
            limits.extend(more.filter(|limit| !limits.contains(limit)).collect::<Vec<_>>());
        }
        Ok(SenderSummary {
            congestion: options::congestion(self.channel.socket()).map_err(failed())?.into(),
            segments,
            retransmitted_segments: retransmitted,
            limits: limits.into_iter().map(String::into).collect(),
        })
    }

    /// Emits a row of the time series every [`ROW_INTERVAL`] while content flows, and reports this end's limit to the receiver.
    fn sample(&self, observer: &mut dyn TransferObserver) {
        let begin = clock::now();
        let (mut due, mut last) = (begin + ROW_INTERVAL, (begin, Bytes::ZERO));
        let mut busy_at = begin + BUSY_INTERVAL;
        let mut limits = LimitWatch::new(begin);
        let mut stall = StallWatch::new(begin, self.files.so_far());
        while !self.over.is_set() {
            if wait_readable(&[self.event_fd.as_fd()], due).is_err() {
                return;
            }
            due += ROW_INTERVAL;
            let links = lock(&self.links).clone();
            let states: Vec<LinkState<'_>> =
                links.iter().filter_map(|link| LinkState::read(link).ok()).collect();
            let [LinkState { info: first, .. }, ..] = &states[..] else { return };
            let now = clock::now();
            let (done, files, totals) = self.files.so_far();
            if stall.is_stalled(now, (done, files, totals)) {
                return self.fail(TransferError::Stalled(self.channel.peer().to_string()));
            }
            let sum = |of: fn(&Info) -> Bytes| {
                states.iter().map(|state| of(&state.info)).fold(Bytes::ZERO, |a, b| a + b)
            };
            let count = |of: fn(&Info) -> u32| states.iter().map(|s| u64::from(of(&s.info))).sum();
            let bytes = sum(|info| info.bytes_acked).min(done);
            let goodput = bytes.saturating_sub(last.1) / now.since(last.0);
            last = (now, bytes);
            let control = lock(&self.last_control).clone();
            observer.line(&SeriesRecord::Row(SeriesRow {
                t_s: now.since(self.start).as_secs_f64(),
                bytes: bytes.get(),
                goodput_bps: goodput.as_f64(),
                window_bytes: first
                    .snd_wnd
                    .map(|_| sum(|i| i.snd_wnd.unwrap_or(Bytes::ZERO)).get()),
                rtt_s: Some(first.rtt.as_secs_f64()),
                phase: control.phase.clone(),
                pacing_bps: control.pacing.map(Rate::as_f64),
                cwnd_bytes: Some(sum(Info::cwnd).get()),
                retransmitted: Some(count(|info| info.total_retrans)),
                segments: Some(count(|info| info.data_segs_out)),
                timeouts: first.total_rto.map(u64::from),
            }));
            observer.progress(&Progress { bytes, files, totals });
            sender_link::bound_unsent(&states);
            if let Some((by, each)) = limits.look(now, &states, control.congestion) {
                let each_bps = each.map(Rate::bits_per_second);
                let _ = self.channel.say_soon(&Message::SenderLimit { by, each_bps });
            }
            if now >= busy_at {
                busy_at = now + BUSY_INTERVAL;
                let _ = self.channel.say_soon(&Message::Busy);
            }
        }
    }
}

/// No fewer bytes than an entry takes in a record: each number takes ten at most.
fn encoded_bound(entry: &Entry) -> usize {
    const NUMBERS: usize = 80;
    let attribute = |(name, value): &(Vec<u8>, Vec<u8>)| name.len() + value.len() + 20;
    let target = match &entry.kind {
        EntryKind::Symlink { target } => target.len(),
        _ => 0,
    };
    let attributes: usize = entry.attributes.iter().map(attribute).sum();
    NUMBERS + entry.path.as_bytes().len() + target + attributes
}
