//! The paper's closed-loop simulation for a link of one's own, within bounded work.

use sweetspot_theory::TheoryError;
use sweetspot_theory::router::capacity_ratio::CapacityRatio;

use super::ladder::ladder;
use super::link::SimulatedLink;
use super::measure::{BufferMeasured, Runner, measure};
use crate::StudyError;

/// How much work a verification may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// Two seconds or less on two cores.
    Quick,
    /// Half a minute or so on two cores.
    Thorough,
}

/// The simulation of a [`SimulatedLink`].
#[derive(Debug)]
pub struct Verified {
    /// The simulated link: the real one, or one slow enough for the work allowed, with users in proportion.
    pub link: SimulatedLink,
    /// Its rate divided by the real link's.
    pub scale: f64,
    /// Seconds measured per buffer and seed.
    pub seconds: u64,
    /// Runs per buffer.
    pub seeds: u64,
    /// Index of the buffer to try.
    pub advised: usize,
    /// Index of the rule's buffer, C T.
    pub rule: usize,
    /// In rising order of the buffer.
    pub measured: Vec<BufferMeasured>,
}

struct Plan {
    /// Packets that all runs together may send.
    packets: f64,
    buffers: usize,
    seconds: u64,
    seeds: u64,
}

/// Packets, with their ACKs, that the simulator moves in a second on a core in a closed loop.
const PACKETS_PER_SECOND: f64 = 2e6;
const WARMUP: u64 = 10;
/// In doublings.
const NEAR: f64 = 0.3;
/// Least room for a choice of buffers, in packets per round trip, and least crowd for an average.
const SMALLEST_BDP: f64 = 8.0;
pub(super) const FEWEST: f64 = 8.0;

impl Effort {
    /// The share of `link`'s rate that can be simulated.
    pub(super) fn scale(self, link: &SimulatedLink) -> f64 {
        self.plan().scale(link)
    }

    fn plan(self) -> Plan {
        match self {
            Effort::Quick => {
                Plan { packets: 4.0 * PACKETS_PER_SECOND, buffers: 8, seconds: 20, seeds: 4 }
            }
            Effort::Thorough => {
                Plan { packets: 60.0 * PACKETS_PER_SECOND, buffers: 12, seconds: 90, seeds: 5 }
            }
        }
    }
}

impl Plan {
    /// The share of `link`'s rate that can be simulated.
    fn scale(&self, link: &SimulatedLink) -> f64 {
        let runs = self.buffers as u64 * self.seeds * (self.seconds + WARMUP);
        let bits_per_second = self.packets / runs as f64 * link.packet.as_f64() * 8.0;
        (bits_per_second / link.rate.as_f64()).min(1.0)
    }
}

/// Simulates `link` with buffers from two packets to four times C T_o, including `advised` packets.
///
/// # Errors
/// If nothing can queue at the link, or the part of it that can be simulated is too small.
pub fn verify(
    runner: &Runner<'_>,
    link: &SimulatedLink,
    advised: f64,
    effort: Effort,
) -> Result<Verified, StudyError> {
    let ratio = CapacityRatio::new(link.rate, link.input_rate)?;
    if !ratio.can_queue(link.inputs) {
        let because = "the inputs together cannot exceed the output, so nothing queues and there \
                       is nothing to simulate";
        return Err(TheoryError::NotCovered { because }.into());
    }
    let plan = effort.plan();
    let scale = plan.scale(link);
    let finished = link.scaled(scale);
    if finished.bdp() < SMALLEST_BDP || (finished.users as f64) < FEWEST {
        return Err(too_small());
    }
    let scenario = finished.scenario(WARMUP, plan.seconds)?;
    let own = libm::round(advised * scale).max(2.0) as u64;
    let mut buffers = ladder(((4.0 * finished.bdp()) as u64).max(40), plan.buffers - 1);
    let rule = libm::round(finished.bdp()).max(2.0) as u64;
    // A buffer of the ladder that is nearly one of these would say the same twice.
    let near = |a: u64, b: u64| libm::log2(a as f64 / b as f64).abs() <= NEAR;
    buffers.retain(|buffer| !near(*buffer, own) && !near(*buffer, rule));
    buffers.extend([own, rule]);
    buffers.sort_unstable();
    buffers.dedup();
    let index = |of: u64| buffers.partition_point(|buffer| *buffer < of);
    let (advised, rule) = (index(own), index(rule));
    let measured = measure(runner, &scenario, &buffers, plan.seeds)?;
    let (seconds, seeds) = (plan.seconds, plan.seeds);
    Ok(Verified { link: finished, scale, seconds, seeds, advised, rule, measured })
}

/// Why so small a part of a link is not run.
pub(super) fn too_small() -> StudyError {
    let because = "what can be run of so fast a link in the time has fewer than eight packets in \
                   flight or eight flows, too few for an average";
    TheoryError::NotCovered { because }.into()
}

#[cfg(test)]
mod tests {
    use sweetspot_units::{Bytes, Duration, Rate};

    use super::*;

    #[test]
    fn slow_links_are_run_as_they_are_and_fast_ones_in_part() {
        let link = |mbit| SimulatedLink {
            rate: Rate::from_mbit_per_second(mbit),
            rtt: Duration::from_millis(60),
            input_rate: Rate::from_mbit_per_second(10 * mbit),
            inputs: 20,
            packet: Bytes::new(1500),
            size_mean: Bytes::new(80_000),
            tail_index: 1.5,
            users: 2 * mbit,
        };
        let plan = Effort::Quick.plan();
        assert_eq!(plan.scale(&link(50)), 1.0);
        // 8e6 packets of 12 kbit in 8 x 4 x 30 s: 100 Mbit/s.
        assert!((plan.scale(&link(1000)) - 0.1).abs() < 1e-12);
    }
}
