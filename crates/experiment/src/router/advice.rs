//! Tries advice about a router's buffer in the simulator.

use sweetspot_advise::router::{RouterAdvice, Simulated, SimulatedBuffer, SimulatedRate};
use sweetspot_theory::Packets;
use sweetspot_units::{Duration, Rate};

use super::link::{SimulatedLink, THINK};
use super::measure::{BufferMeasured, MedianThroughput, Runner};
use super::verify::{Effort, Verification, plan};
use crate::StudyError;

/// The paper's tail (section III-A).
const TAIL: f64 = 1.5;
/// Half as many users again as just fill the link: it shall be busy even when they lose packets.
const CROWD: f64 = 1.5;
/// The paper's servers.
const INPUTS: u64 = 20;

/// The simulation of a link with the advised buffer and with others.
#[derive(Debug)]
pub struct BufferTrial {
    plan: Verification,
    /// The share of the link that its users are to use.
    load: Option<f64>,
}

impl BufferTrial {
    /// The simulation of the link of `advice`.
    ///
    /// # Errors
    /// If nothing can queue at the link, or the part of it that can be simulated is too small.
    pub fn new(advice: &RouterAdvice, effort: Effort) -> Result<BufferTrial, StudyError> {
        let link = link(advice)?;
        let advised = advice.recommended.buffer.get();
        let flows = advice.question.flows;
        // Users that fill the link and given flows are counted, not measured.
        let load = advice.question.load.filter(|load| *load < 1.0 && flows.is_none());
        let flows = flows.or(load.map(|load| (link.users as f64 * load) as u64));
        let device = advice.available.as_ref().map(|device| device.buffer.get());
        Ok(BufferTrial { plan: plan(&link, flows, advised, device, effort)?, load })
    }

    /// How many simulations it takes.
    pub fn runs(&self) -> usize {
        self.plan.runs() + self.load.map_or(0, |_| self.plan.pilots())
    }

    /// The results.
    ///
    /// # Errors
    /// If the engine cannot run the link.
    pub fn run(&self, runner: &Runner<'_>) -> Result<Simulated, StudyError> {
        let plan = &match self.load {
            Some(load) => self.plan.with_load(load, runner)?,
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

/// The link in question, with users that keep as many flows active, or fill it.
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
    // Flows too short to fill the link end no more transfers than they can.
    let load = q.load.unwrap_or(1.0).min(advice.offered);
    let users = match q.flows {
        None => link.users_for(CROWD)?,
        Some(flows) => flows + thinking(&link, load),
    };
    let needed = libm::ceil(2.0 * link.gamma()) as u64;
    Ok(SimulatedLink { users, inputs: q.inputs.unwrap_or(needed.max(INPUTS)), ..link })
}

/// The number of thinking users: as many transfers end in a think time.
fn thinking(link: &SimulatedLink, load: f64) -> u64 {
    let per_second = link.rate.as_f64() * load / (link.size_mean.as_f64() * 8.0);
    (per_second * THINK.as_secs_f64()) as u64
}

/// Flows that are active at a time. By Little's law, the users that think follow from the transfers that finish; the others are
/// active, at least as many as the transfers that finished account for.
fn active(users: u64, finished_per_second: f64, accounted: f64) -> f64 {
    let thinking = finished_per_second * THINK.as_secs_f64();
    (users as f64 - thinking).max(accounted).max(1.0)
}

fn simulated(m: &BufferMeasured, plan: &Verification) -> Result<SimulatedBuffer, StudyError> {
    let finished: u64 =
        m.runs.iter().flat_map(|run| run.by_size.values()).map(|bin| bin.flows).sum();
    let (finished, seconds) = (finished as f64, plan.seconds * plan.seeds);
    Ok(SimulatedBuffer {
        buffer: Packets::new(m.buffer as f64 / plan.scale)?,
        flows: active(plan.link.users, finished / seconds as f64, m.active_flows()) / plan.scale,
        loss: m.loss,
        mean_delay: Duration::from_secs_f64(m.delay_s),
        used: m.utilisation,
        short: rate(&m.median_size),
        bulk: rate(&m.bulk),
    })
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
    fn users_are_those_who_send_and_those_who_think() {
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

    #[test]
    fn flows_are_the_users_that_do_not_think() {
        // 156 transfers a second end in half a second of thinking each.
        assert_eq!((active(178, 156.0, 60.0), active(178, 78.0, 60.0)), (100.0, 139.0));
        // The finished transfers account for 60 at a time; flows that persist do not finish.
        assert_eq!((active(100, 156.0, 60.0), active(100, 0.0, 0.0)), (60.0, 100.0));
    }
}
