//! The paper's closed-loop simulation for a user's link, with a bound on the work.

use sweetspot_theory::TheoryError;
use sweetspot_theory::router::capacity_ratio::CapacityRatio;
use sweetspot_units::Percent;

use super::ladder::ladder;
use super::link::{SimulatedLink, THINK};
use super::measure::{BufferMeasured, Runner, measure};
use crate::StudyError;

/// The allowed work of a verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// At most ten seconds of CPU time.
    Quick,
    /// About half a minute of CPU time.
    Thorough,
}

/// The simulation of a [`SimulatedLink`].
#[derive(Debug, Clone)]
pub(super) struct Verification {
    /// The simulated link: the real one, or one slow enough for the allowed work, with users in proportion.
    pub link: SimulatedLink,
    /// The simulated link's rate divided by the real link's.
    pub scale: f64,
    /// Warm-up of each run, seconds.
    pub warmup: u64,
    /// Seconds measured per buffer and seed.
    pub seconds: u64,
    /// Runs per buffer.
    pub seeds: u64,
    /// Index of the advised buffer.
    pub advised: usize,
    /// Index of the buffer by the rule of thumb, C T.
    pub rule: usize,
    /// The buffers in ascending order, packets.
    pub buffers: Vec<u64>,
}

struct Plan {
    /// Maximum number of packets in all runs together.
    packets: f64,
    buffers: usize,
    /// Measured time if the work allows it, seconds; more for long transfers.
    seconds: u64,
    seeds: u64,
}

/// The simulated share of a link, and the duration of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Extent {
    scale: f64,
    warmup: u64,
    seconds: u64,
}

/// Packets, including their ACKs, that the simulator forwards per second on one core in a closed loop.
const PACKETS_PER_SECOND: f64 = 2e6;
/// The usual warm-up, seconds. A run of less than twice this length uses half of its time to warm up.
const WARMUP: u64 = 10;
/// Warm-up in transfer times, because all users start at once. By then 96 % of their first transfers (Pareto sizes with tail
/// index 1.5) have ended: 1 - 9^-1.5.
const WARMUP_TRANSFERS: f64 = 3.0;
/// Minimum measured time, in seconds and in RTTs, unless the plan's runs are shorter.
const SHORTEST: u64 = 10;
const SHORTEST_ROUND_TRIPS: f64 = 100.0;
/// Buffers closer than this, in doublings, are nearly the same.
const MAX_DOUBLINGS: f64 = 0.3;
/// Minimum BDP for a choice of buffers, packets, and minimum number of flows for an average.
const SMALLEST_BDP: f64 = 8.0;
const MIN_FLOWS: f64 = 8.0;
/// Numbers of users to try for a target; the last one's result is within a percent or two of it.
const PILOTS: usize = 4;
/// A relative change of the number of users below this hardly changes the result.
const SMALL_STEP: f64 = 0.01;

/// The target that determines the number of users.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Aim {
    /// The used share of the link with a large buffer.
    Load(f64),
    /// The number of simultaneously active flows on the simulated link, with the buffer of this index.
    Flows(f64, usize),
}

impl Effort {
    fn plan(self) -> Plan {
        match self {
            Effort::Quick => {
                Plan { packets: 20.0 * PACKETS_PER_SECOND, buffers: 8, seconds: 20, seeds: 4 }
            }
            Effort::Thorough => {
                Plan { packets: 60.0 * PACKETS_PER_SECOND, buffers: 12, seconds: 90, seeds: 5 }
            }
        }
    }
}

impl Plan {
    /// The whole of `link` for as long as the work allows, or else the share of it that the shortest runs allow. Many flows
    /// compensate for a short time, but nothing compensates for missing flows.
    fn extent(&self, link: &SimulatedLink) -> Extent {
        let round_trips = libm::ceil(SHORTEST_ROUND_TRIPS * link.rtt.as_secs_f64()) as u64;
        let shortest = SHORTEST.max(round_trips).min(self.seconds);
        let transfers = WARMUP_TRANSFERS * link.transfer_time().as_secs_f64();
        let warmup = WARMUP.max(libm::ceil(transfers).min(u64::MAX as f64 / 4.0) as u64);
        // Simulated time that the work allows for the whole link, seconds.
        let affordable = self.packets / (self.buffers as u64 * self.seeds) as f64
            * (link.packet / link.rate).as_secs_f64();
        let longest = self.seconds.max(2 * warmup).min(affordable as u64);
        let of = |seconds: u64| {
            let warmup = warmup.min(seconds / 2);
            let scale = (affordable / (seconds + warmup) as f64).min(1.0);
            Extent { scale, warmup, seconds }
        };
        let whole = (shortest..=longest).rev().map(of).find(|extent| extent.scale == 1.0);
        whole.unwrap_or_else(|| of(shortest))
    }
}

/// Plans a simulation of `link` with buffers from two packets to four times C T_o, including `advised` packets and the buffer of
/// the `device`. `flows` is the number of active flows, if known; thinking users are not active.
///
/// # Errors
/// If nothing can queue at the link, or the part that can be simulated is too small.
pub(super) fn plan(
    link: &SimulatedLink,
    flows: Option<u64>,
    advised: f64,
    device: Option<f64>,
    effort: Effort,
) -> Result<Verification, StudyError> {
    let ratio = CapacityRatio::new(link.rate, link.input_rate)?;
    if !ratio.can_queue(link.inputs) {
        let because = "all inputs together cannot exceed the output, so nothing queues and there \
                       is nothing to simulate";
        return Err(TheoryError::NotCovered { because }.into());
    }
    let plan = effort.plan();
    let Extent { scale, warmup, seconds } = plan.extent(link);
    let finished = link.scaled(scale);
    let what = if flows.is_some() { "flow" } else { "user" };
    let flows = flows.map_or(finished.users as f64, |flows| flows as f64 * scale);
    suffices(finished.bdp(), (flows, what), scale)?;
    let own = in_small(advised, scale);
    let device = device.map(|buffer| in_small(buffer, scale));
    let mut buffers = ladder(((4.0 * finished.bdp()) as u64).max(40), plan.buffers - 1);
    let rule = in_small(finished.bdp(), 1.0);
    // A buffer of the ladder close to one of these would add nothing.
    let near = |a: u64, b: u64| libm::log2(a as f64 / b as f64).abs() <= MAX_DOUBLINGS;
    let required: Vec<u64> = [own, rule].into_iter().chain(device).collect();
    buffers.retain(|buffer| !required.iter().any(|other| near(*buffer, *other)));
    buffers.extend(required);
    buffers.sort_unstable();
    buffers.dedup();
    let index = |of: u64| buffers.partition_point(|buffer| *buffer < of);
    let (advised, rule) = (index(own), index(rule));
    let seeds = plan.seeds;
    Ok(Verification { link: finished, scale, warmup, seconds, seeds, advised, rule, buffers })
}

/// `buffer` packets, converted to a link `scale` times as fast.
fn in_small(buffer: f64, scale: f64) -> u64 {
    libm::round(buffer * scale).max(2.0) as u64
}

impl Verification {
    /// Number of simulations.
    pub(super) fn runs(&self) -> usize {
        self.buffers.len() * self.seeds as usize
    }

    /// Maximum number of simulations to find the number of users for a target.
    pub(super) fn pilots(&self) -> usize {
        PILOTS * self.seeds as usize
    }

    /// The same link with the number of users that reaches `aim`.
    pub(super) fn with_users_for(
        &self,
        aim: Aim,
        runner: &Runner<'_>,
    ) -> Result<Verification, StudyError> {
        let with =
            |users| Verification { link: SimulatedLink { users, ..self.link }, ..self.clone() };
        let measured = |users, buffer: usize| {
            let scenario = with(users).link.scenario(self.warmup, self.seconds)?;
            let buffer = &self.buffers[buffer..=buffer];
            Ok::<_, StudyError>(measure(runner, &scenario, buffer, self.seeds)?.remove(0))
        };
        let (most, ample) = (self.link.users, self.buffers.len() - 1);
        Ok(with(match aim {
            Aim::Load(load) => {
                let used = |users| Ok(measured(users, ample)?.utilisation);
                users_at(load, self.link.users_for(load)?, Some((most as f64, 1.0)), used)?
            }
            Aim::Flows(flows, buffer) => {
                let active = |users| Ok(with(users).active_flows(&measured(users, buffer)?));
                users_at(flows, most, None, active)?
            }
        }))
    }

    /// The number of simultaneously active flows on the simulated link.
    pub(super) fn active_flows(&self, measured: &BufferMeasured) -> f64 {
        let bins = measured.runs.iter().flat_map(|run| run.by_size.values());
        let finished = bins.map(|bin| bin.flows).sum::<u64>() as f64;
        let per_second = finished / (self.seconds * self.seeds) as f64;
        active(self.link.users, per_second, measured.active_flows())
    }

    /// Runs the link with each buffer.
    pub(super) fn run(&self, runner: &Runner<'_>) -> Result<Vec<BufferMeasured>, StudyError> {
        let scenario = self.link.scenario(self.warmup, self.seconds)?;
        measure(runner, &scenario, &self.buffers, self.seeds)
    }
}

/// The number of simultaneously active flows. By Little's law, the rate of finished transfers gives the number of thinking users.
/// All other users are active, at least as many as the finished transfers account for.
fn active(users: u64, finished_per_second: f64, accounted: f64) -> f64 {
    let thinking = finished_per_second * THINK.as_secs_f64();
    (users as f64 - thinking).max(accounted).max(1.0)
}

/// The number of users that reaches `required`, by the method of false position, beginning with `first`. `reached` measures the
/// result of a number of users; zero users reach zero. `end` is a sufficient number and its result; without it, results are
/// assumed to grow at least in proportion to the users.
fn users_at(
    required: f64,
    first: u64,
    end: Option<(f64, f64)>,
    reached: impl Fn(u64) -> Result<f64, StudyError>,
) -> Result<u64, StudyError> {
    let (mut below, mut above) = ((0.0, 0.0), end);
    let mut users = first.max(1).min(end.map_or(u64::MAX, |(most, _)| most as u64));
    for _ in 0..PILOTS {
        let tried = (users as f64, reached(users)?);
        match tried.1 < required {
            true => below = tried,
            false => above = Some(tried),
        }
        let next = match above {
            Some(above) => {
                let fraction = (required - below.1) / (above.1 - below.1);
                below.0 + fraction * (above.0 - below.0)
            }
            None => below.0 * required / below.1,
        };
        let next = libm::round(next).max(1.0) as u64;
        let step = next.abs_diff(users) as f64 / next as f64;
        users = next;
        if step <= SMALL_STEP {
            break;
        }
    }
    Ok(users)
}

/// Whether that many flows or users on a link of `bdp` packets, which is `scale` of the real one, are enough for an average.
fn suffices(bdp: f64, (flows, of): (f64, &str), scale: f64) -> Result<(), StudyError> {
    // A share of a link may have 1.0 flows, in the plural.
    let is_one = flows == 1.0 && scale >= 1.0;
    let (given, what, needed) = if flows < MIN_FLOWS {
        (flows, format!("{of}{}", if is_one { "" } else { "s" }), MIN_FLOWS)
    } else if bdp < SMALLEST_BDP {
        (bdp, "packets in rate x RTT".to_owned(), SMALLEST_BDP)
    } else {
        return Ok(());
    };
    let is = if is_one { "is" } else { "are" };
    let why = format!("{is} too few for an average; it takes {needed} or more");
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
    fn the_user_search_reaches_the_requested_load() {
        // 150 users fill the link. Fewer use U / (U + 50) of 4/3 of it, because transfers take longer with more users. In the
        // second case 80 users fill it.
        let slower = |users: u64| (users as f64 / (users as f64 + 50.0) * 4.0 / 3.0).min(1.0);
        let full = |users: u64| (users as f64 / 80.0).min(1.0);
        for used in [slower, full] {
            for load in [0.1, 0.5, 0.9, 0.95] {
                let first = (100.0 * load) as u64;
                let end = Some((150.0, 1.0));
                let users = users_at(load, first, end, |users| Ok(used(users))).unwrap();
                // One user changes the result by up to 2.6 %.
                assert!((used(users) - load).abs() < 0.026, "{load}: {users}");
            }
        }
        // Whatever the measurements, the result is between 1 and 150.
        for measured in [0.0, 0.5, 1.0] {
            let users = users_at(0.5, 50, Some((150.0, 1.0)), |_| Ok(measured)).unwrap();
            assert!((1..=150).contains(&users), "{measured}: {users}");
        }
    }

    #[test]
    fn the_user_search_reaches_the_requested_number_of_active_flows() {
        // On an idle link, half of the users are active. 100 users finish as many transfers as the link can carry, and each
        // further user is always active.
        let active = |users: u64| (users as f64 / 2.0).max(users as f64 - 50.0);
        for flows in [8, 20, 50, 120, 1000] {
            for first in [flows, 2 * flows, 3 * flows, flows + 50] {
                let users = users_at(flows as f64, first, None, |users| Ok(active(users))).unwrap();
                let found = active(users);
                assert!((found / flows as f64 - 1.0).abs() < 0.025, "{flows} {first}: {found}");
            }
        }
    }

    #[test]
    fn active_flows_are_the_users_that_are_not_thinking() {
        // 156 transfers per second with a think time of half a second each.
        assert_eq!((active(178, 156.0, 60.0), active(178, 78.0, 60.0)), (100.0, 139.0));
        // The finished transfers account for 60 active flows; persistent flows never finish.
        assert_eq!((active(100, 156.0, 60.0), active(100, 0.0, 0.0)), (60.0, 100.0));
    }

    #[test]
    fn slow_links_run_at_full_scale_and_fast_links_are_scaled_down() {
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
        let quick = |mbit| Effort::Quick.plan().extent(&link(mbit));
        // 40e6 packets of 12 kbit in 8 x 4 x 30 s are 500 Mbit/s; in 8 x 4 x 15 s, 1 Gbit/s.
        assert_eq!(quick(500), Extent { scale: 1.0, warmup: 10, seconds: 20 });
        assert_eq!(quick(1000), Extent { scale: 1.0, warmup: 5, seconds: 10 });
        let part = quick(10_000);
        assert!((part.scale - 0.1).abs() < 1e-12, "{part:?}");
        assert_eq!((part.warmup, part.seconds), (5, 10));
        // 120e6 packets in 12 x 5 runs of 24 s.
        let thorough = Effort::Thorough.plan().extent(&link(1000));
        assert_eq!(thorough, Extent { scale: 1.0, warmup: 8, seconds: 16 });
    }

    #[test]
    fn a_run_is_long_enough_for_long_transfers_to_finish() {
        // 20 flows of 10 MB share 50 Mbit/s: 32 s for each, including think time.
        let link = |size_mean, users| SimulatedLink {
            rate: Rate::from_mbit_per_second(50),
            rtt: Duration::from_millis(60),
            input_rate: Rate::from_mbit_per_second(500),
            inputs: 20,
            packet: Bytes::new(1500),
            size_mean,
            tail_index: 1.5,
            users,
        };
        // Three times 31.5 s.
        let quick = Effort::Quick.plan().extent(&link(Bytes::new(10_000_000), 20));
        assert_eq!(quick, Extent { scale: 1.0, warmup: 95, seconds: 190 });
        // 40e6 packets of 12 kbit in 8 x 4 runs at 50 Mbit/s: 300 s in total, a third of it to warm up.
        let bounded = Effort::Quick.plan().extent(&link(Bytes::new(10_000_000), 200));
        assert_eq!(bounded, Extent { scale: 1.0, warmup: 100, seconds: 200 });
    }

    #[test]
    fn a_run_lasts_100_rtts_within_the_plans_bounds() {
        for (ms, seconds) in [(1, 10), (60, 10), (150, 15), (600, 20)] {
            let link = SimulatedLink {
                rate: Rate::from_mbit_per_second(100_000),
                rtt: Duration::from_millis(ms),
                input_rate: Rate::from_mbit_per_second(1_000_000),
                inputs: 20,
                packet: Bytes::new(1500),
                size_mean: Bytes::new(80_000),
                tail_index: 1.5,
                users: 200_000,
            };
            assert_eq!(Effort::Quick.plan().extent(&link).seconds, seconds, "{ms} ms");
        }
    }
}
