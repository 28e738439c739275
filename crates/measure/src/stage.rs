//! The stages of a measurement, in order.

use sweetspot_units::Duration;

use crate::plan::{FIRST_OVERLOAD, Plan};
use crate::skipped::Purpose;

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
    pub fn purpose(self) -> Purpose {
        match self {
            Stage::Idle => Purpose::BaseRtt,
            Stage::Again => Purpose::BaseRttAgain,
            Stage::Scouts(..) => Purpose::RoughCapacity,
            Stage::Sparse(_) => Purpose::Available,
            Stage::Trains(..) => Purpose::Capacity,
            Stage::Pairs(_) => Purpose::AvailableByPairs,
            Stage::Bounding(_) | Stage::Averaging(..) => Purpose::AvailableByStreams,
            Stage::Slow(_) => Purpose::RandomLoss,
            Stage::Overload(..) | Stage::Slight(_) => Purpose::Queue,
            Stage::Load(_) => Purpose::Load,
            Stage::Done => Purpose::Rest,
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
