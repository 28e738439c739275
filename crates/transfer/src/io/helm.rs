//! The controller's seat on a live socket: what the steering wants is done here, and what the
//! kernel did is read back.

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use sweetspot_linux::clock;
use sweetspot_linux::event_fd::{EventFd, wait_readable};
use sweetspot_linux::tcp::{ClampMethod, Info, WindowActuator};
use sweetspot_linux::udp::Udp;
use sweetspot_sizing::{CONTROL_INTERVAL, KernelView};
use sweetspot_units::{Bytes, Duration, Time};

use super::channel::{Channel, lock};
use super::switchboard::Line as PhoneLine;
use crate::TransferError;
use crate::observer::Observer;
use crate::protocol::Message;
use crate::series::Line;
use crate::steering::{Effect, Steering};

/// While the disk catches up after the last byte, the sender hears this often that we live.
const BUSY_INTERVAL: Duration = Duration::from_secs(1);
/// The longest datagram: a jumbo frame.
const DATAGRAM: usize = 9216;

/// Shared by the thread that reads content and the one that keeps time.
pub(crate) struct Helm<'a> {
    channel: &'a Channel,
    hands: Mutex<Hands>,
    observer: Mutex<&'a mut dyn Observer>,
    phone: Option<Arc<PhoneLine>>,
    /// All content came; the disk is catching up.
    finishing: AtomicBool,
    done: AtomicBool,
    event_fd: EventFd,
}

/// What only one thread may hold at a time.
struct Hands {
    steering: Steering,
    actuator: WindowActuator,
    /// Content flows, so the window may be limited.
    flowing: bool,
    /// Left for the timekeeper, which alone talks UDP and to the observer.
    datagrams: Vec<Vec<u8>>,
    records: Vec<Line>,
    notes: Vec<&'static str>,
}

impl<'a> Helm<'a> {
    pub fn new(
        channel: &'a Channel,
        steering: Steering,
        clamp_method: ClampMethod,
        phone: Option<Arc<PhoneLine>>,
        observer: &'a mut dyn Observer,
    ) -> Result<Helm<'a>, TransferError> {
        let hands = Hands {
            steering,
            actuator: WindowActuator::new(clamp_method),
            flowing: false,
            datagrams: Vec::new(),
            records: Vec::new(),
            notes: Vec::new(),
        };
        let helm = Helm {
            channel,
            hands: Mutex::new(hands),
            observer: Mutex::new(observer),
            phone,
            finishing: AtomicBool::new(false),
            done: AtomicBool::new(false),
            event_fd: EventFd::new().map_err(TransferError::system("making an eventfd"))?,
        };
        // The handshake's round trip is known before the first data.
        helm.tick(None)?;
        Ok(helm)
    }

    /// Data was read from the socket; called after every read.
    pub fn handle_data(&self, bytes: Bytes, unread: Bytes) -> Result<(), TransferError> {
        let mut hands = lock(&self.hands);
        hands.steering.handle_data(clock::now(), bytes, unread);
        self.perform(&mut hands)?;
        // Reading is when the kernel's autotuning grows the buffer and overwrites the limit.
        self.hold(&mut hands)
    }

    /// Of what was read, so much turned out to be content.
    pub fn handle_content(&self, content: Bytes) {
        let mut hands = lock(&self.hands);
        hands.steering.handle_content(content);
        hands.flowing = true;
    }

    /// All content came.
    pub fn finishing(&self) {
        self.finishing.store(true, Ordering::Release);
    }

    /// The transfer is over, whichever way: [`Helm::keep_time`] returns.
    pub fn done(&self) {
        self.done.store(true, Ordering::Release);
        self.event_fd.signal();
    }

    /// Asks the steering something.
    pub fn ask<T>(&self, question: impl FnOnce(&Steering) -> T) -> T {
        question(&lock(&self.hands).steering)
    }

    /// Runs the controller's timers and the probes until [`Helm::done`].
    pub fn keep_time(&self) -> Result<(), TransferError> {
        let (mut lane, mut busy_at) = (None, Time::MAX);
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
                self.answer_phone(&mut lane);
                self.listen(lane.as_ref())?;
                self.tick(lane.as_ref())?
            };
            self.wait(lane.as_ref(), due);
        }
        Ok(())
    }

    fn wait(&self, lane: Option<&Lane>, due: Time) {
        let mut sources = vec![self.event_fd.as_fd()];
        sources.extend(lane.map(|lane| lane.udp.as_fd()));
        sources.extend(self.phone.as_ref().map(|phone| phone.event_fd.as_fd()));
        if wait_readable(&sources, due).is_err() {
            clock::sleep_until(due);
        }
    }

    /// Opens a lane of datagrams to the sender once its address is known, and a new one when it
    /// comes under another.
    fn answer_phone(&self, lane: &mut Option<Lane>) {
        let Some(caller) = self.phone.as_ref().and_then(|phone| phone.caller()) else { return };
        if lane.as_ref().is_some_and(|lane| lane.to == caller) {
            return;
        }
        // Without it probes are not answered, and the kernel's estimate stands in.
        if let Ok(new) = Lane::open(self.channel, caller) {
            *lane = Some(new);
            lock(&self.hands).steering.handle_reachable(clock::now());
        }
    }

    fn listen(&self, lane: Option<&Lane>) -> Result<(), TransferError> {
        let Some(lane) = lane else { return Ok(()) };
        let mut datagram = [0; DATAGRAM];
        while let Ok(Some(arrival)) = lane.udp.receive(&mut datagram) {
            let mut hands = lock(&self.hands);
            let datagram = &datagram[..arrival.length.min(DATAGRAM)];
            hands.steering.handle_datagram(clock::now(), arrival.at, datagram);
            self.perform(&mut hands)?;
        }
        Ok(())
    }

    fn tick(&self, lane: Option<&Lane>) -> Result<Time, TransferError> {
        let info = Info::read(self.channel.socket()).map_err(TransferError::system("TCP_INFO"))?;
        let view = KernelView {
            window: info.rcv_wnd,
            rtt: info.rcv_rtt,
            minimum_rtt: info.min_rtt,
            out_of_order: info.rcv_ooopack.unwrap_or(0).into(),
        };
        let (datagrams, records, notes, due) = {
            let mut hands = lock(&self.hands);
            let hands = &mut *hands;
            hands.steering.handle_timeout(clock::now(), &view);
            self.perform(hands)?;
            self.hold(hands)?;
            (
                std::mem::take(&mut hands.datagrams),
                std::mem::take(&mut hands.records),
                std::mem::take(&mut hands.notes),
                hands.steering.poll_timeout(),
            )
        };
        for datagram in &datagrams {
            // A probe that cannot leave is a probe lost.
            let _ = lane.map(|lane| lane.udp.send(datagram));
        }
        let mut observer = lock(&self.observer);
        records.iter().for_each(|line| observer.line(line));
        notes.iter().for_each(|note| observer.note(note));
        Ok(due)
    }

    fn hold(&self, hands: &mut Hands) -> Result<(), TransferError> {
        if !hands.flowing {
            return Ok(());
        }
        let held = hands.actuator.hold(self.channel.socket());
        held.map_err(TransferError::system("TCP_WINDOW_CLAMP"))
    }

    fn perform(&self, hands: &mut Hands) -> Result<(), TransferError> {
        while let Some(effect) = hands.steering.poll_effect() {
            match effect {
                Effect::Limit(limit) => hands.actuator.set(limit),
                Effect::Tell(message) => self.channel.say(&message)?,
                Effect::Send(datagram) => hands.datagrams.push(datagram),
                Effect::Record(line) => hands.records.push(line),
                Effect::Note(note) => hands.notes.push(note),
            }
        }
        Ok(())
    }
}

/// Datagrams to and from one sender.
struct Lane {
    udp: Udp,
    to: SocketAddr,
}

impl Lane {
    fn open(channel: &Channel, to: SocketAddr) -> std::io::Result<Lane> {
        let udp = Udp::bind_shared(channel.socket().local_addr()?)?;
        udp.connect(to)?;
        Ok(Lane { udp, to })
    }
}
