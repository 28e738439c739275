//! Throughput under random loss of a flow that is limited by a window, or by a link and its buffer.
//!
//! Formulas without a bound hold if losses keep the window far below the bound. Near it, the top of the sawtooth is cut off,
//! and the mean of the rest is below both the loss response and the bound. Here the window at each loss is a state of a Markov
//! chain. It determines the growth that follows (RFC 5681; RFC 9438, sections 4.2 and 4.3), and each packet may be the next one
//! lost. The chain's stationary distribution gives the packets and the seconds of a period, as in PFTK's section 2 with a fixed
//! period.

use sweetspot_units::{Bytes, Duration, Rate};

use super::pftk::Flow;
use super::response::{CUBIC_C, LossResponse};
use crate::path::Path;

/// The bounds of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The rate of the bottleneck.
    pub capacity: Rate,
    /// Its buffer, which overflows if the window exceeds the capacity of path and buffer.
    pub buffer: Bytes,
    /// The largest window that the hosts allow.
    pub window: Bytes,
}

/// Number of distinct windows in the chain.
const STEPS: usize = 96;
/// Number of steps of a sawtooth.
const SAWTOOTH_STEPS: f64 = 1000.0;
/// Multiple of the mean window above which windows are too rare to count.
const RARE_WINDOW_RATIO: f64 = 6.0;
/// The probability of a loss in a step of time.
const STEP_LOSS: f64 = 0.03;
/// The probability below which the longest periods are cut off.
const MIN_PROBABILITY: f64 = 1e-4;
/// Losses to simulate, more than the chain needs to settle: each loss forgets most of the previous window.
const SIMULATED_LOSSES: usize = 60;

/// The flow in packets and seconds.
struct Chain {
    response: LossResponse,
    loss: f64,
    rtt: f64,
    capacity: f64,
    /// The window that the hosts allow.
    allowed: f64,
    /// The largest window, and whether the buffer overflows there.
    top: f64,
    overflows: bool,
}

/// The expected period after a loss at one window.
struct Period {
    packets: f64,
    seconds: f64,
    /// Probabilities of the states in which it ends.
    ends: Vec<f64>,
}

impl Flow {
    /// The throughput within `bounds` under independent random packet loss, with the timeouts of the approximate formula. The
    /// flow's segments are the link's packets, and its RTT excludes the queue.
    pub fn bounded(&self, response: LossResponse, bounds: &Bounds) -> Rate {
        let packet = self.mss.as_f64();
        let rtt = self.rtt.as_secs_f64();
        let capacity = bounds.capacity.as_f64() / (packet * 8.0);
        let held = capacity * rtt + bounds.buffer.as_f64() / packet;
        let allowed = bounds.window.as_f64() / packet;
        let rare = RARE_WINDOW_RATIO * self.mean_window(response);
        let top = allowed.min(held).min(rare);
        if top < 2.0 {
            return bounds.capacity.min(bounds.window / self.rtt);
        }
        let overflows = held < allowed.min(rare);
        let loss = self.loss.get();
        let chain = Chain { response, loss, rtt, capacity, allowed, top, overflows };
        let (packets, seconds) = chain.mean_period();
        self.rate(1.0 / (seconds / packets + self.waiting())).min(bounds.capacity)
    }
}

/// A flow limited only by its own overflows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overflowing {
    /// Mean throughput.
    pub rate: Rate,
    /// Mean RTT over the round trips of a period.
    pub mean_rtt: Duration,
}

/// A flow that loses a packet whenever it fills path and buffer, and no others. For Reno this is the sawtooth of SOBAS eqs (16)
/// and (17).
pub fn overflowing(response: LossResponse, path: &Path, packet: Bytes) -> Overflowing {
    let rtt = path.minimum_rtt().as_secs_f64();
    let capacity = path.capacity().as_f64() / (packet.as_f64() * 8.0);
    let top = capacity * rtt + path.buffer().as_f64() / packet.as_f64();
    let mut growth = Growth::after(top, top, response);
    let (mut packets, mut seconds, mut rounds) = (0.0, 0.0, 0.0);
    let linear = (top - growth.window) / response.linear() * rtt;
    let period = if response == LossResponse::Reno { linear } else { linear.min(growth.back) };
    let step = period / SAWTOOTH_STEPS;
    while growth.window < top {
        let now = rtt.max(growth.window / capacity);
        packets += growth.window / now * step;
        seconds += step;
        rounds += step / now;
        growth = growth.grown(step, now);
    }
    if seconds == 0.0 {
        return Overflowing { rate: path.capacity(), mean_rtt: path.minimum_rtt() };
    }
    let rate = Rate::from_f64(packets / seconds * packet.as_f64() * 8.0).min(path.capacity());
    Overflowing { rate, mean_rtt: Duration::from_secs_f64(seconds / rounds) }
}

impl Chain {
    /// Mean packets and seconds from one loss to the next.
    fn mean_period(&self) -> (f64, f64) {
        let periods: Vec<Period> = (0..2 * STEPS).map(|state| self.period(state)).collect();
        let mut chances = vec![1.0 / periods.len() as f64; periods.len()];
        for _ in 0..SIMULATED_LOSSES {
            let mut next = vec![0.0; periods.len()];
            for (chance, period) in
                chances.iter().zip(&periods).filter(|(chance, _)| **chance > 0.0)
            {
                for (to, end) in next.iter_mut().zip(&period.ends) {
                    *to += chance * end;
                }
            }
            chances = next;
        }
        let mean = |of: fn(&Period) -> f64| -> f64 {
            chances.iter().zip(&periods).map(|(chance, period)| chance * of(period)).sum()
        };
        (mean(|period| period.packets), mean(|period| period.seconds))
    }

    /// The window of a state. States from `STEPS` on have the lower target of fast convergence.
    fn window(&self, state: usize) -> f64 {
        1.0 + (self.top - 1.0) * (state % STEPS) as f64 / (STEPS - 1) as f64
    }

    /// The period after a loss in `state`.
    fn period(&self, state: usize) -> Period {
        let (lost_at, kept) = (self.window(state), self.response.kept());
        let target = if state < STEPS { lost_at } else { lost_at * (1.0 + kept) / 2.0 };
        let mut growth = Growth::after(lost_at, target, self.response);
        // Recovery takes a round trip (RFC 6675). Data beyond the hole meanwhile fill the receiver's window.
        let mut period = Period {
            packets: growth.window.min(self.allowed - lost_at),
            seconds: self.rtt.max(lost_at / self.capacity),
            ends: vec![0.0; 2 * STEPS],
        };
        let mut left = 1.0;
        while left > MIN_PROBABILITY && growth.window < self.top {
            let (window, rtt) = (growth.window, self.rtt.max(growth.window / self.capacity));
            let rate = window / rtt;
            let highest = rtt * self.top / (STEPS as f64 * self.response.linear());
            let mut step = rtt.max(highest.min(STEP_LOSS / (self.loss * rate)));
            let mut grown = growth.grown(step, rtt);
            // A step must not skip a state.
            while step > rtt && grown.window - window > self.top / STEPS as f64 {
                step = (step / 2.0).max(rtt);
                grown = growth.grown(step, rtt);
            }
            let lost = left * -libm::expm1(-self.loss * rate * step);
            period.packets += lost / self.loss;
            period.seconds += lost / (self.loss * rate);
            self.end(&mut period, window.midpoint(grown.window.min(self.top)), target, lost);
            left -= lost;
            growth = grown;
        }
        if growth.window < self.top || self.overflows {
            self.end(&mut period, growth.window.min(self.top), target, left);
        } else {
            let rate = self.capacity.min(self.top / self.rtt);
            period.packets += left / self.loss;
            period.seconds += left / (self.loss * rate);
            self.end(&mut period, self.top, target, left);
        }
        period
    }

    /// Adds to `period` the probability of a loss at `window`, divided between the two nearest states.
    fn end(&self, period: &mut Period, window: f64, target: f64, chance: f64) {
        let exact = (window - 1.0).max(0.0) / (self.top - 1.0) * (STEPS - 1) as f64;
        let below = (exact as usize).min(STEPS - 2);
        let share = (exact - below as f64).min(1.0);
        // RFC 9438, section 4.7: a window below the last target yields to other flows.
        let lowered = self.response == LossResponse::Cubic && window < target;
        let from = if lowered { STEPS } else { 0 };
        period.ends[from + below] += chance * (1.0 - share);
        period.ends[from + below + 1] += chance * share;
    }
}

/// A window that grows after a loss.
#[derive(Clone, Copy)]
struct Growth {
    response: LossResponse,
    window: f64,
    linear: f64,
    target: f64,
    /// Seconds since the loss, and the time in seconds at which CUBIC returns to `target`.
    age: f64,
    back: f64,
}

impl Growth {
    fn after(lost_at: f64, target: f64, response: LossResponse) -> Growth {
        let window = (lost_at * response.kept()).max(1.0);
        let back = libm::cbrt((target - window).max(0.0) / CUBIC_C);
        Growth { response, window, linear: window, target, age: 0.0, back }
    }

    fn grown(self, step: f64, rtt: f64) -> Growth {
        let rounds = step / rtt;
        let age = self.age + step;
        let linear = self.linear + self.response.linear() * rounds;
        let window = match self.response {
            LossResponse::Reno => linear,
            LossResponse::Cubic => {
                // RFC 9438, section 4.2: growth by at most a half per RTT.
                let most = self.window * libm::pow(1.5, rounds);
                let cubic = CUBIC_C * libm::pow(age - self.back, 3.0) + self.target;
                cubic.min(most).max(linear).max(self.window)
            }
        };
        Growth { window, linear, age, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sweetspot_units::Probability;

    const PACKET: Bytes = Bytes::new(1500);

    fn flow(p: f64, millis: u64) -> Flow {
        let rtt = Duration::from_millis(millis);
        // Timeouts too short to matter.
        let flow = Flow::new(PACKET, rtt, Duration::from_nanos(1), Probability::new(p).unwrap());
        flow.unwrap().with_segments_per_ack(1).unwrap()
    }

    fn bounds(mbit: u64, buffer: u64, window: u64) -> Bounds {
        Bounds {
            capacity: Rate::from_mbit_per_second(mbit),
            buffer: Bytes::new(buffer),
            window: Bytes::new(window),
        }
    }

    #[test]
    fn without_a_bound_renos_mean_follows_random_loss() {
        // Ott, Kemperman and Mathis 1996: a mean over time of 1.3098 / sqrt(p) packets under random loss: 130.98 packets of
        // 12,000 bits per 100 ms.
        let rate = flow(1e-4, 100).bounded(LossResponse::Reno, &bounds(100_000, 0, 1 << 40));
        assert!((rate.as_f64() / 15.718e6 - 1.0).abs() < 0.02, "{rate}");
    }

    #[test]
    fn the_window_bounds_a_nearly_lossless_flow() {
        // 625 kB x 8 / 100 ms = 50 Mbit/s; one packet in a billion is lost.
        for response in [LossResponse::Reno, LossResponse::Cubic] {
            let rate = flow(1e-9, 100).bounded(response, &bounds(100, 0, 625_000));
            assert!((rate.as_f64() / 50e6 - 1.0).abs() < 1e-3, "{rate}");
        }
    }

    #[test]
    fn without_random_loss_the_mean_is_the_sawtooths() {
        // SOBAS eq. (17) with C T = 625 kB and B = 313 kB: 48.22 Mbit/s; without a buffer three quarters.
        for (buffer, mbit) in [(313_000, 48.2216), (0, 37.5)] {
            let rate = flow(1e-12, 100).bounded(LossResponse::Reno, &bounds(50, buffer, 1 << 40));
            assert!((rate.as_f64() / 1e6 / mbit - 1.0).abs() < 0.01, "{rate} {mbit}");
        }
        // CUBIC keeps 0.7 of W and is concave up to W, with a mean of W (1 - 0.3 / 4). Here W = C T, without a buffer.
        let rate = flow(1e-12, 100).bounded(LossResponse::Cubic, &bounds(50, 0, 1 << 40));
        assert!((rate.as_f64() / 46.25e6 - 1.0).abs() < 0.01, "{rate}");
        let of = |response, buffer| {
            let rtt = Duration::from_millis(100);
            let path = Path::new(Rate::from_mbit_per_second(50), rtt, Bytes::new(buffer)).unwrap();
            overflowing(response, &path, PACKET).rate.as_f64() / 1e6
        };
        for (buffer, mbit) in [(313_000, 48.2216), (0, 37.5)] {
            assert!((of(LossResponse::Reno, buffer) / mbit - 1.0).abs() < 0.005, "{buffer}");
        }
        assert!((of(LossResponse::Cubic, 0) / 46.25 - 1.0).abs() < 0.005);
        // The window is 1.12 C T (1 - 0.3 x^3) of 10 Gbit/s x 80 ms on the way back. It is below C T while x > 0.7095; there
        // the integral of 1.12 (1 - 0.3 x^3) is 0.2627. For the rest the link is full: 0.9721.
        let (rtt, rate) = (Duration::from_millis(80), Rate::from_mbit_per_second(10_000));
        let path = Path::new(rate, rtt, Bytes::new(12_000_000)).unwrap();
        let used = overflowing(LossResponse::Cubic, &path, PACKET).rate.as_f64() / 10e9;
        assert!((used / 0.9721 - 1.0).abs() < 0.002, "{used}");
        // 0.7 of 938 kB is more than C T: the link is never idle.
        assert_eq!(of(LossResponse::Cubic, 313_000), 50.0);
    }

    /// The product of rate and mean RTT is the mean window over round trips: 3/4 of the peak for Reno (SOBAS eqs 12, 13), and for
    /// CUBIC without a queue W (1 - 0.3 / 4), as above.
    #[test]
    fn rate_times_mean_rtt_is_the_mean_window() {
        let mean = |response, buffer| {
            let rtt = Duration::from_millis(100);
            let path = Path::new(Rate::from_mbit_per_second(50), rtt, Bytes::new(buffer)).unwrap();
            let flow = overflowing(response, &path, PACKET);
            (flow.rate * flow.mean_rtt).as_f64() / (625_000 + buffer) as f64
        };
        for buffer in [0, 313_000, 625_000] {
            assert!((mean(LossResponse::Reno, buffer) / 0.75 - 1.0).abs() < 0.005, "{buffer}");
        }
        assert!((mean(LossResponse::Cubic, 0) / 0.925 - 1.0).abs() < 0.005);
    }

    #[test]
    fn if_window_and_loss_both_limit_the_mean_is_below_both() {
        // The loss response, 1.22 / sqrt(p) = 100 packets, equals the window.
        let p = 1.5e-4;
        let window = 30_000_000.0;
        for response in [LossResponse::Reno, LossResponse::Cubic] {
            let rate = flow(p, 40).bounded(response, &bounds(30, 150_000, 150_000)).as_f64();
            assert!(rate < 0.9 * window && rate > 0.75 * window, "{rate}");
        }
    }
}
