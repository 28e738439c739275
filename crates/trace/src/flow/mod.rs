//! Analyses the segments of each connection in a capture, in memory that does not grow with the
//! capture.

mod accounts;
mod ack;
mod connection;
mod counts;
mod credit;
mod deliveries;
mod distance;
mod duplicates;
mod elapsed;
mod half_trips;
mod handshake;
mod holes;
mod losses;
mod round_trips;
mod rounds;
mod sequence;
mod silence;
mod spacing;
mod stream;
mod table;
mod trains;
mod turns;
mod withdrawn;

pub use accounts::{Account, Accounts, Hold, Span};
pub use connection::{Connection, Ending};
pub use counts::Counts;
pub use deliveries::Deliveries;
pub use handshake::{Handshake, Offer};
pub use losses::{RetransmissionKind, Retransmissions};
pub use round_trips::{RoundTrips, Vantage};
pub use rounds::{HISTORY, Held, has_standing_queue};
pub use silence::{Silence, TimerWaits};
pub use stream::{SenderReport, Stream};
pub use table::{LIVE_CONNECTIONS, Table};
