//! What the bottleneck's queue discipline shows of itself while it is overloaded.

use serde::Serialize;
use sweetspot_units::Bytes;

use crate::buffer::Overload;
use crate::observation::{Direction, Echo, StreamRecord};
use crate::statistics::median;

/// A queue discipline, as far as it shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Discipline {
    /// First in, first out; what does not fit is dropped.
    DropTail,
    /// It drops before the buffer is full (RED, CoDel, PIE).
    ActiveQueueManagement,
    /// Each flow has a queue of its own (FQ-CoDel, CAKE).
    PerFlow,
    /// What exceeds the rate is dropped, and nothing waits.
    Policer {
        /// What passes at once before the first drop.
        #[serde(skip)]
        burst: Bytes,
    },
}

impl Discipline {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Discipline::DropTail => "drop-tail",
            Discipline::ActiveQueueManagement => "active queue management",
            Discipline::PerFlow => "per-flow queues",
            Discipline::Policer { .. } => "policer",
        }
    }
}

/// A wait that differs by this part from that at the last drops is another.
const OTHER_WAIT: f64 = 0.25;
/// A flow that waits less than this part of what the overload waits has a queue of its own.
const OWN_QUEUE: f64 = 0.3;
/// Below so many packets a queue cannot be told from none.
const NO_QUEUE_PACKETS: f64 = 3.0;
/// Below this wait a queue of its own cannot be told from jitter.
const LEAST_WAIT_S: f64 = 0.005;

/// The discipline of the queue that `overload` filled, or why it cannot be told. `slight` is a stream that is only a
/// little too fast: where the queue grows slowly, CoDel and its like have the time to drop before the buffer is full.
pub fn discipline(
    overload: &Overload<'_>,
    slight: Option<&StreamRecord>,
) -> Result<Discipline, String> {
    let longest = overload.longest_wait_s();
    let packet_s = (overload.stream.size / overload.capacity).as_secs_f64();
    if own_queue(overload, longest) {
        return Ok(Discipline::PerFlow);
    }
    if !overload.is_full() {
        return Err("nothing was dropped for want of room".into());
    }
    if longest < NO_QUEUE_PACKETS * packet_s {
        return Ok(Discipline::Policer { burst: burst(overload) });
    }
    let full = wait_when_full(overload)?;
    let early = drops_elsewhere(overload, full)
        || slight.is_some_and(|stream| drops_below(&Overload { stream, ..*overload }, full));
    Ok(if early { Discipline::ActiveQueueManagement } else { Discipline::DropTail })
}

/// Whether the overload was dropped from at other waits than that of a full buffer.
pub(crate) fn drops_early(overload: &Overload<'_>) -> bool {
    wait_when_full(overload).is_ok_and(|full| drops_elsewhere(overload, full))
}

/// What packets had waited beside the last that were dropped.
fn wait_when_full(overload: &Overload<'_>) -> Result<f64, String> {
    let late = overload.stream.sent / 4 * 3;
    let beside = overload.beside_losses().into_iter().filter(|beside| beside.index >= late);
    median(beside.map(|beside| beside.waited_s))
        .ok_or_else(|| "no packet arrived beside the last that were dropped".to_owned())
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

/// Whether more packets were lost at such waits than random losses explain, which fall on every wait alike.
fn more_than_by_chance(overload: &Overload<'_>, such: impl Fn(f64) -> bool) -> bool {
    let lost =
        overload.beside_losses().iter().filter(|beside| such(beside.waited_s)).count() as f64;
    let waits = overload.stream.arrivals.iter().map(|a| a.delay_s() - overload.reference_s);
    let by_chance = overload.random_loss * waits.filter(|wait| such(*wait)).count() as f64;
    // Three standard deviations and three packets more are no chance.
    lost > by_chance + 3.0 * by_chance.sqrt() + 3.0
}

/// Whether another flow's echoes pass the overload's queue by: those that crossed it in the second half of the stream.
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
    longest >= LEAST_WAIT_S && waited.is_some_and(|waited| waited < longest * OWN_QUEUE)
}

/// What passed before the first loss beyond what the rate let through.
fn burst(overload: &Overload<'_>) -> Bytes {
    let passed = overload.beside_losses().first().map_or(0, |beside| beside.index + 1);
    let sent = overload.stream.size * u64::from(passed);
    let Some(rate_in) = crate::dispersion(overload.stream).map(|d| d.rate_in) else {
        return sent;
    };
    sent.scaled((1.0 - overload.capacity.as_f64() / rate_in.as_f64()).max(0.0))
}
