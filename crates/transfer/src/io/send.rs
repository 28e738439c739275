//! The sending end of a transfer, once both ends know each other.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use crossbeam_channel::{Receiver, Sender};
use sweetspot_linux::event_fd::{EventFd, wait_readable};
use sweetspot_linux::tcp::{Info, options};
use sweetspot_linux::{clock, process};
use sweetspot_protocol::frame::MAX_RECORD_BYTES;
use sweetspot_protocol::probe::PacketAuthenticator;
use sweetspot_protocol::record::{Entry, EntryKind, MAX_BATCH, Record};
use sweetspot_protocol::series::{SeriesRecord, SeriesRow};
use sweetspot_protocol::{
    Accept, Message, Offer, OwnAccount, ProtocolError, ROW_INTERVAL, ReceiverItem, ReceiverSummary,
    Role, SenderOrder, SenderSummary, Session, TransferSummary,
};
use sweetspot_sizing::{CongestionChoice, Sizing};
use sweetspot_units::{Bytes, Duration, Rate, Time};

use super::channel::{Channel, lock};
use super::client::SendOptions;
use super::limit_watch::LimitWatch;
use super::link::{FrameReader, FurtherLinks, Link, set_congestion};
use super::outgoing::{FileReader, Frames, OutgoingFiles, Want};
use super::probe_responder::ProbeResponder;
use super::sender_link::{self, LinkState, SenderLink};
use super::source::{Listed, SourceFile, SourceList};
use crate::TransferError;
use crate::observer::{Agreed, FileLog, Progress, TransferObserver};

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
/// The time after which something is said, so that the receiver knows that this end is there.
const BUSY_INTERVAL: Duration = Duration::from_secs(5);

/// What a sender sends, and how.
pub(crate) struct SendConfig {
    pub options: SendOptions,
    pub list: SourceList,
    /// Who learns of the files.
    pub log: Option<Arc<dyn FileLog>>,
}

impl SendConfig {
    /// These options, once their sources were looked at.
    pub fn new(options: SendOptions) -> Result<SendConfig, TransferError> {
        let list = SourceList::new(&options.sources)?;
        Ok(SendConfig { options, list, log: None })
    }
}

/// Sends to the receiver at the other end of `link`. `start` is when the connection was made.
pub(crate) fn send(
    config: &SendConfig,
    mut link: Link,
    further: &FurtherLinks<'_>,
    start: Time,
    reconnects: u32,
    observer: &mut dyn TransferObserver,
) -> Result<TransferSummary, TransferError> {
    let SendConfig { options, list, log } = config;
    let channel = Arc::clone(&link.channel);
    let result = offer(options, list, &mut link, further, observer).and_then(
        |(accept, order, probe_responder)| {
            let sizing = accept.sizing.parse::<Sizing>()?;
            if let Some(congestion) = &accept.congestion {
                set_congestion(channel.socket(), congestion)?;
            }
            if let Some(writer) = &options.writer {
                channel.write_slowly(Arc::clone(writer))?;
            }
            let (peer, name, size) = (channel.peer(), list.name.clone(), list.size);
            observer.opened(&Agreed { peer, name, size, sizing });
            let named = options.congestion.is_some() && !options.may_switch;
            let named = named || accept.congestion.is_some();
            let sending = Sending {
                options,
                named,
                channel: &channel,
                files: OutgoingFiles::new(options.dry_run, log.clone()),
                order: Mutex::new(order),
                probe_responder: probe_responder.filter(|_| accept.probes),
                start,
                links: Mutex::default(),
                last_control: Mutex::default(),
                streams: AtomicU32::new(1),
                over: AtomicBool::new(false),
                failed: Mutex::default(),
                event_fd: EventFd::new().map_err(TransferError::system("making an eventfd"))?,
            };
            sending.run(list, link.frames, &accept, further, reconnects, observer)
        },
    );
    if let Err(error) = &result {
        channel.part(error);
    }
    result
}

/// Makes the offer, and waits for the answer.
fn offer(
    options: &SendOptions,
    list: &SourceList,
    link: &mut Link,
    further: &FurtherLinks<'_>,
    observer: &mut dyn TransferObserver,
) -> Result<(Accept, SenderOrder, Option<ProbeResponder>), TransferError> {
    // Who connects knows the other's UDP port: a sender that listens does not answer probes.
    let can_answer = options.probes && further.dial.is_some();
    let probe_responder = probe_responder(&link.channel, &link.session, can_answer, observer);
    link.channel.say(&Message::Offer(Offer {
        name: list.name.clone(),
        size: list.size.map(Bytes::get),
        one_file: list.one_file,
        many: list.many,
        checksum: options.checksum,
        dry_run: options.dry_run,
        sizing: options.sizing.map(|sizing| sizing.to_string()),
        congestion: options.congestion.clone(),
        path: options.path.map(Into::into),
        probes: can_answer,
        streams: options.streams,
        greedy: options.greedy,
    }))?;
    // On the heels of the offer, so that the receiver can probe as soon as it has answered.
    probe_responder.iter().for_each(ProbeResponder::punch);
    let mut order = SenderOrder::default();
    let deadline = clock::now() + ANSWER_TIMEOUT;
    let accept = link.frames.wait_for(deadline, |part| match order.handle(part)? {
        ReceiverItem::Message(Message::Accept(accept)) => Ok(Some(accept)),
        ReceiverItem::Message(Message::Refuse { reason } | Message::Failed { reason }) => {
            Err(TransferError::Refused(reason))
        }
        _ => Ok(None),
    })?;
    Ok((accept, order, probe_responder))
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
    /// A user chose the congestion control.
    named: bool,
    /// The first connection, on which both ends speak.
    channel: &'a Arc<Channel>,
    files: OutgoingFiles,
    order: Mutex<SenderOrder>,
    probe_responder: Option<ProbeResponder>,
    start: Time,
    links: Mutex<Vec<Arc<SenderLink>>>,
    /// The receiver's last steering message.
    last_control: Mutex<LastControl>,
    /// How many connections the receiver wants.
    streams: AtomicU32,
    over: AtomicBool,
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
        frames: FrameReader,
        accept: &Accept,
        further: &FurtherLinks<'_>,
        reconnects: u32,
        observer: &mut dyn TransferObserver,
    ) -> Result<TransferSummary, TransferError> {
        let cpu = process::cpu_time();
        let (wants, wanted) = crossbeam_channel::unbounded();
        let (out, ready) = crossbeam_channel::bounded::<Frames>(READ_AHEAD);
        let (spent, empty) = crossbeam_channel::bounded(READ_AHEAD * 2);
        self.add_link(self.channel)?;
        let outcome = thread::scope(|scope| {
            if let Some(probe_responder) = &self.probe_responder {
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
                    self.stop(error);
                    if error.is_peers_doing() {
                        // Its window may be closed for ever: who writes to it would wait for a minute.
                        channel.sever();
                    }
                }
                heard
            });
            let sent = self.list(list).and_then(|()| {
                if self.files.wait_until_sent() {
                    lock(&self.order).end();
                    self.channel.say(&Message::End)?;
                }
                Ok(())
            });
            if let Err(error) = sent {
                self.fail(error);
            }
            let heard = listener.join().unwrap_or(Err(TransferError::Interrupted));
            self.over.store(true, Ordering::Release);
            self.files.end();
            self.event_fd.signal();
            if let Some(probe_responder) = &self.probe_responder {
                probe_responder.done();
            }
            let closing = heard.is_ok().then(|| self.closing());
            if let Some(Ok(closing)) = &closing {
                // The content is safe, whether or not the receiver hears our numbers.
                let _ = self.channel.say(&Message::SenderSummary(closing.clone()));
            }
            for link in lock(&self.links).iter().skip(1) {
                link.channel.sever();
            }
            match (heard, lock(&self.failed).take()) {
                // What the receiver said before it hung up tells why.
                (
                    Err(cause @ (TransferError::PeerFailed(_) | TransferError::Protocol { .. })),
                    _,
                ) => Err(cause),
                (Err(cause), Some(TransferError::Interrupted)) => Err(cause),
                (_, Some(cause)) => Err(cause),
                (heard, None) => heard.and_then(|summary| Ok((summary, closing.transpose()?))),
            }
        });
        let (mut summary, closing) = outcome?;
        let failures = self.files.conclude(&mut summary.files)?;
        let end = OwnAccount {
            role: Role::Sender,
            peer: self.channel.peer(),
            name: &list.name,
            sizing: &accept.sizing,
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

    /// Ends the transfer from a thread beside the main one.
    fn fail(&self, error: TransferError) {
        if self.over.load(Ordering::Acquire) {
            return;
        }
        self.stop(&error);
        lock(&self.failed).get_or_insert(error);
    }

    /// Wakes all threads, because the transfer ends early.
    fn stop(&self, error: &TransferError) {
        self.files.end();
        // What the receiver said before it hung up can still be read; what this end has to say still be sent.
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
                    bytes += file.as_ref().and_then(|file| file.size).unwrap_or(0);
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
            self.tell_entries(&mut entries, &mut files)
        })?;
        self.tell_entries(&mut entries, &mut files)?;
        self.files.listed(u64::from(with_content), Bytes::new(bytes));
        self.channel.tell(&Record::Listed { entries: count, files: with_content, bytes })
    }

    fn tell_entries(
        &self,
        entries: &mut Vec<Entry>,
        files: &mut Vec<Option<SourceFile>>,
    ) -> Result<(), TransferError> {
        if entries.is_empty() {
            return Ok(());
        }
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
        self.channel.tell(&Record::Entries(batch))
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
        let Some(probe_responder) = &self.probe_responder else { return };
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
            let is_over = || self.over.load(Ordering::Acquire);
            let wanted = || self.streams.load(Ordering::Acquire);
            further.run(is_over, wanted, |link| {
                let channel = link.channel;
                channel.share_last_heard(self.channel);
                if self.add_link(&channel).is_ok() {
                    scope.spawn(move || self.write(&channel, ready, spent));
                }
            });
        });
    }

    fn add_link(&self, channel: &Arc<Channel>) -> Result<(), TransferError> {
        let link = SenderLink::new(channel, self.named, self.options.send_buffer)?;
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
            while let Some(part) = frames.next_part()? {
                let item = lock(&self.order).handle(part)?;
                match item {
                    ReceiverItem::Answers(answers) => self.files.answered(answers, wants)?,
                    ReceiverItem::Hashes(entry, first, hashes) => {
                        self.files.hashes(entry, first, hashes);
                    }
                    ReceiverItem::Results(results) => self.files.results(results)?,
                    ReceiverItem::Message(Message::ReceiverSummary(summary)) => return Ok(summary),
                    ReceiverItem::Message(message) => self.obey(message)?,
                }
            }
            if frames.read(None)?.is_none() {
                let peer = self.channel.peer().to_string();
                return Err(TransferError::PeerGone { peer, done: self.files.so_far().0 });
            }
        }
    }

    fn obey(&self, message: Message) -> Result<(), TransferError> {
        match message {
            Message::Steer { pacing_bps, window, congestion, phase } => {
                let control = LastControl {
                    pacing: pacing_bps.map(Rate::from_bits_per_second),
                    window: window.map(Bytes::new),
                    congestion: congestion.into(),
                    phase: Some(phase),
                };
                self.apply(&control)?;
                *lock(&self.last_control) = control;
            }
            Message::Train { id, packets, payload_bytes } => {
                if let Some(probe_responder) = &self.probe_responder {
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
        Ok(())
    }

    /// Gives every connection its share of what the receiver wants.
    fn apply(&self, control: &LastControl) -> Result<(), TransferError> {
        let before = lock(&self.last_control).clone();
        let links = lock(&self.links).clone();
        let n = links.len() as u64;
        for link in &links {
            let socket = link.channel.socket();
            if control.congestion != CongestionChoice::Own
                || before.congestion != control.congestion
            {
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
            congestion: options::congestion(self.channel.socket()).map_err(failed())?,
            segments,
            retransmitted_segments: retransmitted,
            limits,
        })
    }

    /// Emits a row of the time series every [`ROW_INTERVAL`] while content flows, and tells the receiver what limits
    /// this end.
    fn sample(&self, observer: &mut dyn TransferObserver) {
        let begin = clock::now();
        let (mut due, mut last) = (begin + ROW_INTERVAL, (begin, Bytes::ZERO));
        let mut busy_at = begin + BUSY_INTERVAL;
        let mut limits = LimitWatch::new(begin);
        while !self.over.load(Ordering::Acquire) {
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
