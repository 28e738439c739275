//! The paper's closed-loop simulation for a link of one's own, within bounded work.

use sweetspot_theory::TheoryError;
use sweetspot_theory::router::capacity_ratio::CapacityRatio;
use sweetspot_units::Percent;

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
pub(super) struct Verification {
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
    /// The buffers in rising order, packets.
    pub buffers: Vec<u64>,
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
const FEWEST: f64 = 8.0;

impl Effort {
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

/// Plans to simulate `link` with buffers from two packets to four times C T_o, including `advised` packets. `flows` are active at a
/// time, if that is known: thinking users are no flows.
///
/// # Errors
/// If nothing can queue at the link, or the part of it that can be simulated is too small.
pub(super) fn plan(
    link: &SimulatedLink,
    flows: Option<u64>,
    advised: f64,
    effort: Effort,
) -> Result<Verification, StudyError> {
    let ratio = CapacityRatio::new(link.rate, link.input_rate)?;
    if !ratio.can_queue(link.inputs) {
        let because = "all inputs together cannot exceed the output, so nothing queues and there \
                       is nothing to simulate";
        return Err(TheoryError::NotCovered { because }.into());
    }
    let plan = effort.plan();
    let scale = plan.scale(link);
    let finished = link.scaled(scale);
    let flows = flows.map_or(finished.users as f64, |flows| flows as f64 * scale);
    suffices(finished.bdp(), flows, scale)?;
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
    let (seconds, seeds) = (plan.seconds, plan.seeds);
    Ok(Verification { link: finished, scale, seconds, seeds, advised, rule, buffers })
}

impl Verification {
    /// How many simulations it takes.
    pub(super) fn runs(&self) -> usize {
        self.buffers.len() * self.seeds as usize
    }

    /// The link with each buffer.
    pub(super) fn run(&self, runner: &Runner<'_>) -> Result<Vec<BufferMeasured>, StudyError> {
        let scenario = self.link.scenario(WARMUP, self.seconds)?;
        measure(runner, &scenario, &self.buffers, self.seeds)
    }
}

/// Whether `flows` on a link of `bdp` packets, `scale` of the real one, are enough for an average.
fn suffices(bdp: f64, flows: f64, scale: f64) -> Result<(), StudyError> {
    let (given, what, needed) = if flows < FEWEST {
        (flows, "flows", FEWEST)
    } else if bdp < SMALLEST_BDP {
        (bdp, "packets in rate x RTT", SMALLEST_BDP)
    } else {
        return Ok(());
    };
    let why = format!("are too few for an average; it takes {needed} or more");
    Err(StudyError::TooSmall(if scale < 1.0 {
        let share = Percent(scale);
        format!(
            "only {share:.2} of so fast a link can be run in the time, and {given:.1} {what} {why}"
        )
    } else {
        format!("{given:.0} {what} {why}")
    }))
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
