use sweetspot_units::Duration;

use super::AckSample;

/// HyStart++ (RFC 9406). It leaves the first slow start before the bottleneck's buffer overflows,
/// when the round-trip time shows that a queue builds up.
#[derive(Debug, Clone)]
pub struct HyStart {
    phase: HystartPhase,
    /// The round ends when this is acknowledged ("windowEnd").
    round_end: u64,
    last_min: Option<Duration>,
    current_min: Option<Duration>,
    samples: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HystartPhase {
    /// Standard slow start.
    Slow,
    /// Conservative slow start: number of rounds begun, and the RTT at its start.
    Conservative { rounds: u32, baseline: Duration },
    /// Slow start is over for good.
    Over,
}

/// How slow start proceeds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SlowStart {
    /// The window grows by this many packets.
    Grow(f64),
    /// Congestion avoidance begins with the current window.
    Exit,
}

// RFC 9406 section 4.3, the recommended values.
const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
const MIN_RTT_DIVISOR: u64 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: f64 = 4.0;
const CSS_ROUNDS: u32 = 5;
/// L: the maximum number of packets per ACK that count, for a sender that does not pace.
const L_PACKETS: f64 = 8.0;

impl Default for HyStart {
    fn default() -> HyStart {
        HyStart {
            phase: HystartPhase::Slow,
            round_end: 0,
            last_min: None,
            current_min: None,
            samples: 0,
        }
    }
}

impl HyStart {
    /// Handles an ACK of `counted` packets in slow start (RFC 9406 section 4.2).
    pub fn handle_ack(&mut self, ack: &AckSample, counted: f64) -> SlowStart {
        if self.phase == HystartPhase::Over {
            return SlowStart::Grow(counted);
        }
        if ack.una >= self.round_end && self.start_round(ack.nxt) {
            self.phase = HystartPhase::Over;
            return SlowStart::Exit;
        }
        if let Some(rtt) = ack.rtt {
            self.current_min = Some(self.current_min.map_or(rtt, |min| min.min(rtt)));
            self.samples += 1;
        }
        self.judge();
        let grown = counted.min(L_PACKETS);
        match self.phase {
            HystartPhase::Conservative { .. } => SlowStart::Grow(grown / CSS_GROWTH_DIVISOR),
            _ => SlowStart::Grow(grown),
        }
    }

    /// A loss or a mark ended slow start. HyStart++ applies only to the first slow start (section
    /// 4.3).
    pub fn handle_congestion(&mut self) {
        self.phase = HystartPhase::Over;
    }

    /// Begins a round. Returns whether conservative slow start has lasted all of its rounds.
    fn start_round(&mut self, nxt: u64) -> bool {
        self.round_end = nxt;
        self.last_min = self.current_min.take();
        self.samples = 0;
        match &mut self.phase {
            // The partial round at the start of conservative slow start counts, so `rounds` began
            // at 1.
            HystartPhase::Conservative { rounds, .. } => {
                *rounds += 1;
                *rounds > CSS_ROUNDS
            }
            _ => false,
        }
    }

    fn judge(&mut self) {
        let (Some(current), true) = (self.current_min, self.samples >= N_RTT_SAMPLE) else {
            return;
        };
        match self.phase {
            HystartPhase::Slow => {
                let Some(last) = self.last_min else { return };
                let thresh = (last / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
                if current >= last + thresh {
                    self.phase = HystartPhase::Conservative { rounds: 1, baseline: current };
                }
            }
            HystartPhase::Conservative { baseline, .. } if current < baseline => {
                self.phase = HystartPhase::Slow
            }
            _ => {}
        }
    }
}
