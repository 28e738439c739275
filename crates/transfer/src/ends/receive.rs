//! The receiving end of a transfer, once both ends know each other.

use std::sync::{Arc, Mutex};
use std::thread;

use crossbeam_channel::Sender;
use sweetspot_control::{ControlLoop, OwnAccount, StreamCount, TransferSummary};
use sweetspot_linux::tcp::{ClampMethod, Info, options};
use sweetspot_linux::{clock, process, sysctl};
use sweetspot_protocol::frame::{FramePart, PieceHeader};
use sweetspot_protocol::probe::PacketAuthenticator;
use sweetspot_protocol::{
    Accept, Message, Offer, PeerText, ProtocolError, ReceiverOrder, ReceiverSummary, Role,
    SenderItem, SenderSummary,
};
use sweetspot_sizing::{Controller, ControllerConfig, KnownPath, Probing, Sizing};
use sweetspot_units::{Bytes, Duration, Time};

use crate::TransferError;
use crate::control::receiver_control::ReceiverControl;
use crate::control::udp_demux::UdpDemux;
use crate::files::incoming::{
    Bounds, Deletion, Destination, EntryQueue, IncomingFiles, Job, Policy,
};
use crate::files::target::Target;
use crate::limits::OFFER_TIMEOUT;
use crate::lock::lock;
use crate::observer::{Agreed, FileLog, TransferObserver};
use crate::options::ReceiveOptions;
use crate::wire::channel::Channel;
use crate::wire::frame_reader::FrameReader;
use crate::wire::link::{FurtherLinks, Link};
use crate::wire::over::Over;

/// IPv4 and TCP headers with the timestamp option (RFC 7323).
const TCP_HEADERS: Bytes = Bytes::new(52);
/// Pieces between the sockets and the disk, of 256 KiB each: enough to keep the threads that write busy. Whatever waits
/// here is lost when this process is killed, and sent again.
const WRITE_BEHIND_PIECES: usize = 4;
/// Pieces below this length, bytes, are passed on together.
const SMALL_PIECE_BYTES: usize = 32 << 10;
/// The sender's closing words are waited for this long.
const SENDER_SUMMARY_TIMEOUT: Duration = Duration::from_secs(10);

/// Both ends report this if a sender offers extended attributes that the receiver did not ask for.
const ATTRIBUTES_LEFT_OUT: &str =
    "extended attributes were left out: the receiver did not ask for them";

/// How a receiver receives on this host.
pub(crate) struct ReceiveConfig {
    pub options: ReceiveOptions,
    pub clamp_method: ClampMethod,
    pub bounds: Bounds,
}

impl ReceiveConfig {
    /// These options, and how this kernel's window is limited.
    pub fn new(options: ReceiveOptions) -> Result<ReceiveConfig, TransferError> {
        if options.owners && process::effective_user() != 0 {
            return Err(TransferError::OwnersNeedRoot);
        }
        let clamp_method =
            ClampMethod::find().map_err(TransferError::system("testing the receive window"))?;
        Ok(ReceiveConfig { options, clamp_method, bounds: Bounds::default() })
    }

    /// The same for a transfer with this log.
    pub fn logged_by(self: &Arc<Self>, log: Option<Arc<dyn FileLog>>) -> Arc<ReceiveConfig> {
        if log.is_none() {
            return Arc::clone(self);
        }
        let bounds = Bounds { log, ..self.bounds.clone() };
        let (options, clamp_method) = (self.options.clone(), self.clamp_method);
        Arc::new(ReceiveConfig { options, clamp_method, bounds })
    }
}

/// Receives the files of the sender at the other end of `link`. The connection was made at `start`.
pub(crate) fn receive(
    config: &ReceiveConfig,
    udp_demux: Option<&UdpDemux>,
    mut link: Link,
    further: &FurtherLinks<'_>,
    start: Time,
    observer: &mut dyn TransferObserver,
) -> Result<TransferSummary, TransferError> {
    let channel = Arc::clone(&link.channel);
    let mut order = ReceiverOrder::taking_early(link.early_bytes);
    let result = wait_for_offer(&mut link.frames, &mut order).and_then(|offer| {
        let expected = config.options.asked.expect(&offer)?;
        let plan = Accepted::make(config, &offer, &channel, udp_demux.is_some())?;
        let authenticator = || PacketAuthenticator::new(&link.session);
        let demux = udp_demux.filter(|_| plan.probes);
        let registered = demux.map(|demux| demux.register(authenticator(), channel.peer().ip()));
        let registered =
            registered.transpose().map_err(TransferError::system("preparing probes"))?;
        channel.say(&plan.message(&config.options))?;
        order.accept();
        if let Some(reader) = &config.options.reader {
            channel.read_slowly(Arc::clone(reader));
        }
        let agreed = Agreed {
            peer: channel.peer(),
            name: offer.name.clone(),
            size: offer.size.map(Bytes::new),
            sizing: plan.sizing,
        };
        observer.opened(&agreed);
        let authenticator = registered.as_ref().map(|_| authenticator());
        let headers = channel.udp_headers();
        let now = clock::now();
        let control_loop = ControlLoop::new(plan.controller, start, now, authenticator, headers);
        let bounds = config.bounds.clone();
        let deletion = config.options.delete.as_ref().map(Deletion::new).transpose()?;
        let files = IncomingFiles::new(plan.destination, plan.policy, bounds, expected);
        let files = files.deleting(deletion);
        let control = ReceiverControl::new(
            &channel,
            control_loop,
            config.clamp_method,
            registered.as_ref().map(|registered| Arc::clone(&registered.registration)),
            &files,
            stream_count(&config.options, &offer),
            observer,
        )?;
        let transfer = Receiving {
            config,
            offer: &offer,
            sizing: plan.sizing,
            start,
            channel: &channel,
            files: &files,
            listed: EntryQueue::default(),
            control: &control,
            over: Over::default(),
            joined: Mutex::default(),
            failed: Mutex::default(),
        };
        transfer.run(link.frames, order, further)
    });
    if let Err(error) = &result {
        channel.part(error);
    }
    result
}

fn wait_for_offer(
    frames: &mut FrameReader,
    order: &mut ReceiverOrder,
) -> Result<Offer, TransferError> {
    frames.wait_for(clock::now() + OFFER_TIMEOUT, |part| match order.handle(part)? {
        SenderItem::Offer(offer) => Ok(Some(offer)),
        SenderItem::Failed(reason) => Err(TransferError::PeerFailed(reason)),
        _ => Ok(None),
    })
}

fn stream_count(options: &ReceiveOptions, offer: &Offer) -> StreamCount {
    // Standard output needs the bytes in order: one connection.
    let chosen = match options.target {
        Target::Output => Some(1),
        _ => options.streams.or(offer.streams),
    };
    StreamCount::new(chosen).greedy(offer.greedy)
}

/// The agreed parameters.
struct Accepted {
    destination: Destination,
    policy: Policy,
    sizing: Sizing,
    controller: Box<dyn Controller + Send>,
    probes: bool,
}

impl Accepted {
    fn make(
        config: &ReceiveConfig,
        offer: &Offer,
        channel: &Channel,
        can_probe: bool,
    ) -> Result<Accepted, TransferError> {
        let view = &config.bounds.view;
        let destination = Destination::open(&config.options.target, offer, view)?;
        let asked = offer.sizing.as_ref().map(PeerText::parse::<Sizing>).transpose()?;
        let sizing = config.options.sizing.or(asked).unwrap_or(Sizing::Sobas);
        let controller_config = ControllerConfig {
            size: offer.size.map(Bytes::new),
            ..controller_config(channel, config.options.path.or(offer.path.map(KnownPath::from)))?
        };
        let may_probe = can_probe && config.options.probes && offer.probes;
        let available = if may_probe { sizing } else { sizing.without_probes() };
        // Known before anything moves whether this sizing can be had.
        let controller = available.controller(&controller_config)?;
        let probes = may_probe && controller.needs().probes != Probing::Never;
        let policy = Policy {
            replace: config.options.overwrite,
            checksum: offer.checksum,
            dry_run: offer.dry_run,
            attributes: config.options.attributes,
            owners: config.options.owners,
            dotfiles: config.options.dotfiles,
            outward_links: config.options.outward_links,
        };
        Ok(Accepted { destination, policy, sizing, controller, probes })
    }

    fn message(&self, options: &ReceiveOptions) -> Message {
        Message::Accept(Accept {
            sizing: self.sizing.to_string().into(),
            congestion: options.congestion.as_deref().map(Into::into),
            probes: self.probes,
        })
    }
}

/// A transfer that runs.
struct Receiving<'a> {
    config: &'a ReceiveConfig,
    offer: &'a Offer,
    sizing: Sizing,
    /// When the connection was made.
    start: Time,
    channel: &'a Arc<Channel>,
    files: &'a IncomingFiles,
    /// Entries that wait to be answered.
    listed: EntryQueue,
    control: &'a ReceiverControl<'a>,
    over: Over,
    /// Further connections, to be cut at the end.
    joined: Mutex<Vec<Arc<Channel>>>,
    /// Why a thread beside the main one ended the transfer.
    failed: Mutex<Option<TransferError>>,
}

impl Receiving<'_> {
    fn run(
        &self,
        frames: FrameReader,
        order: ReceiverOrder,
        further: &FurtherLinks<'_>,
    ) -> Result<TransferSummary, TransferError> {
        let cpu = process::cpu_time();
        let (jobs, taken) = crossbeam_channel::bounded(WRITE_BEHIND_PIECES);
        let (spent, empty) = crossbeam_channel::bounded(WRITE_BEHIND_PIECES);
        // One thread keeps the data for standard output in order.
        let workers = match self.config.options.target {
            Target::Output => 1,
            _ => thread::available_parallelism().map_or(2, |n| n.get().clamp(2, 4)),
        };
        let takers: Vec<_> = (0..workers).map(|_| taken.clone()).collect();
        drop(taken);
        let received = thread::scope(|scope| {
            let spawn = |name, work| self.spawn(scope, name, work);
            let result = (|| {
                for taken in takers {
                    let spent = spent.clone();
                    spawn("write", Box::new(move || self.files.work(&taken, &spent)))?;
                }
                let count = self.control.streams();
                if count > 1 {
                    self.channel.say(&Message::Streams { count })?;
                }
                spawn("plan", Box::new(|| self.plan()))?;
                spawn("holes", Box::new(|| self.files.hash_holes()))?;
                spawn("time", Box::new(|| self.control.keep_time()))?;
                let (more_jobs, more_empty) = (jobs.clone(), empty.clone());
                let join = move || self.join_links(further, &more_jobs, &more_empty);
                spawn("join", Box::new(join))?;
                let mut reader = LinkReader {
                    transfer: self,
                    channel: Arc::clone(self.channel),
                    frames,
                    piece: None,
                    small: Vec::new(),
                    jobs: jobs.clone(),
                    empty: empty.clone(),
                };
                let mut order = order;
                let read = reader.read_first(&mut order);
                self.listed.close();
                read?;
                let (summary, deleted) = self.complete()?;
                Ok((summary, deleted, reader.sender_summary(&mut order)))
            })();
            self.over.set();
            self.stop_working();
            self.control.done();
            lock(&self.joined).iter().for_each(|channel| channel.sever());
            drop(jobs);
            result
        });
        // A thread beside the main one knows the cause where the main one saw its effect.
        let (summary, deleted, closing) = match (lock(&self.failed).take(), received) {
            (Some(cause), Err(_)) | (None, Err(cause)) => return Err(self.counted(cause)),
            (_, received) => received?,
        };
        let cpu = process::cpu_time().saturating_sub(cpu);
        self.account(summary, deleted, closing, cpu)
    }

    /// Starts a thread of the transfer, which ends the transfer if it fails.
    fn spawn<'scope>(
        &'scope self,
        scope: &'scope thread::Scope<'scope, '_>,
        name: &str,
        work: Box<dyn FnOnce() -> Result<(), TransferError> + Send + 'scope>,
    ) -> Result<thread::ScopedJoinHandle<'scope, ()>, TransferError> {
        let run = move || {
            if let Err(error) = work() {
                self.fail(error);
            }
        };
        let builder = thread::Builder::new().name(name.into());
        builder.spawn_scoped(scope, run).map_err(TransferError::system("starting a thread"))
    }

    /// Waits until all files are whole, and sends this end's summary. Returns it with the names that were deleted.
    fn complete(&self) -> Result<(ReceiverSummary, Vec<String>), TransferError> {
        self.files.wait_until_whole(|| lock(&self.failed).is_some());
        if let Some(error) = lock(&self.failed).take() {
            return Err(error);
        }
        self.files.complete()?;
        let deleted = self.files.tell_deleted(&**self.channel)?;
        let summary = self.summary();
        // Nothing is sent after the summary: a sender that leaves something unread would reset the connection, and its
        // summary with it.
        self.control.finish()?;
        self.channel.say(&Message::ReceiverSummary(summary.clone()))?;
        Ok((summary, deleted))
    }

    /// The transfer's summary at this end.
    fn account(
        &self,
        summary: ReceiverSummary,
        deleted: Vec<String>,
        closing: Option<SenderSummary>,
        cpu: Duration,
    ) -> Result<TransferSummary, TransferError> {
        let (counts, failures, content, _) = self.files.summary();
        if let ([reason, ..], 0) = (&failures[..], counts.written + counts.unchanged) {
            return Err(TransferError::NothingMoved(reason.clone()));
        }
        let end = OwnAccount {
            role: Role::Receiver,
            peer: self.channel.peer(),
            name: &self.offer.name,
            sizing: &self.sizing.to_string(),
            bytes: content,
            took: clock::now().since(self.start),
            cpu,
            reconnects: 0,
            failures: &failures,
        };
        let mut summary = TransferSummary::new(end, summary, closing);
        summary.would_move = self.files.would_move();
        summary.deleted = deleted;
        Ok(summary)
    }

    /// Counts also the file that was being written when the peer disappeared.
    fn counted(&self, error: TransferError) -> TransferError {
        match error {
            TransferError::PeerGone { peer, .. } => {
                TransferError::PeerGone { peer, done: self.files.so_far().0 }
            }
            other => other,
        }
    }

    /// Ends the transfer from a thread beside the main one.
    fn fail(&self, error: TransferError) {
        if self.over.is_set() {
            return;
        }
        lock(&self.failed).get_or_insert(error);
        self.stop_working();
        // Wakes the main thread, which tells the sender.
        self.channel.stop_reading();
        lock(&self.joined).iter().for_each(|channel| channel.sever());
    }

    /// Ends the transfer's other threads, which do not handle pieces.
    fn stop_working(&self) {
        self.listed.abandon();
        self.files.end();
    }

    fn plan(&self) -> Result<(), TransferError> {
        while let Some((first, entries)) = self.listed.next() {
            self.files.plan(first, entries, &**self.channel)?;
        }
        Ok(())
    }

    /// Takes in further connections, and makes them where this end connects.
    fn join_links(
        &self,
        further: &FurtherLinks<'_>,
        jobs: &Sender<Job>,
        empty: &crossbeam_channel::Receiver<Vec<u8>>,
    ) -> Result<(), TransferError> {
        thread::scope(|scope| {
            further.run(
                &self.over,
                || self.control.streams(),
                |link| {
                    link.channel.share_last_heard(self.channel);
                    self.control.join(&link.channel);
                    lock(&self.joined).push(Arc::clone(&link.channel));
                    if self.over.is_set() {
                        link.channel.sever();
                    }
                    let mut reader = LinkReader {
                        transfer: self,
                        channel: link.channel,
                        frames: link.frames,
                        piece: None,
                        small: Vec::new(),
                        jobs: jobs.clone(),
                        empty: empty.clone(),
                    };
                    scope.spawn(move || {
                        if let Err(error) = reader.read_further() {
                            self.fail(error);
                        }
                    });
                },
            );
        });
        Ok(())
    }

    fn summary(&self) -> ReceiverSummary {
        let (measured, wanted) =
            self.control.ask(|control_loop| (control_loop.measured(), control_loop.wanted()));
        let limit = wanted.and_then(|wanted| self.limit(wanted, measured.window));
        let left_out = self.files.attributes_left_out().then(|| ATTRIBUTES_LEFT_OUT.to_owned());
        let (files, _, content, hash) = self.files.summary();
        ReceiverSummary {
            hash: hash.filter(|_| self.offer.one_file).map(|hash| hash.to_hex().as_str().into()),
            files,
            content_bytes: content.get(),
            streams: self.control.connections(),
            rtt_s: measured.rtt.map(|rtt| rtt.map(|t| t.as_secs_f64())),
            rtt_source: measured.rtt_source,
            probes: measured.probes,
            window_final_bytes: measured.window.map(Bytes::get),
            clamp_method: (self.sizing != Sizing::Kernel)
                .then(|| self.config.clamp_method.to_string().into()),
            limits: limit.into_iter().chain(left_out).map(Into::into).collect(),
        }
    }

    /// The sysctl that kept the window below `wanted`, if any.
    fn limit(&self, wanted: Bytes, advertised: Option<Bytes>) -> Option<String> {
        let max = sysctl::tcp_rmem().ok()?.max;
        let buffer = options::receive_buffer(self.channel.socket()).ok()?;
        // A buffer below its limit was not held back by it; the window is rounded down to
        // whole segments.
        (buffer >= max && advertised? < wanted.scaled(0.9)).then(|| {
            format!(
                "a window of {wanted} was wanted: raise net.ipv4.tcp_rmem (its third number), now {}, on the receiving host",
                max.get()
            )
        })
    }
}

/// A piece that is arriving, packed or not. `length` counts the bytes on the wire.
struct Arriving {
    header: PieceHeader,
    length: usize,
    bytes: Vec<u8>,
}

/// Reads one connection.
struct LinkReader<'a, 'b> {
    transfer: &'a Receiving<'b>,
    channel: Arc<Channel>,
    frames: FrameReader,
    /// The piece that is arriving.
    piece: Option<Arriving>,
    /// Small pieces from one read.
    small: Vec<(PieceHeader, Vec<u8>)>,
    jobs: Sender<Job>,
    empty: crossbeam_channel::Receiver<Vec<u8>>,
}

impl LinkReader<'_, '_> {
    /// Reads the first connection, on which the sender speaks, until it says that all was sent.
    fn read_first(&mut self, order: &mut ReceiverOrder) -> Result<(), TransferError> {
        let files = self.transfer.files;
        loop {
            // Taken apart, so that content is copied out of the reader's buffer once.
            let mut content = Bytes::ZERO;
            while let Some(part) = self.frames.next_part()? {
                match order.handle(part)? {
                    SenderItem::Piece(header) => {
                        self.piece = Some(begin(header, header.length, &self.empty));
                    }
                    SenderItem::Packed(header, packed) => {
                        self.piece = Some(begin(header, packed, &self.empty));
                    }
                    SenderItem::Content(bytes) => {
                        content += Bytes::new(bytes.len() as u64);
                        extend(&mut self.piece, bytes, &mut self.small, &self.jobs)?;
                    }
                    SenderItem::Entries(first, list) => {
                        self.transfer.listed.push(first, list)?;
                    }
                    SenderItem::Early(entry, bytes) => {
                        content += Bytes::new(bytes.len() as u64);
                        files.take_early(entry, bytes);
                    }
                    SenderItem::Listed { files: number, bytes, left_out } => {
                        files.list_ended(left_out);
                        self.transfer.control.totals(u64::from(number), Bytes::new(bytes));
                    }
                    SenderItem::Holes(entry, first, pieces) => {
                        let job = Job::Holes(entry, first, pieces);
                        self.jobs.send(job).map_err(|_| TransferError::Interrupted)?;
                    }
                    SenderItem::Ends(ends) => {
                        ends.iter().try_for_each(|end| files.take_end(end))?
                    }
                    SenderItem::Gone(entry, reason) => files.take_gone(entry, &reason)?,
                    SenderItem::SenderLimit(_, each) => {
                        self.transfer.control.handle_sender_limit(each);
                    }
                    SenderItem::End => return self.flush(),
                    SenderItem::Failed(reason) => return Err(TransferError::PeerFailed(reason)),
                    SenderItem::Busy | SenderItem::Offer(_) | SenderItem::SenderSummary(_) => {}
                }
            }
            self.read(content)?;
        }
    }

    /// Reads a further connection, which carries pieces alone, until it is closed.
    fn read_further(&mut self) -> Result<(), TransferError> {
        loop {
            let mut content = Bytes::ZERO;
            while let Some(part) = self.frames.next_part()? {
                match part {
                    FramePart::Piece(header) => {
                        self.piece = Some(begin(header, header.length, &self.empty));
                    }
                    FramePart::Packed(header, packed) => {
                        self.piece = Some(begin(header, packed, &self.empty));
                    }
                    FramePart::Content(bytes) => {
                        content += Bytes::new(bytes.len() as u64);
                        extend(&mut self.piece, bytes, &mut self.small, &self.jobs)?;
                    }
                    FramePart::Message(_) | FramePart::Record(_) => {
                        let (what, when) = ("words", "on a connection for content");
                        return Err(ProtocolError::OutOfOrder { what, when }.into());
                    }
                }
            }
            self.read(content)?;
        }
    }

    fn read(&mut self, content: Bytes) -> Result<(), TransferError> {
        let control = self.transfer.control;
        self.flush()?;
        if content > Bytes::ZERO {
            control.handle_content(content);
        }
        let Some(read) = self.frames.read(None)? else {
            let so_far = self.transfer.files.so_far().0;
            return Err(self.channel.gone(so_far));
        };
        let failed = TransferError::system("SIOCINQ");
        let unread = options::unread(self.channel.socket()).map_err(failed)?;
        control.handle_data(&self.channel, read, unread)
    }

    /// Passes on the small pieces: in halves, so that more than one thread has work.
    fn flush(&mut self) -> Result<(), TransferError> {
        while !self.small.is_empty() {
            let rest = self.small.split_off(self.small.len().min(self.small.len() / 2 + 8));
            let pieces = std::mem::replace(&mut self.small, rest);
            self.jobs.send(Job::Pieces(pieces)).map_err(|_| TransferError::Interrupted)?;
        }
        Ok(())
    }

    /// The sender's numbers, if it still gives them: the content is safe either way.
    fn sender_summary(&mut self, order: &mut ReceiverOrder) -> Option<SenderSummary> {
        let deadline = clock::now() + SENDER_SUMMARY_TIMEOUT;
        let summary = self.frames.wait_for(deadline, |part| match order.handle(part) {
            Ok(SenderItem::SenderSummary(summary)) => Ok(Some(summary)),
            _ => Ok(None),
        });
        summary.ok()
    }
}

/// A piece of `length` bytes begins, in a used buffer where there is one.
fn begin(
    header: PieceHeader,
    length: u32,
    empty: &crossbeam_channel::Receiver<Vec<u8>>,
) -> Arriving {
    let length = length as usize;
    let mut bytes = match length {
        // Small pieces do not hold on to large buffers.
        length if length < SMALL_PIECE_BYTES => Vec::new(),
        _ => empty.try_recv().unwrap_or_default(),
    };
    bytes.reserve_exact(length);
    Arriving { header, length, bytes }
}

/// Adds to the piece that is arriving; passes it on when it is whole.
fn extend(
    piece: &mut Option<Arriving>,
    bytes: &[u8],
    small: &mut Vec<(PieceHeader, Vec<u8>)>,
    jobs: &Sender<Job>,
) -> Result<(), TransferError> {
    let Some(Arriving { length, bytes: buffer, .. }) = piece else { return Ok(()) };
    buffer.extend_from_slice(bytes);
    if buffer.len() == *length
        && let Some(Arriving { header, bytes, .. }) = piece.take()
    {
        if bytes.len() < SMALL_PIECE_BYTES {
            small.push((header, bytes));
            return Ok(());
        }
        jobs.send(Job::Piece(header, bytes)).map_err(|_| TransferError::Interrupted)?;
    }
    Ok(())
}

/// A controller's view of this host and this connection.
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
    let max_window = Bytes::new(limits.max.get() / 2);
    Ok(ControllerConfig { mss, packet: mss + TCP_HEADERS, max_window, size: None, path })
}
