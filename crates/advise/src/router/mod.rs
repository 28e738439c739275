//! Router buffer advice: the buffer of a link, for which flows, its tolerance, and the results of
//! other rules.

mod fit;
mod mix;
mod model;
mod plan;
mod show;

pub use fit::LinkMeasurement;
pub use mix::{Favour, Mix};
pub use model::Parameters;
pub use plan::{Basis, BufferChoice, BufferRange, RouterAdvice, advise};

use sweetspot_units::{Bytes, Duration, Rate};

/// The link, its traffic, and what was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct RouterQuestion {
    /// The output link's rate.
    pub rate: Rate,
    /// The flows' RTT without this link's queue (the harmonic mean, if they differ).
    pub rtt: Duration,
    /// The rate of the links that feed it, or of the flows' bottleneck before it.
    pub input_rate: Rate,
    /// Number of input links.
    pub inputs: Option<u64>,
    /// Number of simultaneous long flows.
    pub flows: Option<u64>,
    /// The mix of transfer sizes.
    pub mix: Mix,
    /// Which flows the buffer is sized for.
    pub favour: Favour,
    /// The buffer that the device has.
    pub available: Option<Bytes>,
    /// The packet size.
    pub packet: Bytes,
    /// The loss form's and the delay's parameters, where they were measured.
    pub parameters: Parameters,
    /// Fits to measurements of the link. They take precedence over the capacity ratio; explicit
    /// `parameters` take precedence over them.
    pub measurement: Option<LinkMeasurement>,
}
