//! Estimates the properties of a path from the times at which packets were sent and received.
//!
//! The crate is for programs that can send packets between two hosts and read clocks at both. It chooses the packets to
//! send next, takes the arrivals, and reports capacity, available bandwidth, buffer, queue discipline, loss, reordering,
//! RTT and delay under load. It opens no socket and reads no clock.
//!
//! [`Measurement`] is the state machine: [`Measurement::poll_step`] gives the next [`Step`], and the caller carries it
//! out and passes the [`StepResult`] to [`Measurement::handle`], until no step is left. [`Measurement::report`] then
//! returns the results. Each estimator is a separate module and can be used alone.
//!
//! Every quantity is a [`Finding`]: a value with its interval and method, or the reason why it cannot be determined.
//! The clocks of the two ends need not agree, because the estimators use only differences of one-way delays.
//!
//! # Example
//!
//! A packet train that arrives over a link of 100 Mbit/s:
//!
//! ```
//! use sweetspot_measure::{Arrival, StreamRecord, dispersion};
//! use sweetspot_units::{Bytes, Duration, Time};
//!
//! // 1250 bytes take 100 us at 100 Mbit/s; the sender was ten times as fast.
//! let at = |us: u64| Time::ZERO + Duration::from_micros(us);
//! let arrivals = (0..50u64).map(|i| Arrival {
//!     index: i as u32,
//!     sent: at(i * 10),
//!     received: at(20_000 + i * 100),
//! });
//! let train = StreamRecord { sent: 50, size: Bytes::new(1250), arrivals: arrivals.collect() };
//! let dispersion = dispersion(&train).expect("enough packets");
//! assert_eq!(dispersion.rate_out.bits_per_second(), 100_000_000);
//! ```

mod available;
mod buffer;
mod capacity;
mod cross_traffic;
mod direction_observations;
mod discipline;
mod dispersion;
mod finding;
mod load;
mod loss;
mod measurement;
mod observation;
mod overload;
mod plan;
mod reordering;
mod report;
mod round_trip;
mod search;
mod serialization;
mod skipped;
mod spacing;
mod stage;
mod token_burst;
mod traces;
mod trend;
mod undisturbed;

pub use available::available_bandwidth;
pub use buffer::{BufferDepth, buffer_depth};
pub use capacity::{CapacityEstimate, capacity};
pub use cross_traffic::CrossTraffic;
pub use discipline::{Discipline, UnknownDiscipline, discipline};
pub use dispersion::{Dispersion, dispersion, pair_mode};
pub use finding::{Bound, Estimate, Finding, Quantity};
pub use load::{DelayUnderLoad, Grade, delay_under_load};
pub use loss::{DroppingQueue, LossEstimate, losses};
pub use measurement::Measurement;
pub use observation::{
    Arrival, Direction, Echo, EchoRecord, LoadRecord, Step, StepResult, StreamRecord,
};
pub use overload::Overload;
pub use plan::{PAUSE, Plan};
pub use reordering::{Reordering, reordering};
pub use report::{DirectionReport, Intrusion, Report};
pub use round_trip::{RoundTrip, path_change, round_trip};
pub use search::{RateSearch, Verdict};
pub use serialization::serialization;
pub use skipped::{Purpose, Skipped};
pub use spacing::Spacing;
pub use traces::{DelayPoint, DirectionTrace, Traces};
pub use trend::{Trend, trend};
pub use undisturbed::{by_idle_time, by_pairs};
