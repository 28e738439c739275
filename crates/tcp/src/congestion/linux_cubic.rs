use sweetspot_units::{Duration, Rate, Time};

use super::{AckSample, CongestionConfig, CongestionControl, CongestionEvent};

/// CUBIC as in Linux (`net/ipv4/tcp_cubic.c`), with its integers and its names.
///
/// It differs from RFC 9438 where the difference costs or gains packets. Until the first loss (`last_max_cwnd` is 0), the
/// window grows by at least a twentieth per round trip (`cnt <= 20`). The Reno-friendly window keeps its slope above the last
/// maximum. Slow start ends at once, by the HyStart of 2008 (ACK trains as well as delay). Time is in jiffies.
#[derive(Debug, Clone)]
pub struct LinuxCubic {
    /// `snd_cwnd`.
    cwnd: u32,
    /// `snd_cwnd_cnt`: packets acknowledged that have not yet widened the window.
    cwnd_cnt: u32,
    /// `snd_ssthresh`.
    ssthresh: u32,
    initial_window: u32,
    packet_bytes: u64,
    curve: Curve,
    hystart: HyStart2008,
    /// Departure time of the last packet of a flight that is acknowledged as a whole (`lsndtime`).
    idle_since: Option<Time>,
}

/// `struct bictcp` without HyStart's fields.
#[derive(Debug, Clone, Copy, Default)]
struct Curve {
    /// One packet is added per `cnt` acknowledged.
    cnt: u32,
    last_max_cwnd: u32,
    last_cwnd: u32,
    /// Jiffies.
    last_time: u64,
    /// The plateau of this congestion avoidance stage.
    bic_origin_point: u32,
    /// Time to the plateau, in 1/1024 s.
    bic_k: u64,
    /// Start of the stage in jiffies; `None` before a stage.
    epoch_start: Option<u64>,
    ack_cnt: u32,
    /// The window that Reno would have.
    tcp_cwnd: u32,
    /// Microseconds; 0: none yet.
    delay_min: u64,
}

/// HyStart as Ha and Rhee published it in 2008: "Taming the elephants: new TCP slow start".
#[derive(Debug, Clone, Copy, Default)]
struct HyStart2008 {
    found: bool,
    samples: u32,
    round_start: Time,
    last_ack: Time,
    end_seq: u64,
    /// The min RTT of this round, microseconds.
    curr_rtt: Option<u64>,
}

/// Jiffies per second: CONFIG_HZ of Debian's, Red Hat's and Amazon's kernels.
const HZ: u64 = 250;
const JIFFY_NS: u64 = 1_000_000_000 / HZ;
/// `BICTCP_BETA_SCALE` and the module's `beta`: 0.7.
const BETA_SCALE: u32 = 1024;
const BETA: u32 = 717;
/// `beta_scale`: eight times the number of windows of ACKs after which Reno adds a packet, 15.
const RENO_SCALE: u32 = 8 * (BETA_SCALE + BETA) / 3 / (BETA_SCALE - BETA);
/// The module's `bic_scale`, C = 41/1024 per tenth of a second.
const BIC_SCALE: u64 = 41;
const CUBE_RTT_SCALE: u64 = BIC_SCALE * 10;
const CUBE_FACTOR: u64 = (1 << 40) / (BIC_SCALE * 10);
/// "increase cwnd 5% per RTT" while the first maximum is unknown.
const MAX_CNT_AT_FIRST: u32 = 20;

/// `hystart_low_window`.
const HYSTART_LOW_WINDOW: u32 = 16;
/// `hystart_ack_delta_us`: ACKs closer together than this form a train.
const HYSTART_ACK_DELTA: Duration = Duration::from_millis(2);
/// `HYSTART_MIN_SAMPLES`.
const HYSTART_MIN_SAMPLES: u32 = 8;
/// `HYSTART_DELAY_MIN` and `HYSTART_DELAY_MAX`, microseconds.
const HYSTART_DELAY_US: (u64, u64) = (4000, 16_000);
/// Four of the largest segments that the kernel passes to a device (`sk_gso_max_size`).
const FOUR_GSO_BYTES: u64 = 4 * 65_536;

impl LinuxCubic {
    /// The control at the start of a connection.
    pub fn new(config: &CongestionConfig) -> LinuxCubic {
        let ssthresh = config.initial_ssthresh.min(f64::from(u32::MAX)) as u32;
        LinuxCubic {
            cwnd: config.initial_window as u32,
            cwnd_cnt: 0,
            ssthresh: ssthresh.max(2),
            initial_window: config.initial_window as u32,
            packet_bytes: config.packet.get(),
            curve: Curve::default(),
            hystart: HyStart2008::default(),
            idle_since: None,
        }
    }

    fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// `cubictcp_cwnd_event`: time without data in flight does not count.
    fn exclude_idle_time(&mut self, ack: &AckSample, rtt: Duration) {
        let sent = ack.now - rtt;
        if let (Some(since), Some(start)) = (self.idle_since.take(), &mut self.curve.epoch_start) {
            *start = (*start + jiffies(sent).saturating_sub(jiffies(since)))
                .min(jiffies(sent).max(*start));
        }
        self.idle_since = (ack.in_flight == 0).then_some(sent);
    }

    /// `cubictcp_acked`.
    fn note_delay(&mut self, ack: &AckSample, rtt: Duration) {
        // "Discard delay samples right after fast recovery".
        let now = jiffies(ack.now);
        if self.curve.epoch_start.is_some_and(|start| now.saturating_sub(start) < HZ) {
            return;
        }
        let delay = (rtt.as_nanos() / 1000).max(1);
        let min = &mut self.curve.delay_min;
        *min = if *min == 0 { delay } else { delay.min(*min) };
        if !self.hystart.found && self.in_slow_start() {
            let threshold = self.train_threshold(ack, rtt);
            self.hystart.update(ack, self.cwnd, delay, self.curve.delay_min, threshold);
            if self.hystart.found {
                self.ssthresh = self.cwnd;
            }
        }
    }

    /// The longest ACK train that does not end slow start: half the min RTT, or all of it if packets are paced. To this it
    /// adds the time of four segments of the largest size, at most a millisecond (`hystart_ack_delay`).
    fn train_threshold(&self, ack: &AckSample, rtt: Duration) -> Duration {
        // tcp_update_pacing_rate: twice the window per round trip in slow start.
        let window = 2 * u64::from(self.cwnd) * self.packet_bytes;
        let four = Duration::from_nanos(FOUR_GSO_BYTES * rtt.as_nanos() / window.max(1));
        let threshold =
            Duration::from_nanos(self.curve.delay_min * 1000) + four.min(Duration::from_millis(1));
        if ack.paced { threshold } else { threshold / 2 }
    }

    /// `tcp_cong_avoid_ai`: a packet for `w` packets acknowledged.
    fn grow_by_credit(&mut self, w: u32, acked: u32) {
        let w = w.max(1);
        if self.cwnd_cnt >= w {
            self.cwnd_cnt = 0;
            self.cwnd += 1;
        }
        self.cwnd_cnt += acked;
        self.cwnd += self.cwnd_cnt / w;
        self.cwnd_cnt %= w;
    }

    /// `cubictcp_recalc_ssthresh`.
    fn lower_ssthresh(&mut self) {
        self.curve.epoch_start = None;
        self.curve.last_max_cwnd = if self.cwnd < self.curve.last_max_cwnd {
            // Fast convergence.
            (u64::from(self.cwnd) * u64::from(BETA_SCALE + BETA) / u64::from(2 * BETA_SCALE)) as u32
        } else {
            self.cwnd
        };
        let lowered = u64::from(self.cwnd) * u64::from(BETA) / u64::from(BETA_SCALE);
        self.ssthresh = (lowered as u32).max(2);
        self.cwnd_cnt = 0;
    }
}

impl HyStart2008 {
    /// `bictcp_hystart_reset`: begins a round.
    fn reset(&mut self, now: Time, nxt: u64) {
        self.round_start = now;
        self.last_ack = now;
        self.end_seq = nxt;
        self.curr_rtt = None;
        self.samples = 0;
    }

    /// `hystart_update`. Times in microseconds.
    fn update(&mut self, ack: &AckSample, cwnd: u32, delay: u64, delay_min: u64, train: Duration) {
        if ack.una > self.end_seq {
            self.reset(ack.now, ack.nxt);
        }
        if cwnd < HYSTART_LOW_WINDOW {
            return;
        }
        if ack.now.since(self.last_ack) <= HYSTART_ACK_DELTA {
            self.last_ack = ack.now;
            self.found |= ack.now.since(self.round_start) > train;
        }
        let min = self.curr_rtt.map_or(delay, |min| min.min(delay));
        self.curr_rtt = Some(min);
        if self.samples < HYSTART_MIN_SAMPLES {
            self.samples += 1;
        } else {
            let (shortest, longest) = HYSTART_DELAY_US;
            self.found |= min > delay_min + (delay_min / 8).clamp(shortest, longest);
        }
    }
}

impl Curve {
    /// `bictcp_update`: computes `cnt`.
    fn update(&mut self, now: Time, cwnd: u32, acked: u32) {
        let now = jiffies(now);
        self.ack_cnt += acked;
        if self.last_cwnd == cwnd && now.saturating_sub(self.last_time) <= HZ / 32 {
            return;
        }
        // "The CUBIC function can update ca->cnt at most once per jiffy."
        if self.epoch_start.is_none() || now != self.last_time {
            self.last_cwnd = cwnd;
            self.last_time = now;
            self.follow_curve(now, cwnd, acked);
        }
        self.apply_reno_friendliness(cwnd);
        // At most one packet per two acknowledged.
        self.cnt = self.cnt.max(2);
    }

    fn follow_curve(&mut self, now: u64, cwnd: u32, acked: u32) {
        let start = self.epoch_start.unwrap_or_else(|| self.begin(now, cwnd, acked));
        let elapsed = now.saturating_sub(start) + self.delay_min * HZ / 1_000_000;
        let t = (elapsed << 10) / HZ;
        let offset = t.abs_diff(self.bic_k);
        let delta = (u128::from(CUBE_RTT_SCALE) * u128::from(offset).pow(3)) >> 40;
        let delta = delta.min(u128::from(u32::MAX / 2)) as u32;
        let target = if t < self.bic_k {
            self.bic_origin_point.saturating_sub(delta)
        } else {
            self.bic_origin_point.saturating_add(delta)
        };
        self.cnt = if target > cwnd { cwnd / (target - cwnd) } else { 100 * cwnd };
        if self.last_max_cwnd == 0 {
            self.cnt = self.cnt.min(MAX_CNT_AT_FIRST);
        }
    }

    fn begin(&mut self, now: u64, cwnd: u32, acked: u32) -> u64 {
        self.epoch_start = Some(now);
        self.ack_cnt = acked;
        self.tcp_cwnd = cwnd;
        let missing = u64::from(self.last_max_cwnd.saturating_sub(cwnd));
        self.bic_k = libm::cbrt((CUBE_FACTOR * missing) as f64) as u64;
        self.bic_origin_point = self.last_max_cwnd.max(cwnd);
        now
    }

    fn apply_reno_friendliness(&mut self, cwnd: u32) {
        let per_packet = (cwnd * RENO_SCALE / 8).max(1);
        while self.ack_cnt > per_packet {
            self.ack_cnt -= per_packet;
            self.tcp_cwnd += 1;
        }
        if self.tcp_cwnd > cwnd {
            self.cnt = self.cnt.min(cwnd / (self.tcp_cwnd - cwnd));
        }
    }
}

fn jiffies(at: Time) -> u64 {
    at.as_nanos() / JIFFY_NS
}

impl CongestionControl for LinuxCubic {
    fn handle_ack(&mut self, ack: &AckSample) {
        if let Some(rtt) = ack.rtt {
            self.exclude_idle_time(ack, rtt);
            self.note_delay(ack, rtt);
        }
        if ack.acked == 0 || ack.recovering {
            return;
        }
        if !ack.cwnd_limited {
            return;
        }
        let mut acked = ack.delivered;
        if self.in_slow_start() {
            // `tcp_slow_start`: the rest counts in congestion avoidance.
            let grown = acked.min(self.ssthresh - self.cwnd);
            self.cwnd += grown;
            acked -= grown;
            if acked == 0 {
                return;
            }
        }
        self.curve.update(ack.now, self.cwnd, acked);
        self.grow_by_credit(self.curve.cnt, acked);
    }

    fn handle_recovery(&mut self, _event: &CongestionEvent) {
        self.lower_ssthresh();
        self.cwnd = self.cwnd.min(self.ssthresh);
    }

    fn handle_recovered(&mut self, _now: Time) {}

    fn handle_timeout(&mut self, event: &CongestionEvent) {
        if !event.reduced {
            self.lower_ssthresh();
        }
        // `cubictcp_state`: the state is reset, and HyStart also watches this slow start.
        self.curve = Curve::default();
        self.hystart = HyStart2008::default();
        self.hystart.reset(event.now, event.nxt);
        self.cwnd = 1;
        self.cwnd_cnt = 0;
    }

    fn handle_ecn(&mut self, event: &CongestionEvent) {
        self.handle_recovery(event);
    }

    fn handle_restart(&mut self, _now: Time) {
        self.cwnd = self.cwnd.min(self.initial_window);
    }

    fn cwnd(&self) -> f64 {
        f64::from(self.cwnd)
    }

    fn ssthresh(&self) -> f64 {
        match self.ssthresh {
            u32::MAX => f64::INFINITY,
            packets => f64::from(packets),
        }
    }

    fn pacing_rate(&self) -> Option<Rate> {
        None
    }
}
