//! The receiving end of a transfer, once both ends know each other.

use std::cell::Cell;
use std::sync::{Arc, Mutex};
use std::thread;

use crossbeam_channel::Sender;
use sweetspot_control::{ControlLoop, OwnAccount, TransferSummary};
use sweetspot_linux::tcp::options;
use sweetspot_linux::{clock, process, sysctl};
use sweetspot_protocol::probe::PacketAuthenticator;
use sweetspot_protocol::{Message, Offer, ReceiverOrder, ReceiverSummary, Role, SenderSummary};
use sweetspot_sizing::Sizing;
use sweetspot_units::{Bytes, Duration, Time};

use crate::control::receiver_control::ReceiverControl;
use crate::control::udp_demux::UdpDemux;
use crate::ends::accepted::{Accepted, stream_count, wait_for_offer};
use crate::ends::claim::Claim;
use crate::ends::link_reader::{Inbox, LinkReader};
use crate::ends::receive_config::ReceiveConfig;
use crate::ends::work::Ended;
use crate::files::incoming::{Bounds, Deletion, EntryQueue, IncomingFiles, Job};
use crate::files::target::Target;
use crate::limits::{MAX_FAILURE_LINES, PARTING_TIMEOUT};
use crate::lock::lock;
use crate::observer::{Agreed, TransferObserver, joined};
use crate::wire::channel::Channel;
use crate::wire::end_signal::EndSignal;
use crate::wire::frame_reader::FrameReader;
use crate::wire::link::{FurtherLinks, Link};
use crate::{Result, TransferError};

/// Pieces between the sockets and the disk, of 256 KiB each: enough to keep the threads that write busy. Whatever waits
/// here is lost when this process is killed, and sent again.
const WRITE_BEHIND_PIECES: usize = 4;

/// Both ends report this if a sender offers extended attributes that the receiver did not ask for.
const ATTRIBUTES_LEFT_OUT: &str =
    "extended attributes were left out: the receiver did not ask for them";

/// Receives the files of the sender at the other end of `link`. The connection was made at `start`. A server has a `claim` for
/// the transfer.
pub(crate) fn receive(
    config: &ReceiveConfig,
    udp_demux: Option<&UdpDemux>,
    mut link: Link,
    further: &FurtherLinks<'_>,
    start: Time,
    claim: Option<&Claim<'_>>,
    observer: &mut dyn TransferObserver,
) -> Ended {
    let channel = Arc::clone(&link.channel);
    let wrote = Cell::new(false);
    let mut order = ReceiverOrder::taking_early(link.early_bytes);
    let result = wait_for_offer(&mut link.frames, &mut order).and_then(|offer| {
        let expected = config.options.requested.expect(&offer)?;
        let plan = Accepted::make(config, &offer, &channel, udp_demux.is_some())?;
        let authenticator = || PacketAuthenticator::new(&link.session);
        let demux = udp_demux.filter(|_| plan.probes);
        let registered = demux.map(|demux| demux.register(authenticator(), channel.peer().ip()));
        let registered =
            registered.transpose().map_err(TransferError::system("preparing probes"))?;
        let accepted = channel.send_message(&plan.message(&config.options));
        accepted.map_err(|error| link.frames.cause(error))?;
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
        let log = joined([config.bounds.log.clone(), observer.file_log()]);
        let bounds = Bounds { log, ..config.bounds.clone() };
        let deletion = config.options.delete.as_ref().map(Deletion::new).transpose()?;
        let files = IncomingFiles::new(plan.destination, plan.policy, bounds, expected);
        // Of a directory that is served, the sender sets nothing.
        let is_own = matches!(config.options.target, Target::At(_));
        let top_status = offer.contents_of.clone().filter(|_| is_own && offer.many);
        let files = files.deleting(deletion).with_top_status(top_status);
        let control = ReceiverControl::new(
            &channel,
            control_loop,
            config.clamp_method,
            registered.as_ref().map(|registered| Arc::clone(&registered.registration)),
            &files,
            stream_count(&config.options, &offer),
            observer,
        )
        .map_err(|error| link.frames.cause(error))?;
        let transfer = Receiving {
            config,
            offer: &offer,
            claim,
            sizing: plan.sizing,
            start,
            channel: &channel,
            files: &files,
            listed: EntryQueue::default(),
            control: &control,
            over: EndSignal::default(),
            joined: Mutex::default(),
            failed: Mutex::default(),
        };
        let received = transfer.run(link.frames, order, further);
        wrote.set(files.has_written());
        received
    });
    if let Err(error) = &result {
        channel.part(error);
    }
    Ended { result, wrote: wrote.get() }
}

struct Receiving<'a> {
    config: &'a ReceiveConfig,
    offer: &'a Offer,
    claim: Option<&'a Claim<'a>>,
    sizing: Sizing,
    /// When the connection was made.
    start: Time,
    channel: &'a Arc<Channel>,
    files: &'a IncomingFiles,
    /// Entries that wait to be answered.
    listed: EntryQueue,
    control: &'a ReceiverControl<'a>,
    over: EndSignal,
    /// Further connections, to be cut at the end.
    joined: Mutex<Vec<Arc<Channel>>>,
    /// Why a thread beside the main one ended the transfer.
    failed: Mutex<Option<TransferError>>,
}

impl<'a> Receiving<'a> {
    fn run(
        &self,
        frames: FrameReader,
        order: ReceiverOrder,
        further: &FurtherLinks<'_>,
    ) -> Result<TransferSummary> {
        let cpu = process::cpu_time();
        let (jobs, queued_jobs) = crossbeam_channel::bounded(WRITE_BEHIND_PIECES);
        let (spent, empty) = crossbeam_channel::bounded(WRITE_BEHIND_PIECES);
        // One thread keeps the data for standard output in order.
        let workers = match self.config.options.target {
            Target::Output => 1,
            _ => thread::available_parallelism().map_or(2, |n| n.get().clamp(2, 4)),
        };
        let job_receivers: Vec<_> = (0..workers).map(|_| queued_jobs.clone()).collect();
        drop(queued_jobs);
        let received = thread::scope(|scope| {
            let spawn = |name, work| self.spawn(scope, name, work);
            let result = (|| {
                for queued_jobs in job_receivers {
                    let spent = spent.clone();
                    spawn("write", Box::new(move || self.files.work(&queued_jobs, &spent)))?;
                }
                let count = self.control.streams();
                let streams = Message::Streams { count };
                let requested =
                    if count > 1 { self.channel.send_message(&streams) } else { Ok(()) };
                spawn("plan", Box::new(|| self.plan()))?;
                spawn("holes", Box::new(|| self.files.hash_holes()))?;
                spawn("time", Box::new(|| self.control.keep_time()))?;
                let (more_jobs, more_empty) = (jobs.clone(), empty.clone());
                let join = move || self.join_links(further, &more_jobs, &more_empty);
                spawn("join", Box::new(join))?;
                let inbox = self.inbox(&jobs, &empty);
                let mut reader = LinkReader::new(inbox, Arc::clone(self.channel), frames);
                let mut order = order;
                let read = requested.and_then(|()| reader.read_first(&mut order));
                self.listed.close();
                read.map_err(|error| reader.cause(error))?;
                let (summary, deleted) = self.complete()?;
                Ok((summary, deleted, reader.sender_summary(&mut order)))
            })();
            self.over.set();
            self.stop_threads();
            self.control.done();
            lock(&self.joined).iter().for_each(|channel| channel.sever());
            drop(jobs);
            result
        });
        // A thread beside the main one knows the cause where the main one saw its effect.
        let (summary, deleted, closing) = match (lock(&self.failed).take(), received) {
            // The sender gave its reason; the other threads saw only that it was gone.
            (_, Err(reason @ (TransferError::PeerFailed(_) | TransferError::Refused(_)))) => {
                return Err(reason);
            }
            (Some(cause), Err(_)) | (None, Err(cause)) => return Err(self.counted(cause)),
            (_, received) => received?,
        };
        let cpu = process::cpu_time().saturating_sub(cpu);
        self.account(summary, deleted, closing, cpu)
    }

    fn inbox(
        &self,
        jobs: &Sender<Job>,
        empty: &crossbeam_channel::Receiver<Vec<u8>>,
    ) -> Inbox<'_, 'a> {
        Inbox {
            files: self.files,
            listed: &self.listed,
            control: self.control,
            jobs: jobs.clone(),
            empty: empty.clone(),
        }
    }

    /// Starts a thread of the transfer, which ends the transfer if it fails.
    fn spawn<'scope>(
        &'scope self,
        scope: &'scope thread::Scope<'scope, '_>,
        name: &str,
        work: Box<dyn FnOnce() -> Result<()> + Send + 'scope>,
    ) -> Result<thread::ScopedJoinHandle<'scope, ()>> {
        let run = move || {
            if let Err(error) = work() {
                self.fail(error);
            }
        };
        let builder = thread::Builder::new().name(name.into());
        builder.spawn_scoped(scope, run).map_err(TransferError::system("starting a thread"))
    }

    /// Waits until all files are whole, and sends this end's summary. Returns it with the names that were deleted.
    fn complete(&self) -> Result<(ReceiverSummary, Vec<String>)> {
        self.files.wait_until_complete(|| lock(&self.failed).is_some());
        if let Some(error) = lock(&self.failed).take() {
            return Err(error);
        }
        self.files.complete()?;
        let deleted = self.files.send_deleted(&**self.channel)?;
        let summary = self.summary();
        // On disk before the sender hears of it: a crash in between does not renew the credential.
        if let Some(claim) =
            self.claim.filter(|_| !self.offer.dry_run && !self.files.moved_nothing())
        {
            claim.complete()?;
        }
        // Nothing is sent after the summary: a sender that leaves something unread would reset the connection, and its
        // summary with it.
        self.control.finish()?;
        self.channel.send_message(&Message::ReceiverSummary(summary.clone()))?;
        Ok((summary, deleted))
    }

    /// The transfer's summary at this end.
    fn account(
        &self,
        summary: ReceiverSummary,
        deleted: Vec<String>,
        closing: Option<SenderSummary>,
        cpu: Duration,
    ) -> Result<TransferSummary> {
        let (counts, mut failures, content, _) = self.files.summary();
        let moved_nothing = self.files.moved_nothing();
        let dry_run = self.files.take_dry_run();
        if moved_nothing && dry_run.is_empty() {
            let count = counts.failed;
            return Err(TransferError::NothingMoved { failures, count, by_peer: false });
        }
        let unlisted = closing.as_ref().map_or(0, |closing| closing.unlisted);
        if failures.len() < MAX_FAILURE_LINES {
            failures.extend(left_out_by_sender(unlisted));
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
        summary.files.failed = summary.files.failed.saturating_add(unlisted);
        summary.deleted = deleted;
        if self.offer.dry_run {
            dry_run.conclude(&mut summary);
        }
        summary.special_bits_dropped = self.files.special_bits();
        summary.skipped = self.files.skipped_names();
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
        self.stop_threads();
        // Wakes the main thread, which tells the sender.
        self.channel.stop_reading();
        lock(&self.joined).iter().for_each(|channel| channel.sever());
    }

    /// Ends the transfer's other threads, which do not handle pieces.
    fn stop_threads(&self) {
        self.listed.abandon();
        self.files.end();
    }

    fn plan(&self) -> Result<()> {
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
    ) -> Result<()> {
        thread::scope(|scope| {
            further.run(
                &self.over,
                || self.control.streams(),
                |link| {
                    link.channel.share_last_received(self.channel);
                    self.control.join(&link.channel);
                    lock(&self.joined).push(Arc::clone(&link.channel));
                    if self.over.is_set() {
                        link.channel.sever();
                    }
                    let inbox = self.inbox(jobs, empty);
                    let mut reader = LinkReader::new(inbox, link.channel, link.frames);
                    scope.spawn(move || {
                        if let Err(error) = reader.read_further() {
                            if error.is_of_the_path() {
                                // The sender's reason may be on its way over the first connection.
                                self.over.wait(PARTING_TIMEOUT);
                            }
                            self.fail(error);
                        }
                    });
                },
            );
        });
        Ok(())
    }

    fn summary(&self) -> ReceiverSummary {
        let (measured, requested_window) = self
            .control
            .ask(|control_loop| (control_loop.measured(), control_loop.requested_window()));
        let limit = requested_window
            .and_then(|requested_window| self.limit(requested_window, measured.window));
        let left_out = self.files.attributes_left_out().then(|| ATTRIBUTES_LEFT_OUT.to_owned());
        let (files, _, content, hash) = self.files.summary();
        ReceiverSummary {
            hash: hash.filter(|_| self.offer.one_file).map(|hash| hash.to_hex().as_str().into()),
            files,
            content_bytes: content.get(),
            resumed_bytes: self.files.resumed().get(),
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

    /// The sysctl that kept the window below `requested_window`, if any.
    fn limit(&self, requested_window: Bytes, advertised: Option<Bytes>) -> Option<String> {
        let max = sysctl::tcp_rmem().ok()?.max;
        let buffer = options::receive_buffer(self.channel.socket()).ok()?;
        // A buffer below its limit was not held back by it; the window is rounded down to
        // whole segments.
        (buffer >= max && advertised? < requested_window.scaled(0.9)).then(|| {
            format!(
                "a window of {requested_window} was needed: raise net.ipv4.tcp_rmem (its third number), now {}, on the receiving host",
                max.get()
            )
        })
    }
}

/// The line about entries that the sender could not send; their paths are the sender's own.
fn left_out_by_sender(count: u64) -> Option<String> {
    let (entries, them) = if count == 1 { ("entry", "it") } else { ("entries", "them") };
    (count > 0).then(|| {
        format!(
            "the sender left out {count} {entries} that it could not send; its messages name {them}"
        )
    })
}
