use core::fmt;

use sweetspot_units::{Bytes, Duration, Time};

use crate::ControllerConfig;
use crate::advertised::{Advertised, RightSizer};
use crate::reception::{Reception, Round};

/// The kernel's own receive autotuning (`tcp_rcv_space_adjust`), as a controller that can be simulated. It works in window
/// space: a buffer counts as the window that it allows.
///
/// Kernels from 6.16 on also count out-of-order data. A controller does not see them, so they are left out.
#[derive(Debug)]
pub struct LinuxAutotuning {
    rule: LinuxRule,
    mss: Bytes,
    rtt: Option<Duration>,
    bytes_read: Bytes,
    reception: Reception,
    /// rcvq_space.space: bytes that the application copied in the best round trip so far.
    space: Bytes,
    /// window_clamp: the window of the buffer, which never shrinks.
    clamp: Bytes,
    /// rcv_ssthresh: the window follows the clamp as segments arrive.
    ssthresh: Bytes,
    advertised: Advertised,
}

/// Versions of the rule, each named after its first kernel; the oldest after its last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LinuxRule {
    /// Up to 6.15: twice the copied bytes, 16 segments, and twice the growth on top.
    UpTo6_15,
    /// 6.16 and 6.17: twice the copied bytes (65c5287892e9), less the waiting ones (ea33537d8292).
    From6_16,
    /// 6.18: twice the growth on top again (aa251c84636c).
    From6_18,
    /// 6.19 and later: below 1 ms growth in proportion to the round trip (ecfea98b7d0d).
    From6_19,
}

/// tcp_rmem[1] 131072 at the initial scaling ratio of one half (697a6c8cec03).
const INITIAL_CLAMP: Bytes = Bytes::new(65_536);
/// TCP_INIT_CWND: `tcp_init_buffer_space` starts rcvq_space.space there.
pub(crate) const INITIAL_SEGMENTS: u64 = 10;
/// net.ipv4.tcp_rcvbuf_low_rtt.
const LOW_RTT: Duration = Duration::from_millis(1);

impl LinuxRule {
    /// The newest rule.
    pub const NEWEST: LinuxRule = LinuxRule::From6_19;

    /// The rule of kernel `major.minor`.
    pub fn of_version(major: u32, minor: u32) -> LinuxRule {
        match (major, minor) {
            (..=5, _) | (6, ..=15) => LinuxRule::UpTo6_15,
            (6, 16..=17) => LinuxRule::From6_16,
            (6, 18) => LinuxRule::From6_18,
            _ => LinuxRule::From6_19,
        }
    }

    /// The window after a round trip of `rtt` in which the application copied `copied` bytes, and at most `space` bytes in
    /// earlier round trips (`tcp_rcvbuf_grow`).
    fn window(self, copied: Bytes, space: Bytes, rtt: Duration, mss: Bytes) -> Bytes {
        let base = match self {
            LinuxRule::UpTo6_15 => copied * 2 + mss * 16,
            _ => copied * 2,
        };
        // "Slow start: allow the sender to double its rate."
        let doubling = || base.scaled(2.0 * (copied - space).as_f64() / space.as_f64());
        let growth = match self {
            LinuxRule::From6_16 => Bytes::ZERO,
            LinuxRule::From6_19 if rtt < LOW_RTT => {
                base.scaled(rtt.as_secs_f64() / LOW_RTT.as_secs_f64())
            }
            _ => doubling(),
        };
        base.saturating_add(growth)
    }
}

/// The oldest kernel version with the rule, 6.15 for the first.
impl fmt::Display for LinuxRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            LinuxRule::UpTo6_15 => "6.15",
            LinuxRule::From6_16 => "6.16",
            LinuxRule::From6_18 => "6.18",
            LinuxRule::From6_19 => "6.19",
        })
    }
}

impl LinuxAutotuning {
    /// A controller before the first byte.
    pub fn new(rule: LinuxRule, config: &ControllerConfig) -> LinuxAutotuning {
        let clamp = INITIAL_CLAMP.min(config.max_window);
        LinuxAutotuning {
            rule,
            mss: config.mss,
            rtt: None,
            bytes_read: Bytes::ZERO,
            reception: Reception::default(),
            space: (config.mss * INITIAL_SEGMENTS).min(clamp).max(Bytes::new(1)),
            clamp,
            ssthresh: clamp,
            advertised: Advertised::new(config),
        }
    }

    /// `tcp_rcv_space_adjust`, at the end of a round trip.
    fn adjust(&mut self, round: Round, unread: Bytes, rtt: Duration, max: Bytes) {
        let copied = match self.rule {
            LinuxRule::UpTo6_15 => round.bytes,
            _ => round.bytes.saturating_sub(unread),
        };
        if copied <= self.space {
            return;
        }
        let window = self.rule.window(copied, self.space, rtt, self.mss);
        self.space = copied;
        self.clamp = self.clamp.max(window.min(max));
    }
}

impl RightSizer for LinuxAutotuning {
    fn handle_data(&mut self, now: Time, bytes: Bytes, unread: Bytes) {
        self.reception.begin(now);
        self.bytes_read += bytes;
        self.reception.handle_total(self.bytes_read);
        if let Some(rtt) = self.rtt
            && let Some(round) = self.reception.poll_round(now, rtt)
        {
            self.adjust(round, unread, rtt, self.advertised.max());
        }
        // tcp_grow_window: two bytes of window for each that arrives in full segments.
        self.ssthresh = (self.ssthresh + bytes * 2).min(self.clamp);
        self.advertised.set(now, self.ssthresh);
    }
    fn handle_rtt(&mut self, _now: Time, rtt: Duration) {
        self.rtt = Some(rtt);
    }
    fn begin(&mut self, now: Time) {
        self.reception.begin(now);
        self.advertised.set(now, self.ssthresh);
    }
    fn advertised(&self) -> &Advertised {
        &self.advertised
    }
    fn advertised_mut(&mut self) -> &mut Advertised {
        &mut self.advertised
    }
    fn is_growing(&self) -> bool {
        self.ssthresh < self.clamp
    }
}
