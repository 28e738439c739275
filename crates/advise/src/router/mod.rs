//! How much buffer a router's link should have, for whom, within what range, and what the other
//! rules would give.

mod fit;
mod mix;
mod model;
mod plan;
mod show;

pub use fit::Measurement;
pub use mix::{Favour, Mix};
pub use model::Parameters;
pub use plan::{Advice, Basis, Choice, Range, advise};

use sweetspot_units::{Bytes, Duration, Rate};

/// What is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The output link's rate.
    pub rate: Rate,
    /// The flows' RTT without this link's queue (the harmonic mean, if they differ).
    pub rtt: Duration,
    /// The rate of the links that feed it, or of the flows' bottleneck before it.
    pub input_rate: Rate,
    /// How many such links there are.
    pub inputs: Option<u64>,
    /// Long flows at a time.
    pub flows: Option<u64>,
    /// What the traffic is made of.
    pub mix: Mix,
    /// Whom the buffer is to serve.
    pub favour: Favour,
    /// The buffer that the device has.
    pub available: Option<Bytes>,
    /// The packet size.
    pub packet: Bytes,
    /// The loss form's and the delay's parameters, where they were measured.
    pub parameters: Parameters,
    /// What measurements of the link say; it goes before the capacity ratio, and what is given by
    /// hand before it.
    pub measurement: Option<Measurement>,
}
