use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use sweetspot_diagnose::Limits;
use sweetspot_diagnose::live::{Live, Side};
use sweetspot_groups::{BULK_BYTES, OwnClamp, PacedUpload, PathGroup, TuneEventKind};
use sweetspot_linux::live::{LostSocket, OwnSocket};
use sweetspot_linux::tcp::Info;
use sweetspot_linux::tcp::options::{self, BufferLocks, SendMemory};
use sweetspot_sizing::SizingPhase;
use sweetspot_units::{Bytes, Duration, Rate, Time};
use sweetspot_watch::{Surroundings, sample_of_info};

use crate::options::Options;
use crate::report::{Activity, Autotuning, Report};
use crate::window;

/// A connection on which nothing moves for this long rests: its limits are lifted, and it is sampled rarely.
const REST_AFTER: Duration = Duration::from_secs(2);

/// How often the locks of the buffers are read.
const LOCKS_INTERVAL: Duration = Duration::from_secs(1);

/// The limiting factor is that of the last one to two of these.
const LIMITS_INTERVAL: Duration = Duration::from_secs(2);

/// A socket of the pool.
pub(crate) struct Member {
    pub socket: OwnSocket,
    pub options: Options,
    pub activity: Activity,
    /// The socket was closed, or its connection is over.
    pub is_over: bool,
    pub upload: PacedUpload,
    /// Whether its upload is left alone because the kernel refuses to pace it.
    pub leaves_upload: bool,
    /// Whether a limit was reported since it began to move.
    pub is_claimed: bool,
    own_clamp: OwnClamp,
    is_limited: bool,
    /// The program's own pace limit, once ours is set.
    paced_before: Option<Option<Rate>>,
    live: Live,
    model_based: bool,
    autotuning: Autotuning,
    locks_due: Time,
    latest: Option<Reading>,
    /// When data last moved.
    moved: Time,
    /// The sums of limits at the last two ticks of [`LIMITS_INTERVAL`], the older one first.
    earlier_limits: [(Time, Limits); 2],
}

/// The kernel's report of a socket.
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
}

impl Member {
    /// A socket that is not limited yet.
    pub fn new(socket: OwnSocket, options: Options, now: Time) -> Member {
        Member {
            socket,
            options,
            activity: Activity::Connecting,
            is_over: false,
            upload: PacedUpload::default(),
            leaves_upload: false,
            is_claimed: false,
            own_clamp: OwnClamp::default(),
            is_limited: false,
            paced_before: None,
            live: Live::default(),
            model_based: false,
            autotuning: Autotuning::Unknown,
            locks_due: now,
            latest: None,
            moved: now,
            earlier_limits: [(now, Limits::default()), (now, Limits::default())],
        }
    }

    /// Its connection is open: begins to watch it. Returns its ends, this one first.
    pub fn open(&mut self, now: Time) -> Result<io::Result<(IpAddr, IpAddr)>, LostSocket> {
        self.socket.with(|fd| {
            let reading = Reading::read(fd, now)?;
            let ends = options::ends(fd)?
                .ok_or_else(|| io::Error::other("a socket without an address"))?;
            let ends = (ends.0.ip(), ends.1.ip());
            let is_young = reading.info.bytes_received < BULK_BYTES;
            self.own_clamp = window::begin(fd, &reading.info, is_young, reading.info.advmss)?;
            self.model_based = options::congestion(fd).is_ok_and(|name| name.starts_with("bbr"));
            self.live = Live::between(ends.0, ends.1);
            (self.activity, self.moved, self.latest) = (Activity::Active, now, Some(reading));
            Ok(ends)
        })
    }

    /// The latest reading.
    pub fn latest(&self) -> Option<Reading> {
        self.latest
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
        let has_moved = self.latest.is_none_or(|last| {
            last.info.bytes_received != info.bytes_received
                || last.info.bytes_acked != info.bytes_acked
        });
        // Data that wait in a buffer may be stuck, but they are not idle.
        if has_moved || info.unacked > 0 || reading.unread > Bytes::ZERO {
            self.moved = now;
        }
        let (model_based, memory) = (self.model_based, reading.memory);
        let surroundings = Surroundings { model_based, memory, unread: reading.unread };
        self.live.handle(sample_of_info(info, &surroundings, now));
        let [_, (since, _)] = self.earlier_limits;
        if now.since(since) >= LIMITS_INTERVAL {
            self.earlier_limits.swap(0, 1);
            self.earlier_limits[1] = (now, *self.live.limits());
        }
        self.latest = Some(*reading);
    }

    /// Whether nothing has moved for so long that it may rest.
    pub fn is_idle(&self, now: Time) -> bool {
        now.since(self.moved) >= REST_AFTER
    }

    /// Whether data have moved since the last sample of a resting socket.
    pub fn has_moved(&self, now: Time) -> Result<io::Result<bool>, LostSocket> {
        self.socket.with(|fd| {
            let reading = Reading::read(fd, now)?;
            Ok(is_over(&reading.info)
                || self.latest.is_none_or(|last| {
                    last.info.bytes_received != reading.info.bytes_received
                        || last.info.bytes_acked != reading.info.bytes_acked
                }))
        })
    }

    /// Limits the window; `None` lifts the limit. The error is the kernel's refusal.
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

    /// Limits the pace, never above the program's own limit; `None` brings that one back. The error is the kernel's
    /// refusal.
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

    /// Lifts every limit. A socket that is gone has none.
    pub fn undo(&mut self) {
        if self.is_limited {
            let _ = self.limit(None);
        }
        if let Some(before) = self.paced_before.take() {
            let _ = self.socket.with(|fd| options::set_max_pacing_rate(fd, before));
        }
        // A controller of its own begins with the next data.
        self.upload = PacedUpload::default();
        self.is_claimed = false;
    }

    /// The state for the program. `group` is that of its path, while it moves.
    pub fn report(&self, group: Option<&PathGroup>) -> Report {
        let cookie = self.socket.cookie();
        let info = self.latest.map(|reading| reading.info);
        let side = self.live.side();
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
            // Linux counts the SYN as a byte acknowledged.
            acked: info.map_or(Bytes::ZERO, |info| info.bytes_acked.saturating_sub(Bytes::new(1))),
            window: info.and_then(|info| info.rcv_wnd),
            limit: group.filter(|_| self.is_limited).and_then(|group| group.limit(cookie)),
            pacing_rate: self.upload.pace(),
            rtt: self.live.rtt(),
            min_rtt: info.and_then(|info| positive(info.min_rtt)).or(self.live.rtt_min()),
            rate,
            phase: group.map_or(SizingPhase::HandsOff, PathGroup::phase),
            reason: group.and_then(PathGroup::reason),
            limiting_factor: self.live.limits().since(&self.earlier_limits[0].1).dominant(),
            autotuning: self.autotuning,
        }
    }
}

/// Whether a connection can move no more data.
pub(crate) fn is_over(info: &Info) -> bool {
    // TCP_TIME_WAIT and TCP_CLOSE of include/net/tcp_states.h.
    matches!(info.state, 6 | 7)
}

/// What an observer is told about a socket, beside the report.
pub(crate) type Told = (TuneEventKind, String);

/// Whether the kernel autotunes the receive buffer; turns it on if `unlocks`.
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
