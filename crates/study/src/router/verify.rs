//! The paper's closed-loop simulation for any link, within bounded work.

use sweetspot_scenario::{Engine, Scenario};
use sweetspot_theory::TheoryError;
use sweetspot_theory::reno::s_model::ShortFlow;
use sweetspot_theory::router::capacity_ratio::CapacityRatio;
use sweetspot_theory::router::closed_loop::users_to_fill;
use sweetspot_units::{Bytes, Duration, Rate};

use super::analysis::{Fits, Objective, SimulatedBest, simulated};
use super::measure::{BufferMeasured, measure};
use super::setup::ladder;
use crate::{StudyError, Workers};

/// A router's link and its traffic.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SimulatedLink {
    /// The output link's rate.
    pub rate: Rate,
    /// The flows' RTT without its queue.
    pub rtt: Duration,
    /// The rate of each input link.
    pub input_rate: Rate,
    /// Number of input links; `None`: the paper's 20, or twice as many as fill the output.
    pub inputs: Option<u64>,
    /// A packet.
    pub packet: Bytes,
    /// Mean size of a transfer.
    pub size_mean: Bytes,
    /// Pareto tail index of the sizes.
    pub tail_index: f64,
}

/// The result of the simulation of a [`SimulatedLink`].
#[derive(Debug)]
pub struct Verified {
    /// The simulated rate: the link's, or a lower one if that exceeds the work allowed, with
    /// everything else in proportion.
    pub rate: Rate,
    /// C T_o of what was simulated, packets.
    pub bdp: f64,
    /// Users of the closed loop.
    pub users: u64,
    /// Input links.
    pub inputs: u64,
    /// Seconds measured per buffer and seed.
    pub seconds: u64,
    /// Runs per buffer.
    pub seeds: u64,
    /// By buffer.
    pub measured: Vec<BufferMeasured>,
    /// The best buffer for the flows objective; `None` where too few finished.
    pub best: Option<SimulatedBest>,
    /// The loss forms and delay found, or why none was.
    pub fits: Result<Fits, StudyError>,
}

/// Largest number of packets in all runs together: half a minute on one core.
const MAX_PACKETS_SENT: f64 = 2e7;
const BUFFER_COUNT: usize = 11;
const SECONDS: u64 = 60;
/// Seeds per buffer: enough for a standard error.
const SEEDS_PER_BUFFER: u64 = 3;
const WARMUP_S: u64 = 15;
/// Mean think time, as in the scenarios of Table I.
const THINK_TIME: Duration = Duration::from_millis(500);
/// Users over those that just fill the link, so that it is busy even under loss.
const USERS_OVER_FILLING: f64 = 1.5;
/// The paper's harmonic mean of 60 ms comes from round trips between 30 and 110 ms.
const RTT_SPREAD: (f64, f64) = (0.5, 110.0 / 60.0);
/// Smallest simulated BDP, packets.
const MIN_BDP_PACKETS: f64 = 2.0;

/// Plays `link` with buffers from two packets to twice C T_o; calls `watch` after every run with
/// the number of finished runs and of all.
///
/// # Errors
/// If nothing can queue at the link, or a quantity is impossible.
pub fn verify<E: Engine + Sync + ?Sized>(
    engine: &E,
    link: &SimulatedLink,
    objective: Objective,
    workers: Workers,
    watch: &(dyn Fn(usize, usize) + Sync),
) -> Result<Verified, StudyError> {
    let ratio = CapacityRatio::new(link.rate, link.input_rate)?;
    let needed = libm::ceil(2.0 * ratio.gamma()) as u64;
    let inputs = link.inputs.unwrap_or(needed.max(20));
    if !ratio.can_queue(inputs) {
        let because = "the inputs together cannot exceed the output, so nothing queues and there \
                       is nothing to simulate";
        return Err(TheoryError::NotCovered { because }.into());
    }
    let allowed = MAX_PACKETS_SENT
        / (BUFFER_COUNT as u64 * SEEDS_PER_BUFFER * (SECONDS + WARMUP_S)) as f64
        * link.packet.as_f64()
        * 8.0;
    let scale = (allowed / link.rate.as_f64()).min(1.0);
    let rate = link.rate.scaled(scale);
    let bdp = rate.as_f64() * link.rtt.as_secs_f64() / (link.packet.as_f64() * 8.0);
    if bdp < MIN_BDP_PACKETS {
        let because = "C T_o is less than two packets: there is no room for a choice of buffers";
        return Err(TheoryError::NotCovered { because }.into());
    }
    let users = users(link, rate)?;
    let scenario = scenario(link, scale, inputs, users)?;
    let buffers = ladder(((2.0 * bdp) as u64).max(40), BUFFER_COUNT);
    let measured = measure(engine, &scenario, &buffers, SEEDS_PER_BUFFER, workers, watch)?;
    let best = match objective {
        Objective::Short => simulated(&measured, |m| &m.short),
        Objective::Long => simulated(&measured, |m| &m.long),
    };
    let fits = Fits::of(&scenario, &measured);
    Ok(Verified {
        rate,
        bdp,
        users,
        inputs,
        seconds: SECONDS,
        seeds: SEEDS_PER_BUFFER,
        measured,
        best,
        fits,
    })
}

/// Users who fill `rate` and half as many again.
fn users(link: &SimulatedLink, rate: Rate) -> Result<u64, StudyError> {
    let flow = ShortFlow::new(link.size_mean, link.packet)?;
    let rounds = link.rtt * flow.slow_start_rtts();
    let transfer = rounds + link.size_mean / link.input_rate;
    let fill = users_to_fill(rate, link.size_mean, THINK_TIME, transfer)?;
    Ok((fill as f64 * USERS_OVER_FILLING) as u64 + 1)
}

fn scenario(
    link: &SimulatedLink,
    scale: f64,
    inputs: u64,
    users: u64,
) -> Result<Scenario, StudyError> {
    let nanos = |share: f64| format!("{}ns", link.rtt.scaled(share).as_nanos());
    let bits = |rate: Rate| format!("{}bit/s", rate.scaled(scale).bits_per_second().max(1000));
    let text = format!(
        "title = \"a link of one's own\"\n\
         warmup = \"{WARMUP_S}s\"\nduration = \"{SECONDS}s\"\n\
         [path]\nrate = \"{rate}\"\nrtt = \"{rtt}\"\ndelay = \"{delay}\"\nbuffer = \"2pkt\"\n\
         packet = \"{packet}B\"\naccess_rate = \"{access}bit/s\"\nreverse = \"clean\"\n\
         [[cross]]\nkind = \"closed-loop\"\nusers = {users}\ninputs = {inputs}\n\
         input_rate = \"{input}\"\nsize_mean = \"{size}B\"\nsize_shape = {tail}\n\
         think_mean = \"{think}ms\"\nrtt = [\"{least}\", \"{most}\"]\ncongestion = \"sack\"\n",
        rate = bits(link.rate),
        rtt = nanos(1.0),
        // Both ways a third of the shortest round trip.
        delay = nanos(RTT_SPREAD.0 / 3.0),
        packet = link.packet.get(),
        access = link.input_rate.scaled(scale * 20.0).bits_per_second().max(1000),
        input = bits(link.input_rate),
        size = link.size_mean.get(),
        tail = link.tail_index,
        think = THINK_TIME.as_nanos() / 1_000_000,
        least = nanos(RTT_SPREAD.0),
        most = nanos(RTT_SPREAD.1),
    );
    Ok(Scenario::parse(&text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: SimulatedLink = SimulatedLink {
        rate: Rate::from_mbit_per_second(50),
        rtt: Duration::from_millis(60),
        input_rate: Rate::from_mbit_per_second(500),
        inputs: None,
        packet: Bytes::new(1500),
        size_mean: Bytes::new(80_000),
        tail_index: 1.5,
    };

    #[test]
    fn the_papers_link_gets_about_the_papers_users() {
        // 54 packets take D = 1 + ceil(log2 27) = 6 round trips, 0.36 s, and 1.3 ms at 500 Mbit/s:
        // 50e6 x 0.86 / 640,000 = 67.3, half as many again 102. The paper has 100.
        assert_eq!(users(&LINK, LINK.rate).unwrap(), 103);
    }

    #[test]
    fn the_scenario_is_valid_whatever_the_link() {
        for (rate, rtt) in [(1, 1), (50, 60), (1000, 60), (100_000, 300)] {
            let link = SimulatedLink {
                rate: Rate::from_mbit_per_second(rate),
                rtt: Duration::from_millis(rtt),
                ..LINK
            };
            let scenario = scenario(&link, 0.001, 20, 10).unwrap();
            assert_eq!(scenario.path.rtt, link.rtt);
        }
    }
}
