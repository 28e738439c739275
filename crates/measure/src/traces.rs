//! A measurement's observations over time, for plots.

use serde::Serialize;

use crate::direction_observations::Observations;
use crate::observation::{Direction, EchoRecord, StreamRecord};

/// Time since the beginning, seconds, and a delay, seconds.
pub type DelayPoint = (f64, f64);

/// The observations of a path.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Traces {
    /// RTTs of echoes on the idle path.
    pub idle: Vec<DelayPoint>,
    /// Each direction, in the order of measurement.
    pub directions: Vec<DirectionTrace>,
}

/// The observations of one direction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DirectionTrace {
    /// The direction.
    pub direction: Direction,
    /// Waits of the packets of the stream that filled the buffer.
    pub overload: Vec<DelayPoint>,
    /// Waits of the packets of the slight stream.
    pub slight: Vec<DelayPoint>,
    /// RTTs of another flow's echoes while TCP filled the path.
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

/// RTTs over the times of the requests.
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
