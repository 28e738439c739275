use sweetspot_units::{Rate, Time};

use super::{AckSample, CongestionConfig, CongestionControl, CongestionEvent, Growth};

/// Jacobson's slow start and congestion avoidance (RFC 5681), in two variants: exactly as ns-2
/// ([`Growth::PerAck`]), and as Linux ([`Growth::PerPacket`]).
#[derive(Debug, Clone)]
pub struct Reno {
    cwnd: f64,
    ssthresh: f64,
    initial_window: f64,
    growth: Growth,
    /// Share of the window that a loss leaves: 0.5 in RFC 5681.
    backoff: f32,
}

/// RFC 5681 equation (4); ns-2 `TcpAgent::slowdown`: "if (ssthresh_ < 2) ssthresh_ = 2".
const MIN_SSTHRESH: f64 = 2.0;

impl Reno {
    /// The control at the start of a connection.
    pub fn new(config: &CongestionConfig) -> Reno {
        Reno {
            cwnd: config.initial_window,
            ssthresh: config.initial_ssthresh,
            initial_window: config.initial_window,
            growth: config.growth,
            backoff: config.backoff,
        }
    }

    /// Continues in congestion avoidance from a window of `cwnd` packets.
    pub(super) fn restart_from(&mut self, cwnd: f64) {
        self.cwnd = cwnd;
        self.ssthresh = cwnd.max(MIN_SSTHRESH);
    }

    /// The share of the used window that remains after a loss, usually half.
    fn half(&self, event: &CongestionEvent) -> f64 {
        match self.growth {
            // ns-2 `TcpAgent::slowdown` with `precisionReduce_`, default since January 2006:
            // halfwin = windowd() / 2, windowd() = min(cwnd_, wnd_).
            Growth::PerAck => self.cwnd.min(event.window) * f64::from(self.backoff),
            // Linux `tcp_reno_ssthresh`: max(cwnd >> 1, 2).
            Growth::PerPacket => (self.cwnd * f64::from(self.backoff)).floor(),
        }
    }

    /// ns-2's `ssthresh_` is an integer: `ssthresh_ = (int) halfwin`.
    fn lower_ssthresh(&mut self, half: f64) {
        self.ssthresh = half.floor().max(MIN_SSTHRESH);
    }

    /// ns-2 `slowdown(CLOSE_SSTHRESH_HALF|CLOSE_CWND_HALF)`.
    fn halve(&mut self, event: &CongestionEvent) {
        let half = self.half(event);
        self.lower_ssthresh(half);
        self.cwnd = match self.growth {
            // The window keeps its fraction, the threshold does not: "if (cwnd_ < 1) cwnd_ = 1".
            Growth::PerAck => half.max(1.0),
            Growth::PerPacket => self.ssthresh,
        };
    }

    /// Linux `tcp_reno_cong_avoid`: ACKs up to the end of slow start count there, the rest in congestion avoidance.
    fn grow_per_packet(&mut self, acked: u32) {
        let acked = f64::from(acked);
        let slow = (self.ssthresh - self.cwnd).clamp(0.0, acked);
        self.cwnd += slow;
        self.cwnd += (acked - slow) / self.cwnd;
    }
}

impl CongestionControl for Reno {
    #[inline]
    fn handle_ack(&mut self, ack: &AckSample) {
        if ack.acked == 0 || ack.recovering {
            return;
        }
        match self.growth {
            // ns-2 `TcpAgent::opencwnd`, called once per new ACK by `recv_newack_helper`:
            // cwnd_ += 1 below ssthresh_, else cwnd_ += increase_num_ / cwnd_.
            Growth::PerAck if self.cwnd < self.ssthresh => self.cwnd += 1.0,
            Growth::PerAck => self.cwnd += 1.0 / self.cwnd,
            // `tcp_cong_avoid` gets the newly delivered packets, without those sacked before.
            Growth::PerPacket if ack.cwnd_limited => self.grow_per_packet(ack.delivered),
            Growth::PerPacket => {}
        }
    }

    fn handle_recovery(&mut self, event: &CongestionEvent) {
        self.halve(event);
    }

    fn handle_recovered(&mut self, _now: Time) {}

    /// ns-2 `TcpAgent::timeout`: slowdown(CLOSE_SSTHRESH_HALF|CLOSE_CWND_RESTART), where the
    /// restart window is 1; RFC 5681 section 3.1, "loss window".
    fn handle_timeout(&mut self, event: &CongestionEvent) {
        if !event.reduced {
            let half = self.half(event);
            self.lower_ssthresh(half);
        }
        self.cwnd = 1.0;
    }

    /// ns-2 `TcpAgent::ecn`: slowdown(CLOSE_CWND_HALF|CLOSE_SSTHRESH_HALF).
    fn handle_ecn(&mut self, event: &CongestionEvent) {
        self.halve(event);
    }

    fn handle_restart(&mut self, _now: Time) {
        // RFC 5681 section 4.1: RW = min(IW, cwnd).
        self.cwnd = self.cwnd.min(self.initial_window);
    }

    #[inline]
    fn cwnd(&self) -> f64 {
        self.cwnd
    }

    #[inline]
    fn ssthresh(&self) -> f64 {
        self.ssthresh
    }

    #[inline]
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }
}
