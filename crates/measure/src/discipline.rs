//! Identifies the bottleneck's queue discipline from its behaviour under overload.

use serde::Serialize;
use sweetspot_path::{DirectionSpec, Link, Packet, QueueDiscipline};
use sweetspot_statistics::median;
use sweetspot_units::{Bytes, Duration, Time, Volume};
use thiserror::Error;

use crate::observation::{Arrival, Direction, Echo, StreamRecord};
use crate::overload::Overload;

/// A queue discipline, as far as its behaviour shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Discipline {
    /// FIFO; packets that do not fit are dropped.
    DropTail,
    /// AQM: drops packets before the buffer is full (RED, CoDel, PIE).
    ActiveQueueManagement,
    /// Each flow has its own queue (FQ-CoDel, CAKE).
    PerFlow,
    /// Packets above the rate are dropped; none is queued.
    Policer {
        /// The burst passed before the first drop.
        #[serde(skip)]
        burst: Bytes,
    },
}

impl Discipline {
    /// The name, for display.
    pub fn name(self) -> &'static str {
        match self {
            Discipline::DropTail => "drop-tail",
            Discipline::ActiveQueueManagement => "active queue management",
            Discipline::PerFlow => "per-flow queues",
            Discipline::Policer { .. } => "policer",
        }
    }
}

/// The reason why the queue discipline is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UnknownDiscipline {
    /// The streams that show it were skipped. Holds the reason.
    #[error("{0}")]
    Skipped(String),
    /// No stream exceeded the capacity.
    #[error("the queue was not filled")]
    NotFilled,
    /// The capacity or the delay without a queue is unknown.
    #[error("it needs the capacity and the delay without a queue")]
    NoReference,
    /// The buffer was never full.
    #[error("no packet was dropped for lack of buffer space")]
    NoDrops,
    /// The delay at the last drops is unknown.
    #[error("no packet arrived next to the last dropped ones")]
    NoneBesideDrops,
    /// An AQM would have dropped the same packets.
    #[error(
        "{}, or an AQM that did not act: {aqm} would show the same drops here, because the buffer fills before it acts",
        Discipline::DropTail.name()
    )]
    LooksAlike {
        /// The AQM's name.
        aqm: &'static str,
    },
}

/// Two waits are different if they differ by more than this share of the wait at the last drops.
const OTHER_WAIT: f64 = 0.25;
/// A flow has its own queue if it waits for less than this share of the overload's delay.
const OWN_QUEUE: f64 = 0.3;
/// A queue shorter than this many packets cannot be distinguished from none.
const NO_QUEUE_PACKETS: f64 = 3.0;
/// Below this wait, a separate queue cannot be distinguished from jitter.
const MIN_WAIT_S: f64 = 0.005;

/// The discipline of the queue that `overload` filled, or the reason why it is unknown. `slight` is a stream slightly
/// above the available bandwidth: its queue grows slowly, so CoDel and similar AQMs have time to drop before the buffer
/// is full.
pub fn discipline(
    overload: &Overload<'_>,
    slight: Option<&StreamRecord>,
) -> Result<Discipline, UnknownDiscipline> {
    let longest = overload.longest_wait_s();
    let packet_s = (overload.stream.size / overload.capacity).as_secs_f64();
    if own_queue(overload, longest) {
        return Ok(Discipline::PerFlow);
    }
    if !overload.is_full() {
        return Err(UnknownDiscipline::NoDrops);
    }
    if longest < NO_QUEUE_PACKETS * packet_s {
        return Ok(Discipline::Policer { burst: burst(overload) });
    }
    let full = wait_when_full(overload)?;
    let early = drops_elsewhere(overload, full)
        || slight.is_some_and(|stream| drops_below(&Overload { stream, ..*overload }, full));
    if early {
        return Ok(Discipline::ActiveQueueManagement);
    }
    match indistinguishable(overload, slight, full) {
        Some(aqm) => Err(UnknownDiscipline::LooksAlike { aqm }),
        None => Ok(Discipline::DropTail),
    }
}

/// The first AQM that these streams could not distinguish from drop-tail, with a buffer in which packets wait for
/// `full` seconds. They have the parameters of RFC 8289, RFC 8033 and RED's authors.
fn indistinguishable(
    overload: &Overload<'_>,
    slight: Option<&StreamRecord>,
    full: f64,
) -> Option<&'static str> {
    let aqms = [
        ("CoDel", QueueDiscipline::CoDel),
        ("PIE", QueueDiscipline::Pie),
        ("RED", QueueDiscipline::Red),
    ];
    let hidden = aqms.into_iter().find(|(_, queue)| {
        let shows = |stream: &StreamRecord, by: &dyn Fn(&Overload<'_>) -> bool| {
            replay(stream, *queue, full).is_some_and(|(stream, reference_s)| {
                by(&Overload { stream: &stream, reference_s, random_loss: 0.0, ..*overload })
            })
        };
        !shows(overload.stream, &|finished| drops_elsewhere(finished, full))
            && !slight.is_some_and(|s| shows(s, &|finished| drops_below(finished, full)))
    });
    hidden.map(|(name, _)| name)
}

/// The stream as another discipline would have carried it at the same arrival rate, and its delay without a queue.
fn replay(stream: &StreamRecord, queue: QueueDiscipline, full: f64) -> Option<(StreamRecord, f64)> {
    let found = crate::dispersion(stream)?;
    let (size, rate) = (stream.size, found.rate_out);
    let buffer = rate * Duration::from_secs_f64(full) + size;
    let spec =
        DirectionSpec { queue, ..DirectionSpec::new(rate, Duration::ZERO, Volume::Bytes(buffer)) };
    let mut link = spec.link_behind(spec.discipline(size, 1));
    let gap = size / found.rate_in;
    let start = Time::ZERO + Duration::from_secs(1);
    let mut arrivals = Vec::new();
    let mut drain = |link: &mut Link<Replayed, _>, until: Time| {
        while let Some((received, packet)) = link.poll_departure(until, &mut |_| {}) {
            arrivals.push(Arrival { index: packet.index, sent: packet.sent, received });
        }
    };
    for index in 0..stream.sent {
        let sent = start + gap * u64::from(index);
        drain(&mut link, sent);
        // Dropped packets do not arrive.
        let _ = link.handle_arrival(sent, Replayed { index, sent, size });
    }
    drain(&mut link, Time::MAX);
    Some((StreamRecord { sent: stream.sent, size, arrivals }, (size / rate).as_secs_f64()))
}

#[derive(Debug, Clone, Copy)]
struct Replayed {
    index: u32,
    sent: Time,
    size: Bytes,
}

impl Packet for Replayed {
    fn wire_size(&self) -> Bytes {
        self.size
    }

    fn flow(&self) -> u64 {
        0
    }
}

/// Whether an AQM chose the dropped packets: at queueing delays other than a full buffer's, or from one flow's queue of several.
pub(crate) fn drops_by_aqm(overload: &Overload<'_>) -> bool {
    own_queue(overload, overload.longest_wait_s())
        || wait_when_full(overload).is_ok_and(|full| drops_elsewhere(overload, full))
}

/// The queueing delay of the packets next to the last drops.
fn wait_when_full(overload: &Overload<'_>) -> Result<f64, UnknownDiscipline> {
    let late = overload.stream.sent / 4 * 3;
    let beside = overload.beside_losses().into_iter().filter(|beside| beside.index >= late);
    median(beside.map(|beside| beside.waited_s)).ok_or(UnknownDiscipline::NoneBesideDrops)
}

fn drops_elsewhere(overload: &Overload<'_>, full: f64) -> bool {
    let tolerance = tolerance(overload, full);
    more_than_by_chance(overload, |wait| (wait - full).abs() > tolerance)
}

fn drops_below(overload: &Overload<'_>, full: f64) -> bool {
    let tolerance = tolerance(overload, full);
    more_than_by_chance(overload, |wait| wait < full - tolerance)
}

fn tolerance(overload: &Overload<'_>, full: f64) -> f64 {
    let packet_s = (overload.stream.size / overload.capacity).as_secs_f64();
    full * OTHER_WAIT + 2.0 * packet_s
}

/// Whether more packets were lost at these waits than random losses explain, which are independent of the wait.
fn more_than_by_chance(overload: &Overload<'_>, such: impl Fn(f64) -> bool) -> bool {
    let lost =
        overload.beside_losses().iter().filter(|beside| such(beside.waited_s)).count() as f64;
    let waited = overload.waits().iter().filter(|wait| such(wait.waited_s)).count();
    let by_chance = overload.random_loss * waited as f64;
    // Significant: more than three standard deviations plus three packets.
    lost > by_chance + 3.0 * by_chance.sqrt() + 3.0
}

/// Whether another flow's echoes bypass the overload's queue. Counts the echoes during the second half of the stream.
fn own_queue(overload: &Overload<'_>, longest: f64) -> bool {
    let received = overload.stream.arrivals.iter().map(|arrival| arrival.received);
    let (Some(first), Some(last)) = (received.clone().min(), received.max()) else { return false };
    let middle = first + last.since(first) / 2;
    let crossed = |echo: &Echo| match overload.direction {
        Direction::Up => echo.reflected,
        Direction::Down => echo.received,
    };
    let echoes = overload.echoes.echoes.iter();
    let meanwhile = echoes.filter(|echo| (middle..=last).contains(&crossed(echo)));
    let base = overload.base_rtt.as_secs_f64();
    let waited = median(meanwhile.map(|echo| echo.round_trip().as_secs_f64() - base));
    longest >= MIN_WAIT_S && waited.is_some_and(|waited| waited < longest * OWN_QUEUE)
}

/// The bytes above the rate that passed before the first loss.
fn burst(overload: &Overload<'_>) -> Bytes {
    let passed = overload.beside_losses().first().map_or(0, |beside| beside.index + 1);
    let sent = overload.stream.size * u64::from(passed);
    let Some(rate_in) = crate::dispersion(overload.stream).map(|d| d.rate_in) else {
        return sent;
    };
    sent.scaled((1.0 - overload.capacity.as_f64() / rate_in.as_f64()).max(0.0))
}
