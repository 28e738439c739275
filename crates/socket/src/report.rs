use sweetspot_diagnose::Class;
use sweetspot_sizing::{Reason, SizingPhase};
use sweetspot_units::{Bytes, Duration, Rate};

/// The direction with the most data.
pub use sweetspot_diagnose::live::Side;

/// The state of an attached socket when it was last sampled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Report {
    /// Whether it is connected, and whether data is flowing.
    pub activity: Activity,
    /// The direction with the most data.
    pub side: Side,
    /// Payload received.
    pub received: Bytes,
    /// Payload that the peer acknowledged.
    pub acked: Bytes,
    /// The last advertised window; `None` on kernels before 6.2.
    pub window: Option<Bytes>,
    /// The library's limit on the window; `None`: no limit.
    pub limit: Option<Bytes>,
    /// The library's pacing rate; `None`: no limit.
    pub pacing_rate: Option<Rate>,
    /// The latest RTT; `None` if it is unknown.
    pub rtt: Option<Duration>,
    /// The min RTT; `None` if it is unknown.
    pub min_rtt: Option<Duration>,
    /// Payload rate in the direction with the most data.
    pub rate: Rate,
    /// Whether the peer's library answers, see [`Options::both_ends`](crate::Options::both_ends).
    pub both_ends: bool,
    /// The phase of the window's controller.
    pub phase: SizingPhase,
    /// The reason why the controller entered this phase; `None` in its first phase.
    pub reason: Option<Reason>,
    /// The limiting factor of the last seconds, by the rules of `sweetspot diagnose`. A window limited by the library
    /// counts as [`Class::ReceiverWindow`].
    pub limiting_factor: Class,
    /// Whether the kernel autotunes the receive buffer.
    pub autotuning: Autotuning,
}

/// Whether data is flowing on a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// The handshake is not complete.
    Connecting,
    /// Data flowed in the last seconds.
    Active,
    /// No data has flowed yet, or none for two seconds. The library sets no limit.
    Idle,
}

impl Activity {
    /// The name used in Python and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Activity::Connecting => "connecting",
            Activity::Active => "active",
            Activity::Idle => "idle",
        }
    }
}

/// Whether the kernel autotunes a receive buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Autotuning {
    /// Autotuning is on.
    On,
    /// Autotuning is off, because the program has set `SO_RCVBUF`. The window can be at most about half of the
    /// buffer; the rest is the kernel's overhead.
    Off {
        /// The receive buffer size.
        buffer: Bytes,
    },
    /// The kernel does not report it (before Linux 5.16).
    Unknown,
}

impl Autotuning {
    /// The maximum rate at an RTT of `rtt` that a buffer without autotuning allows; `None`: no known limit. The
    /// kernel assumes that half of a buffer is overhead until it has seen full segments (`TCP_DEFAULT_SCALING_RATIO`,
    /// include/net/tcp.h).
    pub fn max_rate(self, rtt: Duration) -> Option<Rate> {
        match self {
            Autotuning::Off { buffer } if rtt > Duration::ZERO => Some(buffer / 2 / rtt),
            Autotuning::Off { .. } | Autotuning::On | Autotuning::Unknown => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 425,984 B / 2 = 212,992 B in 100 ms are 17.04 Mbit/s.
    #[test]
    fn a_locked_buffer_limits_the_rate_to_half_its_size_per_rtt() {
        let off = Autotuning::Off { buffer: Bytes::new(425_984) };
        let rtt = Duration::from_millis(100);
        let max = off.max_rate(rtt).map(|rate| rate.bits_per_second());
        assert_eq!(max, Some(17_039_360));
        assert_eq!(off.max_rate(Duration::ZERO), None);
        assert_eq!(Autotuning::On.max_rate(rtt), None);
    }
}
