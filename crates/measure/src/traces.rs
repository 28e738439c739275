//! A measurement's observations over time, for pictures.

use serde::Serialize;

use crate::direction_observations::Observations;
use crate::observation::{Direction, EchoRecord, StreamRecord};

/// Seconds from the beginning, and a delay in seconds.
pub type DelayPoint = (f64, f64);

/// The observations of a path.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Traces {
    /// Round trips of echoes on the idle path.
    pub idle: Vec<DelayPoint>,
    /// Each direction, in the order in which they were measured.
    pub directions: Vec<DirectionTrace>,
}

/// The observations of one direction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DirectionTrace {
    /// Which.
    pub direction: Direction,
    /// How long the packets of the stream waited that filled the buffer.
    pub overload: Vec<DelayPoint>,
    /// The same of a stream that was only a little too fast.
    pub slight: Vec<DelayPoint>,
    /// Round trips of another flow's echoes while TCP filled the path.
    pub load: Vec<DelayPoint>,
}

impl DirectionTrace {
    pub(crate) fn of(direction: Direction, o: &Observations) -> DirectionTrace {
        let reference_s = o.reference_s();
        let waits = |stream: Option<&StreamRecord>| {
            stream.zip(reference_s).map_or_else(Vec::new, |(s, min)| waits(s, min))
        };
        DirectionTrace {
            direction,
            overload: waits(o.overloads.last().map(|(stream, _)| stream)),
            slight: waits(o.slight.as_ref()),
            load: o.load.as_ref().map_or_else(Vec::new, |load| round_trips(&load.echoes)),
        }
    }
}

/// Round trips over the times at which they were asked for.
pub(crate) fn round_trips(record: &EchoRecord) -> Vec<DelayPoint> {
    let mut echoes = record.echoes.clone();
    echoes.sort_unstable_by_key(|echo| echo.sent);
    let Some(first) = echoes.first().map(|echo| echo.sent) else { return Vec::new() };
    let point = |echo: &crate::Echo| {
        (echo.sent.since(first).as_secs_f64(), echo.round_trip().as_secs_f64())
    };
    echoes.iter().map(point).collect()
}

fn waits(stream: &StreamRecord, min_s: f64) -> Vec<DelayPoint> {
    let mut arrivals = stream.arrivals.clone();
    arrivals.sort_unstable_by_key(|arrival| arrival.index);
    let first = arrivals.first().map_or(0, |arrival| arrival.sent.as_nanos());
    let at = |sent: u64| sent.wrapping_sub(first) as i64 as f64 / 1e9;
    let point = |a: &crate::Arrival| (at(a.sent.as_nanos()), (a.delay_s() - min_s).max(0.0));
    arrivals.iter().map(point).collect()
}
