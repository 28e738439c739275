//! Runs the controller on a live socket: applies what it asks for, and reads back what the kernel did.

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use sweetspot_linux::clock;
use sweetspot_linux::event_fd::{EventFd, wait_readable};
use sweetspot_linux::tcp::{ClampMethod, Info, WindowActuator};
use sweetspot_linux::udp::Udp;
use sweetspot_protocol::series::SeriesRecord;
use sweetspot_protocol::{ControlLoop, Message, TransferEffect};
use sweetspot_sizing::{CONTROL_INTERVAL, KernelView};
use sweetspot_units::{Bytes, Duration, Time};

use super::channel::{Channel, lock};
use super::udp_demux::Registration;
use crate::TransferError;
use crate::observer::TransferObserver;

/// The time between two messages to the sender while the disk catches up after the last byte.
const BUSY_INTERVAL: Duration = Duration::from_secs(1);
/// The longest datagram, bytes: a jumbo frame.
const MAX_DATAGRAM_BYTES: usize = 9216;

/// Shared by the thread that reads content and the one that keeps time.
pub(crate) struct ReceiverControl<'a> {
    channel: &'a Channel,
    state: Mutex<ReceiverState>,
    observer: Mutex<&'a mut dyn TransferObserver>,
    registration: Option<Arc<Registration>>,
    /// All content came; the disk is catching up.
    finishing: AtomicBool,
    done: AtomicBool,
    event_fd: EventFd,
}

/// What only one thread may hold at a time.
struct ReceiverState {
    control_loop: ControlLoop,
    actuator: WindowActuator,
    /// Content flows, so the window may be limited.
    flowing: bool,
    /// Work for the timekeeper, which alone sends datagrams and calls the observer.
    datagrams: Vec<Vec<u8>>,
    records: Vec<SeriesRecord>,
    notes: Vec<&'static str>,
}

impl<'a> ReceiverControl<'a> {
    pub fn new(
        channel: &'a Channel,
        control_loop: ControlLoop,
        clamp_method: ClampMethod,
        registration: Option<Arc<Registration>>,
        observer: &'a mut dyn TransferObserver,
    ) -> Result<ReceiverControl<'a>, TransferError> {
        let state = ReceiverState {
            control_loop,
            actuator: WindowActuator::new(clamp_method),
            flowing: false,
            datagrams: Vec::new(),
            records: Vec::new(),
            notes: Vec::new(),
        };
        let receiver_control = ReceiverControl {
            channel,
            state: Mutex::new(state),
            observer: Mutex::new(observer),
            registration,
            finishing: AtomicBool::new(false),
            done: AtomicBool::new(false),
            event_fd: EventFd::new().map_err(TransferError::system("making an eventfd"))?,
        };
        // The handshake's round trip is known before the first data.
        receiver_control.tick(None)?;
        Ok(receiver_control)
    }

    /// Data was read from the socket; called after every read.
    pub fn handle_data(&self, bytes: Bytes, unread: Bytes) -> Result<(), TransferError> {
        let mut state = lock(&self.state);
        state.control_loop.handle_data(clock::now(), bytes, unread);
        self.perform(&mut state)?;
        // Reading is when the kernel's autotuning grows the buffer and overwrites the limit.
        self.hold(&mut state)
    }

    /// Of the bytes that were read, `content` belong to the file.
    pub fn handle_content(&self, content: Bytes) {
        let mut state = lock(&self.state);
        state.control_loop.handle_content(content);
        state.flowing = true;
    }

    /// All content has arrived.
    pub fn finishing(&self) {
        self.finishing.store(true, Ordering::Release);
    }

    /// Ends [`ReceiverControl::keep_time`], because the transfer is over.
    pub fn done(&self) {
        self.done.store(true, Ordering::Release);
        self.event_fd.signal();
    }

    /// Asks the control loop a question.
    pub fn ask<T>(&self, question: impl FnOnce(&ControlLoop) -> T) -> T {
        question(&lock(&self.state).control_loop)
    }

    /// Runs the controller's timers and the probes until [`ReceiverControl::done`].
    pub fn keep_time(&self) -> Result<(), TransferError> {
        let (mut probe_socket, mut busy_at) = (None, Time::MAX);
        while !self.done.load(Ordering::Acquire) {
            let now = clock::now();
            let due = if self.finishing.load(Ordering::Acquire) {
                busy_at = busy_at.min(now + BUSY_INTERVAL);
                if now >= busy_at {
                    self.channel.say(&Message::Busy)?;
                    busy_at = now + BUSY_INTERVAL;
                }
                now + CONTROL_INTERVAL
            } else {
                self.answer_phone(&mut probe_socket);
                self.listen(probe_socket.as_ref())?;
                self.tick(probe_socket.as_ref())?
            };
            self.wait(probe_socket.as_ref(), due);
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

    /// Opens a socket for datagrams to the sender once its address is known, and a new one when it
    /// comes under another.
    fn answer_phone(&self, probe_socket: &mut Option<ProbeSocket>) {
        let Some(peer_address) =
            self.registration.as_ref().and_then(|registration| registration.peer_address())
        else {
            return;
        };
        if probe_socket.as_ref().is_some_and(|probe_socket| probe_socket.to == peer_address) {
            return;
        }
        // Without it probes are not answered, and the kernel's estimate stands in.
        if let Ok(new) = ProbeSocket::open(self.channel, peer_address) {
            *probe_socket = Some(new);
            lock(&self.state).control_loop.handle_reachable(clock::now());
        }
    }

    fn listen(&self, probe_socket: Option<&ProbeSocket>) -> Result<(), TransferError> {
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

    fn tick(&self, probe_socket: Option<&ProbeSocket>) -> Result<Time, TransferError> {
        let info = Info::read(self.channel.socket()).map_err(TransferError::system("TCP_INFO"))?;
        let view = KernelView {
            window: info.rcv_wnd,
            rtt: info.rcv_rtt,
            minimum_rtt: info.min_rtt,
            out_of_order: info.rcv_ooopack.unwrap_or(0).into(),
        };
        let (datagrams, records, notes, due) = {
            let mut state = lock(&self.state);
            let state = &mut *state;
            state.control_loop.handle_timeout(clock::now(), &view);
            self.perform(state)?;
            self.hold(state)?;
            (
                std::mem::take(&mut state.datagrams),
                std::mem::take(&mut state.records),
                std::mem::take(&mut state.notes),
                state.control_loop.poll_timeout(),
            )
        };
        for datagram in &datagrams {
            // A probe that cannot leave is a probe lost.
            let _ = probe_socket.map(|probe_socket| probe_socket.udp.send(datagram));
        }
        let mut observer = lock(&self.observer);
        records.iter().for_each(|record| observer.line(record));
        notes.iter().for_each(|note| observer.note(note));
        Ok(due)
    }

    fn hold(&self, state: &mut ReceiverState) -> Result<(), TransferError> {
        if !state.flowing {
            return Ok(());
        }
        let held = state.actuator.hold(self.channel.socket());
        held.map_err(TransferError::system("TCP_WINDOW_CLAMP"))
    }

    fn perform(&self, state: &mut ReceiverState) -> Result<(), TransferError> {
        while let Some(effect) = state.control_loop.poll_effect() {
            match effect {
                TransferEffect::Limit(limit) => state.actuator.set(limit),
                TransferEffect::Tell(message) => self.channel.say(&message)?,
                TransferEffect::Send(datagram) => state.datagrams.push(datagram),
                TransferEffect::Record(record) => state.records.push(record),
                TransferEffect::Note(note) => state.notes.push(note),
            }
        }
        Ok(())
    }
}

/// Datagrams to and from one sender.
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
