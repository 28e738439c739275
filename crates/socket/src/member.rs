use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use sweetspot_control::{BULK_BYTES, OwnClamp, PacedUpload, PathGroup, TuneEventKind};
use sweetspot_diagnose::live::{Live, Side};
use sweetspot_diagnose::{Class, Limits};
use sweetspot_linux::diag::TcpState;
use sweetspot_linux::live::{LostSocket, OwnSocket};
use sweetspot_linux::sysctl;
use sweetspot_linux::tcp::options::{self, BufferLocks, SendMemory};
use sweetspot_linux::tcp::{Info, MIN_PACE, SenderCongestion};
use sweetspot_protocol::probe::Steering;
use sweetspot_sizing::SizingPhase;
use sweetspot_units::{Bytes, Duration, Rate, Time};

use crate::link::SocketLink;
use crate::options::{Options, SocketSizing};
use crate::readings::{ExtraInfo, diagnosis};
use crate::report::{Activity, Autotuning, Report};
use crate::window;

/// A connection without progress for this long rests: its limits are lifted, and it is sampled rarely.
const REST_AFTER: Duration = Duration::from_secs(2);

/// Interval at which the buffer locks (SO_BUF_LOCK) are read.
const LOCKS_INTERVAL: Duration = Duration::from_secs(1);

/// The limiting factor covers the last one to two of these intervals.
const LIMITS_INTERVAL: Duration = Duration::from_secs(2);

pub(crate) struct Member {
    pub socket: OwnSocket,
    pub options: Options,
    pub activity: Activity,
    /// Whether the socket was closed, or its connection has ended.
    pub is_over: bool,
    /// The controller of sent data. It is large, so it exists only while data is moving.
    pub upload: Option<Box<PacedUpload>>,
    /// Whether the upload is left alone because the kernel rejected the pacing rate.
    pub leaves_upload: bool,
    /// Whether a limit has been reported since data began to move.
    pub is_claimed: bool,
    /// Datagrams to and from the peer's library.
    pub link: Option<Box<SocketLink>>,
    /// The pacing and congestion control requested by the peer's receiver. `congestion` can restore the original one.
    steered: Steering,
    congestion: Option<SenderCongestion>,
    own_clamp: OwnClamp,
    is_limited: bool,
    /// The program's own pacing limit, once ours is set.
    paced_before: Option<Option<Rate>>,
    /// Addresses of both ends, once the connection is open.
    ends: Option<(IpAddr, IpAddr)>,
    /// The connection's statistics, while data is moving.
    live: Option<Box<Live>>,
    model_based: bool,
    autotuning: Autotuning,
    locks_due: Time,
    latest: Option<Reading>,
    /// The last time at which data moved.
    moved: Time,
    pub attached: Time,
    /// The accumulated limits at the last two ticks of [`LIMITS_INTERVAL`], older first.
    earlier_limits: [(Time, Limits); 2],
}

/// The kernel's statistics of a socket.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading {
    pub at: Time,
    pub info: Info,
    pub unread: Bytes,
    memory: Option<SendMemory>,
}

impl Reading {
    fn read(fd: &OwnedFd, now: Time) -> io::Result<Reading> {
        let info = Info::read(fd)?;
        let (unread, memory) = (options::unread(fd)?, options::send_memory(fd).ok());
        Ok(Reading { at: now, info, unread, memory })
    }

    /// Payload received, and bytes acknowledged by the peer, including its SYN.
    fn moved(&self) -> (Bytes, Bytes) {
        (self.info.bytes_received, self.info.bytes_acked.max(SYN))
    }
}

impl Member {
    /// A socket without limits.
    pub fn new(socket: OwnSocket, options: Options, link: Option<SocketLink>, now: Time) -> Member {
        Member {
            socket,
            options,
            activity: Activity::Connecting,
            is_over: false,
            upload: None,
            leaves_upload: false,
            is_claimed: false,
            link: link.map(Box::new),
            steered: Steering::default(),
            congestion: None,
            own_clamp: OwnClamp::default(),
            is_limited: false,
            paced_before: None,
            ends: None,
            live: None,
            model_based: false,
            autotuning: Autotuning::Unknown,
            locks_due: now,
            latest: None,
            attached: now,
            moved: now,
            earlier_limits: [(now, Limits::default()), (now, Limits::default())],
        }
    }

    /// Handles an open connection: reads its addresses and its clamp.
    fn open(&mut self, fd: &OwnedFd, reading: &Reading) -> io::Result<()> {
        let ends = options::ends(fd)?;
        let (local, remote) =
            ends.ok_or_else(|| io::Error::other("a socket without an address"))?;
        let is_young = reading.info.bytes_received < BULK_BYTES;
        self.own_clamp = window::begin(fd, &reading.info, is_young, reading.info.advmss)?;
        self.model_based = options::congestion(fd).is_ok_and(|name| name.starts_with("bbr"));
        self.autotuning = autotuning(fd, self.options.unlock_buffers);
        if let Some(link) = &mut self.link {
            self.congestion = Some(SenderCongestion::new(fd, is_chosen(fd)));
            link.open(local.ip(), remote.ip());
        }
        self.ends = Some((local.ip(), remote.ip()));
        self.activity = Activity::Idle;
        Ok(())
    }

    /// Begins to watch a connection on which data has moved since the last sample. Returns its ends, local first, and that
    /// sample.
    pub fn begin(&mut self) -> Option<((IpAddr, IpAddr), Reading)> {
        let (ends, reading) = self.ends.zip(self.latest)?;
        let now = reading.at;
        self.live = Some(Box::new(Live::between(ends.0, ends.1)));
        self.earlier_limits = [(now, Limits::default()); 2];
        (self.activity, self.moved) = (Activity::Active, now);
        Some((ends, reading))
    }

    /// Samples the socket, and sets its `limit` again if the kernel overwrote it.
    pub fn sample(
        &mut self,
        now: Time,
        limit: Option<Bytes>,
    ) -> Result<io::Result<Reading>, LostSocket> {
        let limit = limit.filter(|_| self.is_limited);
        let reads_locks = now >= self.locks_due;
        let (own_clamp, unlocks) = (&mut self.own_clamp, self.options.unlock_buffers);
        let read = self.socket.with(|fd| {
            let reading = Reading::read(fd, now)?;
            window::hold(fd, &reading.info, limit, own_clamp)?;
            let autotuning = reads_locks.then(|| autotuning(fd, unlocks));
            Ok((reading, autotuning))
        })?;
        let (reading, autotuning) = match read {
            Ok(read) => read,
            Err(error) => return Ok(Err(error)),
        };
        if let Some(autotuning) = autotuning {
            self.autotuning = autotuning;
            self.locks_due = now + LOCKS_INTERVAL;
        }
        self.learn(&reading);
        Ok(Ok(reading))
    }

    fn learn(&mut self, reading: &Reading) {
        let (info, now) = (&reading.info, reading.at);
        let has_moved = self.latest.is_none_or(|last| last.moved() != reading.moved());
        // Data waiting in a buffer may be stuck, but the connection is not idle.
        if has_moved || info.unacked > 0 || reading.unread > Bytes::ZERO {
            self.moved = now;
        }
        let (model_based, memory) = (self.model_based, reading.memory);
        let extra_info = ExtraInfo { model_based, memory, unread: reading.unread };
        if let Some(live) = &mut self.live {
            live.handle(diagnosis(info, &extra_info, now));
            if now.since(self.earlier_limits[1].0) >= LIMITS_INTERVAL {
                self.earlier_limits.swap(0, 1);
                self.earlier_limits[1] = (now, *live.limits());
            }
        }
        self.latest = Some(*reading);
    }

    /// Whether it may rest, because no data has moved for a while.
    pub fn is_idle(&self, now: Time) -> bool {
        now.since(self.moved) >= REST_AFTER
    }

    /// Polls a resting socket.
    pub fn poll(&mut self, now: Time) -> Movement {
        let is_open = self.ends.is_some();
        // Cheaper than a complete reading: there may be thousands of such sockets.
        let reading = match self.socket.with(|fd| Info::read(fd)) {
            Ok(Ok(info)) => Reading { at: now, info, unread: Bytes::ZERO, memory: None },
            Err(lost) if !lost.is_over() => return Movement::Still,
            Ok(Err(_)) | Err(_) => return Movement::Closed,
        };
        match TcpState::from_number(reading.info.state) {
            // Not connected yet, or the handshake failed: the program may try again or close the socket.
            Some(TcpState::Close | TcpState::SynSent | TcpState::SynReceived) if !is_open => {
                return Movement::Still;
            }
            Some(TcpState::Close | TcpState::TimeWait | TcpState::Listen) => {
                return Movement::Closed;
            }
            _ => {}
        }
        let socket = self.socket;
        if !is_open && !matches!(socket.with(|fd| self.open(fd, &reading)), Ok(Ok(()))) {
            return Movement::Closed;
        }
        let before = self.latest.map_or((Bytes::ZERO, SYN), |last| last.moved());
        self.latest = Some(reading);
        if reading.moved() == before { Movement::Still } else { Movement::Moved }
    }

    /// Limits the window; `None` lifts the limit. The inner error is the kernel's.
    pub fn limit(&mut self, to: Option<Bytes>) -> Result<io::Result<()>, LostSocket> {
        let own_clamp = &mut self.own_clamp;
        self.is_limited = to.is_some();
        self.socket.with(|fd| match to {
            None => window::lift(fd, own_clamp),
            Some(_) => {
                window::note(fd, &Info::read(fd)?, own_clamp)?;
                own_clamp.plan(to);
                window::set(fd, to, own_clamp)
            }
        })
    }

    /// Limits the pacing rate, but never above the program's own limit; `None` restores that one. The inner error is the
    /// kernel's.
    pub fn pace(&mut self, to: Option<Rate>) -> Result<io::Result<()>, LostSocket> {
        let paced_before = &mut self.paced_before;
        self.socket.with(|fd| {
            let before = match *paced_before {
                Some(before) => before,
                None => options::max_pacing_rate(fd)?,
            };
            *paced_before = Some(before);
            options::set_max_pacing_rate(fd, to.into_iter().chain(before).min())
        })
    }

    /// Whether the sender helps, or still may.
    pub fn is_helped(&self) -> bool {
        let is_live = self.options.sizing == SocketSizing::Live;
        is_live && self.link.as_ref().is_some_and(|link| link.is_helping())
    }

    /// Handles the datagrams of the peer's library. `group` is the socket's.
    pub fn exchange(&mut self, now: Time, reading: &Reading, group: &mut PathGroup) {
        if let Some(link) = &mut self.link {
            link.handle(now, &reading.info, group);
        }
    }

    /// Applies the requests of the peer's receiver. Returns whether there are any; then nothing else sets the pacing rate.
    pub fn apply_requests(&mut self, now: Time) -> bool {
        let requested = self.link.as_ref().and_then(|link| link.steering(now));
        if requested.is_some()
            && let Some(upload) = self.upload.take()
            && upload.pace().is_some()
        {
            let _ = self.pace(None);
        }
        self.steer(requested.unwrap_or_default());
        requested.is_some()
    }

    /// Applies new pacing and congestion control. If the kernel rejects them, the socket sends as before.
    fn steer(&mut self, to: Steering) {
        if to == self.steered {
            return;
        }
        let before = std::mem::replace(&mut self.steered, to);
        let pacing = |steering: &Steering| (steering.pacing, steering.congestion);
        if let Some(congestion) = &self.congestion {
            let follow = |fd: &OwnedFd| congestion.follow(fd, pacing(&before), pacing(&to));
            let _ = self.socket.with(follow);
        }
        if to.pacing != before.pacing {
            let _ = self.pace(to.pacing.map(|pace| pace.max(MIN_PACE)));
        }
    }

    /// Lifts every limit. A closed socket has none.
    pub fn undo(&mut self) {
        if let Some(link) = &mut self.link {
            link.release();
        }
        self.steer(Steering::default());
        if self.is_limited {
            let _ = self.limit(None);
        }
        if let Some(before) = self.paced_before.take() {
            let _ = self.socket.with(|fd| options::set_max_pacing_rate(fd, before));
        }
        // They are created again when data moves.
        (self.upload, self.live) = (None, None);
        self.is_claimed = false;
    }

    /// The state for the program. `group` is the path's, while data is moving.
    pub fn report(&self, group: Option<&PathGroup>) -> Report {
        let cookie = self.socket.cookie();
        let info = self.latest.map(|reading| reading.info);
        let live = self.live.as_deref();
        // Before the second sample, only the totals are known.
        let compared = live.filter(|live| live.limits().total() > Duration::ZERO);
        let side = match (compared, info) {
            (Some(live), _) => live.side(),
            (None, Some(info)) if info.bytes_acked > info.bytes_received + SYN => Side::Sender,
            (None, _) => Side::Receiver,
        };
        let positive = |time: Duration| Some(time).filter(|time| *time > Duration::ZERO);
        let rate = match side {
            Side::Receiver => group.map_or(Rate::ZERO, |group| group.connection_rate(cookie)),
            Side::Sender if self.activity == Activity::Active => {
                info.map_or(Rate::ZERO, |info| info.delivery_rate)
            }
            Side::Sender => Rate::ZERO,
        };
        Report {
            activity: self.activity,
            side,
            received: info.map_or(Bytes::ZERO, |info| info.bytes_received),
            acked: info.map_or(Bytes::ZERO, |info| info.bytes_acked.saturating_sub(SYN)),
            window: info.and_then(|info| info.rcv_wnd),
            limit: group.filter(|_| self.is_limited).and_then(|group| group.limit(cookie)),
            pacing_rate: self.upload.as_deref().and_then(PacedUpload::pace).or(self.steered.pacing),
            rtt: live.and_then(Live::rtt).or(info.and_then(|info| positive(info.rtt))),
            min_rtt: info.and_then(|info| positive(info.min_rtt)),
            rate,
            both_ends: self.link.as_ref().is_some_and(|link| link.is_up()),
            phase: group.map_or(SizingPhase::HandsOff, PathGroup::phase),
            reason: group.and_then(PathGroup::reason),
            limiting_factor: live.map_or(Class::Idle, |live| {
                live.limits().since(&self.earlier_limits[0].1).dominant()
            }),
            autotuning: self.autotuning,
        }
    }
}

/// The result of a poll of a resting socket.
pub(crate) enum Movement {
    Still,
    Moved,
    /// It was closed, or its connection has ended.
    Closed,
}

/// Linux counts the SYN as an acknowledged byte.
const SYN: Bytes = Bytes::new(1);

/// Whether a connection can transfer no more data.
pub(crate) fn is_over(info: &Info) -> bool {
    matches!(TcpState::from_number(info.state), Some(TcpState::TimeWait | TcpState::Close))
}

/// An event for an observer, without the report.
pub(crate) type ObservedEvent = (TuneEventKind, String);

/// Whether the program apparently chose the socket's congestion control itself.
fn is_chosen(fd: &OwnedFd) -> bool {
    let default = sysctl::default_congestion_control().ok();
    options::congestion(fd).ok().zip(default).is_none_or(|(own, default)| own != default)
}

/// Whether the kernel autotunes the receive buffer. Turns autotuning on again if `unlocks`.
fn autotuning(fd: &OwnedFd, unlocks: bool) -> Autotuning {
    let Ok(locks) = options::buffer_locks(fd) else { return Autotuning::Unknown };
    let is_locked = locks != BufferLocks::default();
    if is_locked && unlocks && options::set_buffer_locks(fd, BufferLocks::default()).is_ok() {
        return Autotuning::On;
    }
    match options::receive_buffer(fd) {
        Ok(buffer) if locks.receive => Autotuning::Off { buffer },
        Ok(_) => Autotuning::On,
        Err(_) => Autotuning::Unknown,
    }
}
