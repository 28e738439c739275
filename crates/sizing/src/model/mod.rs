//! Measurements of a path, one quantity per file.

mod delivery_rate;
mod elasticity;
mod epoch;
mod inflight;
mod meter;
mod min_rtt;
mod repairs;
mod resolution;
mod round_trip;
mod samples;
mod trains;
mod unused;

pub(crate) use delivery_rate::{BURST, DeliveryRate, PACE_SHARE};
pub(crate) use elasticity::{Elasticity, ElasticityEstimate};
pub(crate) use epoch::{Epoch, Epochs, is_behind};
pub(crate) use inflight::InflightEstimator;
pub(crate) use min_rtt::MinRtt;
pub(crate) use repairs::Repairs;
pub(crate) use resolution::{AGREEMENT, CHANGE, RESOLUTION};
pub use round_trip::TIMESTAMP_TICK;
pub(crate) use round_trip::{RoundTrip, SILENCE};
pub(crate) use samples::{Samples, Share};
pub(crate) use trains::{Agreement, MEASURING_SHARE, Trains};
pub(crate) use unused::{Queued, UnusedCapacity};
