//! Datagrams of a measurement, the same at both ends: sends streams and records their arrivals, requests and
//! reflects echoes.

use std::collections::{BTreeMap, HashMap};
use std::os::fd::AsFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

use sweetspot_linux::event_fd::{EventFd, wait_readable};
use sweetspot_linux::udp::{ReceivedDatagram, Udp};
use sweetspot_linux::{clock, scheduling};
use sweetspot_measure::{Arrival, Echo, Spacing};
use sweetspot_protocol::probe::{PacketAuthenticator, ProbePacket, StreamPacket};
use sweetspot_units::{Bytes, Duration, Time};

use crate::limits::{MAX_KEPT_STREAMS, MAX_STREAM_ARRIVALS};
use crate::lock::lock;
use crate::{Result, TransferError};

/// The longest datagram, bytes: a jumbo frame.
const MAX_DATAGRAM_BYTES: usize = 9216;
/// A stream is over after this long without an arrival.
const QUIET: Duration = Duration::from_millis(250);
/// A stream that is late by more than this does not catch up: the rest of its schedule is postponed.
const LONGEST_CATCH_UP: Duration = Duration::from_millis(20);
/// Interval of the checks for arrivals.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

#[derive(Clone, Copy)]
pub(super) struct Stream {
    pub number: u32,
    pub packets: u32,
    pub gap: Duration,
    pub spacing: Spacing,
}

/// One end's datagrams of one flow: echoes or streams. Each flow has its own socket, so that per-flow queueing
/// becomes visible.
pub(super) struct Datagrams {
    udp: Udp,
    authenticator: PacketAuthenticator,
    arrivals: Mutex<BTreeMap<u32, Vec<Arrival>>>,
    requested: Mutex<HashMap<u32, Time>>,
    echoes: Mutex<Vec<Echo>>,
    next_echo: AtomicU32,
    done: AtomicBool,
    event_fd: EventFd,
}

/// Runs `work` while all of `datagrams` receive, each in its own thread.
pub(super) fn receiving<T>(
    datagrams: [&Datagrams; 2],
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    thread::scope(|scope| {
        let started = datagrams.iter().try_for_each(|datagrams| {
            let thread = thread::Builder::new().name("datagrams".into());
            thread.spawn_scoped(scope, || datagrams.run()).map(drop)
        });
        let result =
            started.map_err(TransferError::system("starting a thread")).and_then(|()| work());
        datagrams.iter().for_each(|datagrams| datagrams.stop());
        result
    })
}

impl Datagrams {
    pub fn new(udp: Udp, authenticator: PacketAuthenticator) -> std::io::Result<Datagrams> {
        Ok(Datagrams {
            udp,
            authenticator,
            arrivals: Mutex::default(),
            requested: Mutex::default(),
            echoes: Mutex::default(),
            next_echo: AtomicU32::new(0),
            done: AtomicBool::new(false),
            event_fd: EventFd::new()?,
        })
    }

    /// Makes [`Datagrams::run`] return.
    pub fn stop(&self) {
        self.done.store(true, Ordering::Release);
        self.event_fd.signal();
    }

    /// Receives until [`Datagrams::stop`].
    pub fn run(&self) {
        let mut datagram = [0; MAX_DATAGRAM_BYTES];
        while !self.done.load(Ordering::Acquire) {
            if wait_readable(&[self.udp.as_fd(), self.event_fd.as_fd()], Time::MAX).is_err() {
                return;
            }
            while let Ok(Some(arrival)) = self.udp.receive(&mut datagram) {
                self.handle(&datagram[..arrival.length.min(MAX_DATAGRAM_BYTES)], &arrival);
            }
        }
    }

    fn handle(&self, datagram: &[u8], arrival: &ReceivedDatagram) {
        match self.authenticator.open(datagram) {
            Some(ProbePacket::Stream(StreamPacket { stream, index, sent })) => {
                let mut arrivals = lock(&self.arrivals);
                let kept: usize = arrivals.values().map(Vec::len).sum();
                let noted = arrivals.entry(stream).or_default();
                if kept < MAX_STREAM_ARRIVALS {
                    noted.push(Arrival { index, sent, received: arrival.at });
                }
                // One stream is in flight at a time; a few packets of older ones may arrive late.
                if arrivals.len() > MAX_KEPT_STREAMS {
                    arrivals.pop_first();
                }
            }
            Some(ProbePacket::Echo { sequence }) => {
                let held = clock::now().since(arrival.at);
                let reply = ProbePacket::Reflected { sequence, received: arrival.at, held };
                let size = Bytes::new(datagram.len() as u64);
                // An echo that cannot be sent counts as lost.
                let _ = self.udp.send(&self.authenticator.close(&reply, size));
            }
            Some(ProbePacket::Reflected { sequence, received, held }) => {
                if let Some(sent) = lock(&self.requested).remove(&sequence) {
                    let echo = Echo { sent, reflected: received, held, received: arrival.at };
                    lock(&self.echoes).push(echo);
                }
            }
            _ => {}
        }
    }

    /// Sends a hole punch, which shows the far end this end's address.
    pub fn punch(&self, sequence: u32, size: Bytes) {
        let _ = self.udp.send(&self.authenticator.close(&ProbePacket::Punch { sequence }, size));
    }

    pub fn request_echo(&self, payload: Bytes) {
        let sequence = self.next_echo.fetch_add(1, Ordering::Relaxed);
        let datagram = self.authenticator.close(&ProbePacket::Echo { sequence }, payload);
        lock(&self.requested).insert(sequence, clock::now());
        let _ = self.udp.send(&datagram);
    }

    /// Requests an echo every `interval` while `going` returns true. Returns the number of requests.
    pub fn request_while(
        &self,
        payload: Bytes,
        interval: Duration,
        going: impl Fn(u32) -> bool,
    ) -> u32 {
        let (start, mut requested) = (clock::now(), 0);
        while going(requested) {
            self.request_echo(payload);
            requested += 1;
            clock::sleep_until(start + interval * u64::from(requested));
        }
        requested
    }

    /// The echoes that returned. Waits until there are `of` of them, at most for `patience`.
    pub fn take_echoes(&self, of: u32, patience: Duration) -> Vec<Echo> {
        let deadline = clock::now() + patience;
        while clock::now() < deadline && lock(&self.echoes).len() < of as usize {
            clock::sleep_until(clock::now() + LOOK_INTERVAL);
        }
        lock(&self.requested).clear();
        std::mem::take(&mut *lock(&self.echoes))
    }

    /// Sends each packet of a stream at its due time, or at once if that has just passed.
    pub fn send_stream(&self, stream: Stream, payload: Bytes) {
        // With timer slack the kernel wakes this thread up to 50 us late, to coalesce wakeups.
        let _ = scheduling::drop_timer_slack();
        let start = clock::now();
        let due = stream.spacing.due(stream.gap, stream.number.into());
        let mut paused = Duration::ZERO;
        for (index, due) in (0..stream.packets).zip(due) {
            let due = start + due + paused;
            let now = clock::now();
            if now < due {
                clock::sleep_until(due);
            } else if stream.gap > Duration::ZERO && now.since(due) > LONGEST_CATCH_UP {
                // If the host was suspended, catching up would fill the queue.
                paused += now.since(due);
            }
            let packet = StreamPacket { stream: stream.number, index, sent: clock::now() };
            let datagram = self.authenticator.close(&ProbePacket::Stream(packet), payload);
            let _ = self.udp.send(&datagram);
        }
    }

    /// The arrivals of a stream of `packets`. Waits until all have arrived, until none arrives for [`QUIET`], at
    /// most for `longest`.
    pub fn take_arrivals(&self, stream: u32, packets: u32, longest: Duration) -> Vec<Arrival> {
        let (mut seen, mut changed) = (0, clock::now());
        let deadline = changed + longest;
        loop {
            let now = clock::now();
            let have = lock(&self.arrivals).get(&stream).map_or(0, Vec::len);
            if have > seen {
                (seen, changed) = (have, now);
            }
            if have >= packets as usize || now.since(changed) >= QUIET || now >= deadline {
                break;
            }
            clock::sleep_until(now + LOOK_INTERVAL);
        }
        lock(&self.arrivals).remove(&stream).unwrap_or_default()
    }
}
