//! Runs the controller on live sockets: applies its output, and reads the kernel's state back. All connections of a transfer
//! share one controller and one window.

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use sweetspot_control::series::SeriesRecord;
use sweetspot_control::{ControlLoop, HeldDown, MIN_SHARE_SEGMENTS, StreamCount, TransferEffect};
use sweetspot_linux::clock;
use sweetspot_linux::event_fd::{EventFd, wait_readable};
use sweetspot_linux::sysctl;
use sweetspot_linux::tcp::{ClampMethod, Info, WindowActuator, options};
use sweetspot_linux::udp::Udp;
use sweetspot_protocol::Message;
use sweetspot_protocol::record::{MAX_BATCH, Record};
use sweetspot_sizing::KernelView;
use sweetspot_units::{Bytes, Duration, Rate, Time};

use crate::control::udp_demux::Registration;
use crate::files::incoming::IncomingFiles;
use crate::limits::{BUSY_INTERVAL, DOWN_TIMEOUT};
use crate::lock::lock;
use crate::observer::{Progress, TransferObserver};
use crate::wire::channel::Channel;
use crate::wire::stall::StallWatch;
use crate::{Result, TransferError};

/// The longest datagram, bytes: a jumbo frame.
const MAX_DATAGRAM_BYTES: usize = 9216;
/// A window is full if one RTT's arrivals are at least this share of it.
const FULL_SHARE: f64 = 0.7;
/// How long a sender's report of its limit is valid.
const LIMIT_HOLDS: Duration = Duration::from_secs(1);

/// The control of one receiver, shared by the threads that read content and the thread that runs the timers.
pub(crate) struct ReceiverControl<'a> {
    /// The first connection, which carries the control messages of both ends.
    channel: &'a Channel,
    state: Mutex<ReceiverState>,
    observer: Mutex<&'a mut dyn TransferObserver>,
    registration: Option<Arc<Registration>>,
    files: &'a IncomingFiles,
    totals: Mutex<Option<(u64, Bytes)>>,
    done: AtomicBool,
    event_fd: EventFd,
}

/// State that only one thread may hold at a time.
struct ReceiverState {
    control_loop: ControlLoop,
    clamp_method: ClampMethod,
    /// The largest receive buffer that this host allows (`tcp_rmem`).
    max_buffer: Bytes,
    connections: Vec<ReceiveConnection>,
    /// The controller's window over all connections; the outer `None` until the controller sets one.
    limit: Option<Option<Bytes>>,
    /// Whether content is flowing, so that the window may be limited.
    flowing: bool,
    streams: StreamCount,
    /// Content read so far, over all connections.
    content: Bytes,
    /// The sender's latest report of its own limits, and when it expires.
    sender_limit: Option<(Time, HeldDown)>,
    recent: RecentRate,
    /// Work for the timer thread. It alone sends datagrams and calls the observer.
    datagrams: Vec<Vec<u8>>,
    records: Vec<SeriesRecord>,
    notes: Vec<String>,
}

struct ReceiveConnection {
    channel: Arc<Channel>,
    actuator: WindowActuator,
    /// Minimum share of the window. With less, the sender would wait for its timer to probe a window below one segment, and
    /// this end would delay its ACKs, in every RTT.
    min_window: Bytes,
}

/// The receive rate over about the last second.
#[derive(Default)]
struct RecentRate {
    since: Time,
    content: Bytes,
    rate: Rate,
}

impl RecentRate {
    fn update(&mut self, now: Time, content: Bytes) -> Rate {
        let elapsed = now.since(self.since);
        if elapsed >= Duration::from_secs(1) {
            self.rate = content.saturating_sub(self.content) / elapsed;
            (self.since, self.content) = (now, content);
        }
        self.rate
    }
}

impl<'a> ReceiverControl<'a> {
    pub fn new(
        channel: &'a Arc<Channel>,
        control_loop: ControlLoop,
        clamp_method: ClampMethod,
        registration: Option<Arc<Registration>>,
        files: &'a IncomingFiles,
        streams: StreamCount,
        observer: &'a mut dyn TransferObserver,
    ) -> Result<ReceiverControl<'a>> {
        let first = ReceiveConnection::new(channel, clamp_method);
        let state = ReceiverState {
            control_loop,
            clamp_method,
            max_buffer: sysctl::tcp_rmem().map_err(TransferError::system("reading tcp_rmem"))?.max,
            connections: vec![first],
            limit: None,
            flowing: false,
            streams,
            content: Bytes::ZERO,
            sender_limit: None,
            recent: RecentRate { since: clock::now(), ..RecentRate::default() },
            datagrams: Vec::new(),
            records: Vec::new(),
            notes: Vec::new(),
        };
        let receiver_control = ReceiverControl {
            channel,
            state: Mutex::new(state),
            observer: Mutex::new(observer),
            registration,
            files,
            totals: Mutex::default(),
            done: AtomicBool::new(false),
            event_fd: EventFd::new().map_err(TransferError::system("making an eventfd"))?,
        };
        // The handshake's RTT is known before the first data.
        receiver_control.tick(None)?;
        Ok(receiver_control)
    }

    /// Adds another connection that carries content.
    pub fn join(&self, channel: &Arc<Channel>) {
        let mut state = lock(&self.state);
        let connection = ReceiveConnection::new(channel, state.clamp_method);
        state.connections.push(connection);
        state.share();
    }

    /// The number of connections wanted.
    pub fn streams(&self) -> u32 {
        lock(&self.state).streams.count()
    }

    /// The highest number of connections so far.
    pub fn connections(&self) -> u32 {
        lock(&self.state).connections.len() as u32
    }

    /// Handles the sender's report that its host is the limit; `each` is the rate of one connection then.
    pub fn handle_sender_limit(&self, each: Option<Rate>) {
        lock(&self.state).sender_limit = Some((clock::now() + LIMIT_HOLDS, HeldDown { each }));
    }

    /// Handles data read from `channel`. Called after every read.
    pub fn handle_data(&self, channel: &Channel, bytes: Bytes, unread: Bytes) -> Result<()> {
        let mut state = lock(&self.state);
        state.control_loop.handle_data(clock::now(), bytes, unread);
        self.perform(&mut state)?;
        if !state.flowing {
            return Ok(());
        }
        // The kernel's autotuning grows the buffer, and overwrites the limit, during reads.
        let read =
            |connection: &&mut ReceiveConnection| std::ptr::eq(&*connection.channel, channel);
        match state.connections.iter_mut().find(read) {
            Some(connection) => connection.hold(),
            None => Ok(()),
        }
    }

    /// Counts `content` bytes of the last read as file content.
    pub fn handle_content(&self, content: Bytes) {
        let mut state = lock(&self.state);
        state.control_loop.handle_content(content);
        state.content += content;
        state.flowing = true;
    }

    /// Ends [`ReceiverControl::keep_time`], because the transfer is over.
    pub fn done(&self) {
        self.done.store(true, Ordering::Release);
        self.event_fd.signal();
    }

    pub fn ask<T>(&self, question: impl FnOnce(&ControlLoop) -> T) -> T {
        question(&lock(&self.state).control_loop)
    }

    /// Notes the number and total size of the files: the sender's list is complete.
    pub fn totals(&self, files: u64, bytes: Bytes) {
        *lock(&self.totals) = Some((files, bytes));
    }

    /// Sends the last message before the summary. Nothing may be sent after it.
    pub fn finish(&self) -> Result<()> {
        {
            let _state = lock(&self.state);
            self.done.store(true, Ordering::Release);
        }
        self.event_fd.signal();
        self.send_results()
    }

    /// Runs the controller's timers and the probes until [`ReceiverControl::done`].
    pub fn keep_time(&self) -> Result<()> {
        let (mut probe_socket, mut busy_at) = (None, clock::now() + BUSY_INTERVAL);
        let mut down_since = None;
        let mut stall = StallWatch::new(clock::now(), self.files.so_far());
        while !self.done.load(Ordering::Acquire) {
            // The reading thread reports a closed connection itself after the last data, unless it waits for another thread.
            down_since = self.channel.is_down().then(|| down_since.unwrap_or(clock::now()));
            if down_since.is_some_and(|since| clock::now().since(since) >= DOWN_TIMEOUT) {
                return Err(self.channel.disconnected(self.files.so_far().0));
            }
            if stall.is_stalled(clock::now(), self.files.so_far()) {
                return Err(TransferError::Stalled(self.channel.peer().to_string()));
            }
            self.open_probe_socket(&mut probe_socket);
            self.listen(probe_socket.as_ref())?;
            let due = self.tick(probe_socket.as_ref())?;
            if clock::now() >= busy_at {
                self.send_message(&lock(&self.state), &Message::Busy)?;
                busy_at = clock::now() + BUSY_INTERVAL;
            }
            {
                let state = lock(&self.state);
                if !self.is_done(&state) {
                    self.send_results()?;
                }
            }
            self.wait(probe_socket.as_ref(), due);
        }
        Ok(())
    }

    /// Sends a message, unless the transfer is over.
    fn send_message(&self, state: &ReceiverState, message: &Message) -> Result<()> {
        if self.is_done(state) { Ok(()) } else { self.channel.send_message(message) }
    }

    /// Whether the transfer is over. It cannot end while the caller holds the state's lock.
    fn is_done(&self, _state: &ReceiverState) -> bool {
        self.done.load(Ordering::Acquire)
    }

    /// Sends the sender the results of its files.
    fn send_results(&self) -> Result<()> {
        for results in self.files.results().chunks(MAX_BATCH) {
            self.channel.send_record(&Record::Results(results.to_vec()))?;
        }
        Ok(())
    }

    fn wait(&self, probe_socket: Option<&ProbeSocket>, due: Time) {
        let mut sources = vec![self.event_fd.as_fd()];
        sources.extend(probe_socket.map(|probe_socket| probe_socket.udp.as_fd()));
        sources
            .extend(self.registration.as_ref().map(|registration| registration.event_fd.as_fd()));
        if wait_readable(&sources, due).is_err() {
            clock::sleep_until(due);
        }
    }

    /// Opens a UDP socket to the sender once its address is known, and a new one when the address changes.
    fn open_probe_socket(&self, probe_socket: &mut Option<ProbeSocket>) {
        let Some(peer_address) =
            self.registration.as_ref().and_then(|registration| registration.peer_address())
        else {
            return;
        };
        if probe_socket.as_ref().is_some_and(|probe_socket| probe_socket.to == peer_address) {
            return;
        }
        // Without the socket no probes are sent, and the kernel's RTT estimate replaces them.
        if let Ok(new) = ProbeSocket::open(self.channel, peer_address) {
            *probe_socket = Some(new);
            lock(&self.state).control_loop.handle_reachable(clock::now());
        }
    }

    fn listen(&self, probe_socket: Option<&ProbeSocket>) -> Result<()> {
        let Some(probe_socket) = probe_socket else { return Ok(()) };
        let mut datagram = [0; MAX_DATAGRAM_BYTES];
        while let Ok(Some(arrival)) = probe_socket.udp.receive(&mut datagram) {
            let mut state = lock(&self.state);
            let datagram = &datagram[..arrival.length.min(MAX_DATAGRAM_BYTES)];
            state.control_loop.handle_datagram(clock::now(), arrival.at, datagram);
            self.perform(&mut state)?;
        }
        Ok(())
    }

    fn tick(&self, probe_socket: Option<&ProbeSocket>) -> Result<Time> {
        let (datagrams, records, notes, due) = {
            let mut state = lock(&self.state);
            let state = &mut *state;
            let kernel = state.kernel()?;
            state.control_loop.handle_timeout(clock::now(), &kernel);
            self.perform(state)?;
            if state.flowing {
                state.connections.iter_mut().try_for_each(ReceiveConnection::hold)?;
            }
            if let Some(count) = state.update_streams(&kernel) {
                self.send_message(state, &Message::Streams { count })?;
            }
            (
                std::mem::take(&mut state.datagrams),
                std::mem::take(&mut state.records),
                std::mem::take(&mut state.notes),
                state.control_loop.poll_timeout(),
            )
        };
        for datagram in &datagrams {
            // A probe that cannot be sent counts as lost.
            let _ = probe_socket.map(|probe_socket| probe_socket.udp.send(datagram));
        }
        let mut observer = lock(&self.observer);
        records.iter().for_each(|record| observer.line(record));
        if !records.is_empty() {
            let (bytes, files) = self.files.so_far();
            let (present, totals) = (self.files.present(), *lock(&self.totals));
            observer.progress(&Progress { bytes, present, files, totals });
        }
        notes.iter().for_each(|note| observer.note(note));
        Ok(due)
    }

    fn perform(&self, state: &mut ReceiverState) -> Result<()> {
        while let Some(effect) = state.control_loop.poll_effect() {
            match effect {
                TransferEffect::Limit(limit) => {
                    state.limit = Some(limit);
                    state.share();
                }
                TransferEffect::Tell(message) => self.send_message(state, &message)?,
                TransferEffect::Send(datagram) => state.datagrams.push(datagram),
                TransferEffect::Record(record) => state.records.push(record),
                TransferEffect::Note(note) => state.notes.push(note.to_owned()),
            }
        }
        Ok(())
    }
}

impl ReceiverState {
    /// Divides the window among the connections, so that together they have no more in flight than one connection would. Each
    /// gets at least its `min_window`.
    fn share(&mut self) {
        let Some(limit) = self.limit else { return };
        let n = self.connections.len() as u64;
        for connection in &mut self.connections {
            let share = |limit: Bytes| match n {
                1 => limit,
                n => Bytes::new(limit.get() / n).max(connection.min_window),
            };
            connection.actuator.set(limit.map(share));
        }
    }

    /// The kernel's view, combined over all connections.
    fn kernel(&self) -> Result<KernelView> {
        let read = |connection: &ReceiveConnection| -> Result<KernelView> {
            let info = Info::read(connection.channel.socket());
            let info = info.map_err(TransferError::system("TCP_INFO"))?;
            Ok(KernelView {
                window: info.rcv_wnd,
                rtt: info.rcv_rtt.nonzero(),
                minimum_rtt: info.min_rtt.nonzero(),
                out_of_order: info.rcv_ooopack.unwrap_or(0).into(),
            })
        };
        let (first, more) = self.connections.split_first().ok_or(TransferError::Interrupted)?;
        more.iter().try_fold(read(first)?, |sum, connection| Ok(plus(sum, &read(connection)?)))
    }

    /// Whether no connection's window can grow further on this host.
    fn is_at_limit(&self) -> bool {
        let at_limit = |connection: &ReceiveConnection| {
            let buffer = options::receive_buffer(connection.channel.socket());
            buffer.is_ok_and(|buffer| buffer >= self.max_buffer.scaled(0.9))
        };
        self.connections.iter().all(at_limit)
    }

    /// The wanted number of connections, if it changed.
    fn update_streams(&mut self, kernel: &KernelView) -> Option<u32> {
        let (now, content) = (clock::now(), self.content);
        let rate = self.recent.update(now, content);
        let rtt = self.control_loop.rtt().or(kernel.minimum_rtt).unwrap_or_default();
        let in_flight = rate * rtt;
        let fills = kernel.window.is_some_and(|window| in_flight >= window.scaled(FULL_SHARE));
        let window_limited = fills && self.is_at_limit();
        let held_down = if window_limited {
            let each = rate.scaled(1.0 / f64::from(self.streams.count()));
            Some(HeldDown { each: Some(each) })
        } else {
            self.sender_limit.filter(|(until, _)| now < *until).map(|(_, held_down)| held_down)
        };
        let capacity = self.control_loop.capacity();
        let count = self.streams.update(now, rtt, content, held_down, capacity)?;
        self.notes.push(format!(
            "{} limits each connection (all together: {rate}); using {count} connections from now on",
            if window_limited {
                "the receive buffer's limit (net.ipv4.tcp_rmem)"
            } else if held_down.is_some() {
                "the sender's host"
            } else {
                "a fair share"
            }
        ));
        Some(count)
    }
}

impl ReceiveConnection {
    fn new(channel: &Arc<Channel>, method: ClampMethod) -> ReceiveConnection {
        // A closed connection needs no window.
        let mss = Info::read(channel.socket()).map_or(Bytes::ZERO, |info| info.advmss);
        ReceiveConnection {
            channel: Arc::clone(channel),
            actuator: WindowActuator::new(method),
            min_window: mss * MIN_SHARE_SEGMENTS,
        }
    }

    fn hold(&mut self) -> Result<()> {
        let held = self.actuator.hold(self.channel.socket());
        held.map_err(TransferError::system("TCP_WINDOW_CLAMP"))
    }
}

fn plus(mut sum: KernelView, other: &KernelView) -> KernelView {
    sum.window = sum.window.zip(other.window).map(|(a, b)| a + b);
    sum.rtt = mean_known(sum.rtt, other.rtt);
    sum.minimum_rtt = [sum.minimum_rtt, other.minimum_rtt].into_iter().flatten().min();
    sum.out_of_order += other.out_of_order;
    sum
}

/// The mean of two RTTs, or the only known one.
fn mean_known(a: Option<Duration>, b: Option<Duration>) -> Option<Duration> {
    a.zip(b).map(|(a, b)| (a + b) / 2).or(a).or(b)
}

/// A UDP socket for probes to one sender.
struct ProbeSocket {
    udp: Udp,
    to: SocketAddr,
}

impl ProbeSocket {
    fn open(channel: &Channel, to: SocketAddr) -> std::io::Result<ProbeSocket> {
        let udp = Udp::bind_shared(channel.socket().local_addr()?)?;
        udp.connect(to)?;
        Ok(ProbeSocket { udp, to })
    }
}
