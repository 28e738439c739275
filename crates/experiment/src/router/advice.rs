//! Tests advice about a router's buffer in the simulator.

use sweetspot_advise::router::{
    Favour, RouterAdvice, Simulated, SimulatedBuffer, SimulatedErrors, SimulatedRate,
};
use sweetspot_statistics::squared_error;
use sweetspot_theory::Packets;
use sweetspot_units::{Duration, Rate};

use super::link::{SimulatedLink, THINK};
use super::measure::{BufferMeasured, MedianThroughput, Runner};
use super::run::Run;
use super::verify::{Aim, Effort, Verification, plan};
use crate::StudyError;

/// The paper's Pareto tail index (section III-A).
const TAIL: f64 = 1.5;
/// Ratio of the users to those that would just fill the link, so that it is busy even when they lose
/// packets.
const OVERLOAD_RATIO: f64 = 1.5;
/// The paper's number of servers.
const INPUTS: u64 = 20;

/// The simulation of a link with the advised buffer and with others.
#[derive(Debug)]
pub struct BufferTrial {
    plan: Verification,
    /// The target that determines the number of users, unless they fill the link.
    aim: Option<Aim>,
}

impl BufferTrial {
    /// The simulation of the link in `advice`.
    ///
    /// # Errors
    /// If nothing can queue at the link, or the part that can be simulated is too small.
    pub fn new(advice: &RouterAdvice, effort: Effort) -> Result<BufferTrial, StudyError> {
        let link = link(advice)?;
        let advised = advice.recommended.buffer.get();
        let flows = advice.question.flows;
        let load = advice.question.load.filter(|load| *load < 1.0 && flows.is_none());
        let expected = flows.or(load.map(|load| (link.users as f64 * load) as u64));
        let device = advice.available.as_ref().map(|device| device.buffer.get());
        let plan = plan(&link, expected, advised, device, effort)?;
        // Bulk transfers that come and go get a buffer of C T unless another one is better.
        let is_rule = advice.question.favour == Favour::Throughput && advice.two_rules.is_none();
        let buffer = if is_rule { plan.rule } else { plan.advised };
        let flows = flows.map(|flows| Aim::Flows(flows as f64 * plan.scale, buffer));
        Ok(BufferTrial { aim: flows.or(load.map(Aim::Load)), plan })
    }

    /// Number of simulations.
    pub fn runs(&self) -> usize {
        self.plan.runs() + self.aim.map_or(0, |_| self.plan.pilots())
    }

    /// The results.
    ///
    /// # Errors
    /// If the engine cannot run the link.
    pub fn run(&self, runner: &Runner<'_>) -> Result<Simulated, StudyError> {
        let plan = &match self.aim {
            Some(aim) => self.plan.with_users_for(aim, runner)?,
            None => self.plan.clone(),
        };
        let measured = plan.run(runner)?;
        let buffers = measured.iter().map(|m| simulated(m, plan));
        Ok(Simulated {
            rate: plan.link.rate,
            scale: plan.scale,
            users: plan.link.users,
            inputs: plan.link.inputs,
            warmup: plan.warmup,
            seconds: plan.seconds,
            seeds: plan.seeds,
            buffers: buffers.collect::<Result<Vec<SimulatedBuffer>, StudyError>>()?,
            advised: plan.advised,
            rule: plan.rule,
        })
    }
}

/// The link with users that keep the given number of flows active, or fill the link.
fn link(advice: &RouterAdvice) -> Result<SimulatedLink, StudyError> {
    let q = &advice.question;
    let link = SimulatedLink {
        rate: q.rate,
        rtt: q.rtt,
        input_rate: q.input_rate,
        inputs: 1,
        packet: q.packet,
        size_mean: advice.size_mean,
        tail_index: q.parameters.tail_index.unwrap_or(TAIL),
        users: 1,
    };
    // Flows too short to fill the link cannot offer more than this.
    let load = q.load.unwrap_or(1.0).min(advice.offered);
    let users = match q.flows {
        None => link.users_for(OVERLOAD_RATIO)?,
        Some(flows) => flows + thinking(&link, load),
    };
    let needed = libm::ceil(2.0 * link.gamma()) as u64;
    Ok(SimulatedLink { users, inputs: q.inputs.unwrap_or(needed.max(INPUTS)), ..link })
}

/// The number of thinking users: the number of transfers that end within one think time.
fn thinking(link: &SimulatedLink, load: f64) -> u64 {
    let per_second = link.rate.as_f64() * load / (link.size_mean.as_f64() * 8.0);
    (per_second * THINK.as_secs_f64()) as u64
}

fn simulated(m: &BufferMeasured, plan: &Verification) -> Result<SimulatedBuffer, StudyError> {
    Ok(SimulatedBuffer {
        buffer: Packets::new(m.buffer as f64 / plan.scale)?,
        flows: plan.active_flows(m) / plan.scale,
        loss: m.loss,
        mean_delay: Duration::from_secs_f64(m.delay_s),
        used: m.utilisation,
        short: rate(&m.median_size),
        bulk: rate(&m.bulk),
        errors: errors(&m.runs),
    })
}

/// The standard errors over the seeds; zero with a single seed.
fn errors(runs: &[Run]) -> SimulatedErrors {
    let error = |of: fn(&Run) -> f64| {
        let values: Vec<f64> = runs.iter().map(of).collect();
        squared_error(&values).map_or(0.0, libm::sqrt)
    };
    SimulatedErrors {
        loss: error(|run| run.loss),
        mean_delay: Duration::from_secs_f64(error(|run| run.delay_s)),
        used: error(|run| run.utilisation),
    }
}

fn rate(found: &MedianThroughput) -> SimulatedRate {
    SimulatedRate {
        rate: Rate::from_f64(found.median_bps),
        error: Rate::from_f64(found.error_bps),
        flows: found.flows,
    }
}

#[cfg(test)]
mod tests {
    use sweetspot_units::Bytes;

    use super::*;

    #[test]
    fn standard_errors_are_over_the_seeds() {
        let run = |loss, utilisation| Run { loss, utilisation, ..Run::default() };
        let found = errors(&[run(0.01, 0.9), run(0.02, 0.9), run(0.03, 0.9)]);
        // Squared deviations of 1e-4 + 0 + 1e-4, over 2 degrees of freedom and 3 seeds.
        assert!((found.loss - libm::sqrt(1e-4 / 3.0)).abs() < 1e-12, "{found:?}");
        assert_eq!((found.used, errors(&[run(0.5, 1.0)]).loss), (0.0, 0.0));
    }

    #[test]
    fn thinking_users_are_the_transfer_rate_times_the_think_time() {
        // 100 Mbit/s in transfers of 80 kB: 156.25 a second, so that 78 users think for half a second.
        let link = SimulatedLink {
            rate: Rate::from_mbit_per_second(100),
            rtt: Duration::from_millis(60),
            input_rate: Rate::from_mbit_per_second(1000),
            inputs: 20,
            packet: Bytes::new(1500),
            size_mean: Bytes::new(80_000),
            tail_index: TAIL,
            users: 1,
        };
        assert_eq!((thinking(&link, 1.0), thinking(&link, 0.5)), (78, 39));
    }
}
