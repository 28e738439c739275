//! The out-of-band packets without their I/O. Periodic probes, their answers and packet trains serve a transfer (section VII-A
//! of the SOBAS paper). Streams and echoes measure a path without a transfer.
//!
//! The receiver probes and the sender answers, so the answers take the same path as the content. Both probes and
//! answers are numbered, which distinguishes losses in the two directions.

mod answer;
mod authenticator;
mod float_code;
mod packet;
mod reflector;
mod train_budget;
mod words;

pub use authenticator::PacketAuthenticator;
pub use packet::{ProbePacket, Steering, StreamPacket};
pub use reflector::Reflector;
pub use sweetspot_sizing::{PROBE_INTERVAL, ProbeAnswer, Prober, TrainCollector, TrainPacket};
pub use train_budget::TrainBudget;
