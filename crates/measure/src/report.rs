//! The results of a measurement.

use serde::Serialize;
use sweetspot_statistics::Sorted;
use sweetspot_units::{Bytes, Duration, Rate};

use crate::direction_observations::Observations;
use crate::observation::{Direction, EchoRecord, StreamRecord};
use crate::overload::waits;
use crate::plan::Plan;
use crate::skipped::{Purpose, SkippedSteps};
use crate::{
    Bound, BufferDepth, CapacityEstimate, CrossTraffic, DelayUnderLoad, Discipline, DroppingQueue,
    Finding, LossEstimate, Overload, Reordering, RoundTrip, Skipped, UnknownDiscipline,
    available_bandwidth, buffer_depth, delay_under_load, discipline, losses, path_change,
    reordering, round_trip,
};

/// The measured properties of a path.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// RTTs on the idle path.
    pub round_trip: RoundTrip,
    /// The base RTT at the start and at the end, if they differ enough to show that the path changed.
    pub changed: Option<(Duration, Duration)>,
    /// Each direction, in the order of measurement.
    pub directions: Vec<DirectionReport>,
    /// The measurement's load on the path.
    pub intrusion: Intrusion,
    /// Skipped measurements of the RTT, with the reasons.
    pub left_out: Vec<Skipped>,
}

/// The measured properties of one direction.
#[derive(Debug, Clone, PartialEq)]
pub struct DirectionReport {
    /// The direction.
    pub direction: Direction,
    /// The narrow link's capacity, measured in IP packets.
    pub capacity: Finding<Rate>,
    /// The depth of a token bucket at the narrow link: the burst that passes at once after a pause.
    pub burst: Option<Bytes>,
    /// The mode of the rates of packet pairs.
    pub pair_mode: Option<Rate>,
    /// Whether the receiver got several packets at a time.
    pub coalesced: bool,
    /// The bandwidth that cross traffic leaves.
    pub available: Finding<Rate>,
    /// The mean wait of this host's threads for a CPU, if it is longer than a packet's time on the link: it then resembles cross
    /// traffic.
    pub cpu_wait: Option<Duration>,
    /// The bottleneck's buffer.
    pub buffer: BufferDepth,
    /// The buffer's queue discipline, or the reason why it is unknown.
    pub discipline: Result<Discipline, UnknownDiscipline>,
    /// Losses without a queue.
    pub loss: LossEstimate,
    /// Reordering of all packets.
    pub reordering: Reordering,
    /// Delay variation of single packets that no queue causes.
    pub jitter: Finding<Duration>,
    /// Delay while TCP fills the path.
    pub load: Option<DelayUnderLoad>,
    /// Skipped measurements, with the reasons.
    pub left_out: Vec<Skipped>,
}

impl DirectionReport {
    /// The share of the capacity that cross traffic uses.
    pub fn cross_traffic(&self) -> Option<CrossTraffic> {
        CrossTraffic::of(&self.capacity, &self.available, self.cpu_wait)
    }

    /// Whether there is a value, or a bound of the buffer, for the `purpose` of a step.
    fn has(&self, purpose: Purpose) -> bool {
        match purpose {
            Purpose::RoughCapacity | Purpose::Capacity => self.capacity.value().is_some(),
            Purpose::Available | Purpose::AvailableByPairs | Purpose::AvailableByStreams => {
                self.available.value().is_some()
            }
            Purpose::RandomLoss => !matches!(self.loss.rate, Finding::Unknown(_)),
            Purpose::Queue => !matches!(self.buffer.bytes, Finding::Unknown(_)),
            Purpose::Load => self.load.is_some(),
            Purpose::BaseRtt | Purpose::BaseRttAgain | Purpose::Rest => false,
        }
    }
}

/// A measurement's load on the path.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Intrusion {
    /// Bytes sent over the path, including IP headers; only payload for TCP.
    pub bytes: u64,
    /// The longest queueing delay observed, seconds.
    pub longest_queue_s: f64,
}

/// Noise of the measuring host.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HostNoise {
    /// Delays that grow by less than this count as steady.
    pub delays: Duration,
    /// The mean wait of its threads for a CPU.
    pub cpu_wait: Duration,
}

impl Report {
    pub(crate) fn new(
        plan: &Plan,
        idle: &[EchoRecord],
        observations: &[Observations],
        left_out: &SkippedSteps,
        spent: Bytes,
        noise: HostNoise,
    ) -> Report {
        let capacities: Vec<_> =
            observations.iter().map(|o| stated_capacity(o).capacity.estimate()).collect();
        let both = [
            capacities.first().copied().flatten(),
            // If only one direction is known, it stands for both.
            capacities.get(1).or(capacities.first()).copied().flatten(),
        ];
        let round_trip = match left_out.why(&[Purpose::BaseRtt]) {
            Some(why) if idle.is_empty() => RoundTrip::unknown(why),
            _ => round_trip(idle, both),
        };
        let base = round_trip.base.value().unwrap_or(Duration::ZERO);
        let idle_median = round_trip.median.value();
        let directions: Vec<_> = plan
            .directions
            .iter()
            .zip(observations)
            .map(|(direction, o)| {
                of_direction(*direction, o, base, idle_median, noise, plan.packet)
            })
            .collect();
        let longest_queue_s = observations.iter().map(longest_queue).fold(0.0, f64::max);
        let intrusion = Intrusion { bytes: spent.get(), longest_queue_s };
        let changed = path_change(idle);
        Report { round_trip, changed, directions, intrusion, left_out: left_out.list() }
    }
}

/// The capacity that the report states. The steps of the measurement use rougher ones, too.
fn stated_capacity(o: &Observations) -> CapacityEstimate {
    let found = o.capacity();
    let capacity = found.capacity.because(o.why_no_trains());
    CapacityEstimate { capacity: stated(capacity, o.goodput()), ..found }
}

/// A fit whose interval reaches 0 shows no capacity. TCP's goodput bounds one that is unknown.
fn stated(capacity: Finding<Rate>, goodput: Option<Rate>) -> Finding<Rate> {
    let (min, why) = match capacity {
        Finding::Known { estimate, .. } if estimate.low == Rate::ZERO => {
            let high = estimate.high;
            (Rate::ZERO, format!("the trains contradict each other and fit any rate up to {high}"))
        }
        Finding::Bounded { bound: Bound::AtLeast(min), why } => (min, why),
        Finding::Unknown(why) => (Rate::ZERO, why),
        other => return other,
    };
    match goodput {
        Some(goodput) if goodput > min => {
            Finding::bounded(Bound::AtLeast(goodput), format!("{why}; the bound is TCP's goodput"))
        }
        _ if min > Rate::ZERO => Finding::bounded(Bound::AtLeast(min), why),
        _ => Finding::unknown(why),
    }
}

fn of_direction(
    direction: Direction,
    o: &Observations,
    base_rtt: Duration,
    idle: Option<Duration>,
    noise: HostNoise,
    packet: Bytes,
) -> DirectionReport {
    let found = stated_capacity(o);
    let capacity = found.capacity.value();
    let mut loss =
        losses(o.sparse.iter().chain(&o.slow), dropping_queue(direction, o, capacity, base_rtt));
    let mut available = match capacity {
        Some(_) if let Some(found) = o.undisturbed(packet) => found,
        Some(capacity) if !o.streams.is_empty() => {
            available_bandwidth(capacity, &o.loading(&o.streams), noise.delays)
        }
        Some(_) => Finding::unknown("no streams were sent to measure it"),
        None => Finding::unknown(o.lacks_capacity()),
    };
    if capacity.is_some() {
        available = available.because(o.why_no_available());
    }
    let no_small_packets = o.why_no_small_packets(capacity);
    loss.rate = loss.rate.because(no_small_packets.as_deref());
    loss.burst = loss.burst.because(no_small_packets.as_deref());
    widen_to_achieved(&mut available, o, capacity);
    let cpu_wait = Some(noise.cpu_wait).filter(|wait| capacity.is_some_and(|c| *wait > packet / c));
    if let Some(wait) = cpu_wait {
        widen_for_host_delay(&mut available, wait, capacity);
    }
    let competing = CrossTraffic::of(&found.capacity, &available, cpu_wait);
    if let (Finding::Known { how, .. }, Some(competing)) = (&mut loss.rate, competing)
        && competing.matters()
        && loss.lost > 0
        && !loss.without_queue
    {
        let words = competing.words();
        *how += &format!("; {words}, and its queue may have dropped them");
    }
    let (discipline, buffer) = of_queue(direction, o, capacity, base_rtt, &loss);
    let all = o
        .scouts
        .iter()
        .chain(&o.trains)
        .chain(&o.streams)
        .chain(&o.slow)
        .chain(&o.sparse)
        .chain(&o.pairs);
    let mut report = DirectionReport {
        direction,
        jitter: jitter(o, competing, &available, noise.cpu_wait).because(no_small_packets),
        capacity: found.capacity,
        burst: found.burst,
        pair_mode: found.pair_mode,
        coalesced: found.coalesced,
        available,
        cpu_wait,
        buffer,
        discipline,
        loss,
        reordering: reordering(all),
        load: o.load.as_ref().map(|load| delay_under_load(idle, load)),
        left_out: o.left_out.list(),
    };
    let known: Vec<bool> = report.left_out.iter().map(|one| report.has(one.purpose)).collect();
    report.left_out.iter_mut().zip(known).for_each(|(one, known)| one.is_cut_short = known);
    report
}

/// Widens the interval of `available` up to the rate that TCP achieved later. Either cross traffic yielded to TCP, or a busy host
/// delayed the packets that showed less.
fn widen_to_achieved(available: &mut Finding<Rate>, o: &Observations, capacity: Option<Rate>) {
    let (Finding::Known { estimate, how }, Some(goodput), Some(capacity)) =
        (available, o.goodput(), capacity)
    else {
        return;
    };
    let payload = goodput.min(capacity);
    if payload > estimate.high {
        estimate.high = payload;
        *how += &format!(
            "; TCP then carried {payload}: cross traffic gave way, or a host was busy before"
        );
    }
}

/// Widens the interval of `available` up to the capacity. If a host delays packets for longer than they take on the link, an idle
/// link looks busy.
fn widen_for_host_delay(available: &mut Finding<Rate>, wait: Duration, capacity: Option<Rate>) {
    let (Finding::Known { estimate, how }, Some(capacity)) = (available, capacity) else { return };
    if estimate.high < capacity {
        estimate.high = capacity;
        *how += &format!(
            "; the whole link may be available, because this host was busy: its threads waited {wait} for a CPU"
        );
    }
}

/// The queue as the overload showed it to drop.
fn dropping_queue(
    direction: Direction,
    o: &Observations,
    capacity: Option<Rate>,
    base_rtt: Duration,
) -> Option<DroppingQueue> {
    let overload = overload(direction, o, capacity?, base_rtt, 0.0)?;
    let wait_s = overload.is_full().then(|| overload.min_wait_beside_drops())??;
    Some(DroppingQueue { wait_s, reference_s: overload.reference_s })
}

fn overload(
    direction: Direction,
    o: &Observations,
    capacity: Rate,
    base_rtt: Duration,
    random_loss: f64,
) -> Option<Overload<'_>> {
    let (stream, echoes) = o.overloads.last()?;
    let reference_s = o.reference_s()?;
    Some(Overload { direction, stream, echoes, capacity, reference_s, base_rtt, random_loss })
}

fn of_queue(
    direction: Direction,
    o: &Observations,
    capacity: Option<Rate>,
    base_rtt: Duration,
    loss: &LossEstimate,
) -> (Result<Discipline, UnknownDiscipline>, BufferDepth) {
    let nothing = |why: UnknownDiscipline| {
        let words = why.to_string();
        (Err(why), BufferDepth { bytes: Finding::unknown(&*words), delay: Finding::unknown(words) })
    };
    let skipped = o.why_no_queue();
    let because = |why| skipped.map_or(why, |skipped| UnknownDiscipline::Skipped(skipped.into()));
    if o.overloads.is_empty() {
        return nothing(because(UnknownDiscipline::NotFilled));
    }
    let random_loss = loss.rate.value().map_or(0.0, |p| p.get());
    let filled = capacity.and_then(|c| overload(direction, o, c, base_rtt, random_loss));
    let Some(overload) = filled else {
        return nothing(UnknownDiscipline::NoReference);
    };
    let BufferDepth { bytes, delay } = buffer_depth(&overload, longest_queue(o));
    let both = skipped.map(|skipped| format!("{}; {skipped}", bytes.how()));
    let buffer = BufferDepth { bytes: bytes.because(both.clone()), delay: delay.because(both) };
    (discipline(&overload, o.slight.as_ref()).map_err(because), buffer)
}

/// Less jitter than this is due to the hosts' clocks and schedulers.
const MIN_JITTER: Duration = Duration::from_micros(500);

/// Spread of the one-way delays of small, sparse packets, unless cross traffic's queues or the hosts explain it.
fn jitter(
    o: &Observations,
    competing: Option<CrossTraffic>,
    available: &Finding<Rate>,
    cpu_wait: Duration,
) -> Finding<Duration> {
    let sparse = o.slow.iter().chain(&o.sparse);
    let delays: Sorted = sparse.flat_map(|s| s.arrivals.iter().map(|a| a.delay_s())).collect();
    let Some([min, low, high, max]) = delays.quantiles([0.0, 0.05, 0.95, 1.0]) else {
        return Finding::unknown("no sparse packets were sent");
    };
    let span = |s: f64| Duration::from_secs_f64(s.max(0.0));
    let Some(competing) = competing else {
        let why = available.why().filter(|why| o.why_no_available() == Some(why));
        let unknown = "it needs the available bandwidth, which is unknown";
        return Finding::unknown(why.map_or(unknown, String::as_str));
    };
    if competing.matters() {
        let (words, max) = (competing.words(), span(high - low));
        let why = format!("{words}, and its queues also vary the delays: {max} at most");
        return Finding::bounded(Bound::AtMost(max), why);
    }
    let value = span(delays.quantile(0.99).unwrap_or(high) - min);
    // One in a hundred exponential waits is longer than ln 100 times their mean.
    if value < MIN_JITTER.max(cpu_wait.scaled(100f64.ln())) {
        let why = format!("at most {value}, which the schedulers of both hosts can cause");
        return Finding::bounded(Bound::AtMost(value), why);
    }
    Finding::known(
        value,
        span(high - low),
        span(max - min),
        format!("one-way delays of {} small packets on an idle link", delays.len()),
    )
}

/// The longest wait that the streams of this direction caused.
fn longest_queue(o: &Observations) -> f64 {
    let known = o.reference_s().zip(o.capacity().capacity.value());
    let Some((reference_s, capacity)) = known else { return 0.0 };
    let longest = |stream: &StreamRecord| {
        let waits = waits(stream, capacity, reference_s);
        waits.iter().map(|wait| wait.waited_s).fold(0.0, f64::max)
    };
    let scouts = o.scouts.iter().chain(&o.trains);
    scouts.chain(&o.streams).chain(o.saturating()).map(longest).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The interval reaches from 0 to 83 Gbit/s, so the value between them is arbitrary.
    #[test]
    fn a_capacity_whose_interval_reaches_zero_is_unknown_or_bounded_by_the_goodput() {
        let [value, high] = [3_894, 82_954].map(Rate::from_mbit_per_second);
        let fit = || Finding::known(value, Rate::ZERO, high, "fit");
        let Finding::Unknown(why) = stated(fit(), None) else { panic!("a capacity") };
        assert!(why.ends_with("fit any rate up to 82.95 Gbit/s"), "{why}");
        let goodput = Rate::from_mbit_per_second(2000);
        let Finding::Bounded { bound, why } = stated(fit(), Some(goodput)) else { panic!("none") };
        assert_eq!(bound, Bound::AtLeast(goodput));
        assert!(why.ends_with("the bound is TCP's goodput"), "{why}");
        let sure = Finding::known(value, value, high, "fit");
        assert_eq!(stated(sure.clone(), Some(goodput)), sure);
    }

    #[test]
    fn a_bound_of_the_capacity_is_never_below_the_goodput() {
        let [trains, goodput] = [1268, 4138].map(Rate::from_mbit_per_second);
        let bound = |goodput| {
            let slow = Finding::bounded(Bound::AtLeast(trains), "slow");
            let Finding::Bounded { bound, .. } = stated(slow, goodput) else { panic!("no bound") };
            bound
        };
        assert_eq!(bound(Some(goodput)), Bound::AtLeast(goodput));
        assert_eq!(bound(Some(Rate::from_mbit_per_second(1000))), Bound::AtLeast(trains));
        assert_eq!(bound(None), Bound::AtLeast(trains));
    }

    /// 69 of 100 Mbit/s leave at least 25 % of the link to cross traffic. On a busy host there may be none.
    #[test]
    fn a_busy_host_makes_cross_traffic_uncertain() {
        let found = |[low, value, high]: [u64; 3]| {
            let [low, value, high] = [low, value, high].map(Rate::from_mbit_per_second);
            Finding::known(value, low, high, "pairs")
        };
        let (capacity, mut available) = (found([96, 100, 104]), found([66, 69, 72]));
        assert!(CrossTraffic::of(&capacity, &available, None).unwrap().is_certain());
        widen_for_host_delay(&mut available, Duration::from_millis(2), capacity.value());
        assert_eq!(
            available.estimate().map(|e| (e.low, e.high)),
            Some((Rate::from_mbit_per_second(66), Rate::from_mbit_per_second(100)))
        );
        assert!(!CrossTraffic::of(&capacity, &available, None).unwrap().is_certain());
        let Finding::Known { how, .. } = available else { panic!("{available:?}") };
        assert!(how.ends_with("this host was busy: its threads waited 2 ms for a CPU"), "{how}");
    }
}
