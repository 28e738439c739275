//! The stages of a measurement, in order.

use sweetspot_units::Duration;

use crate::plan::{FIRST_OVERLOAD, Plan};

/// A stage, with the index of its direction and the number or length of its remaining steps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Stage {
    Idle,
    Scouts(usize, u32),
    Sparse(usize),
    Trains(usize, u32),
    Pairs(usize),
    Bounding(usize),
    Averaging(usize, u32),
    Slow(usize),
    Overload(usize, Duration),
    Slight(usize),
    Load(usize),
    /// Echoes at the end, to check whether the path has changed.
    Again,
    Done,
}

impl Stage {
    /// The index of its direction.
    pub fn direction(self) -> Option<usize> {
        match self {
            Stage::Trains(d, _) | Stage::Averaging(d, _) | Stage::Overload(d, _) => Some(d),
            Stage::Scouts(d, _) | Stage::Sparse(d) | Stage::Pairs(d) => Some(d),
            Stage::Bounding(d) | Stage::Slow(d) | Stage::Slight(d) | Stage::Load(d) => Some(d),
            Stage::Idle | Stage::Again | Stage::Done => None,
        }
    }

    /// The purpose of its steps.
    pub fn purpose(self) -> &'static str {
        match self {
            Stage::Idle => "base RTT",
            Stage::Again => "base RTT again",
            Stage::Scouts(..) => "rough capacity",
            Stage::Sparse(_) => "available bandwidth",
            Stage::Trains(..) => "capacity",
            Stage::Pairs(_) => "available bandwidth by pairs",
            Stage::Bounding(_) | Stage::Averaging(..) => "available bandwidth by streams",
            Stage::Slow(_) => "random loss",
            Stage::Overload(..) | Stage::Slight(_) => "buffer and queue discipline",
            Stage::Load(_) => "delay under load",
            Stage::Done => "nothing",
        }
    }

    /// The stage after this one.
    pub fn next(self, plan: &Plan) -> Stage {
        let scouts = |d| match plan.directions.get(d) {
            Some(_) => Stage::Scouts(d, plan.scouts),
            None => Stage::Again,
        };
        match self {
            Stage::Idle => scouts(0),
            // Before the trains, to which cross traffic may yield.
            Stage::Scouts(d, _) => Stage::Sparse(d),
            Stage::Sparse(d) => Stage::Trains(d, plan.trains),
            // A token bucket lets all of a scout pass. Only trains show the rate at which pairs are sparse.
            Stage::Trains(d, _) => Stage::Pairs(d),
            Stage::Pairs(d) => Stage::Bounding(d),
            Stage::Bounding(d) if plan.averaged > 0 => Stage::Averaging(d, plan.averaged),
            Stage::Bounding(d) | Stage::Averaging(d, _) => Stage::Slow(d),
            Stage::Slow(d) => Stage::Overload(d, FIRST_OVERLOAD),
            Stage::Overload(d, _) => Stage::Slight(d),
            Stage::Slight(d) => Stage::Load(d),
            Stage::Load(d) => scouts(d + 1),
            Stage::Again | Stage::Done => Stage::Done,
        }
    }
}
