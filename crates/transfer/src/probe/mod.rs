//! The out-of-band packets without their I/O (section VII-A of the SOBAS paper): periodic probes
//! and their answers, and packet trains.
//!
//! The receiver probes, the sender answers; so the answers travel the path that the content
//! takes. Answers are numbered as well as probes, which tells losses on the two paths apart.

mod compact;
mod packet;
mod reflector;

pub use packet::{Packet, PacketAuthenticator};
pub use reflector::Reflector;
pub use sweetspot_sizing::{Answer, PROBE_INTERVAL, Prober, TrainCollector, TrainPacket};
