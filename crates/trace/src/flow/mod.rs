//! What the segments of a capture say of each connection, in memory that does not grow with it.

mod accounts;
mod connection;
mod handshake;
mod holes;
mod losses;
mod round_trips;
mod rounds;
mod sequence;
mod stream;
mod table;
mod trains;

pub use accounts::{Account, Accounts, Hold};
pub use connection::{Connection, Ending};
pub use handshake::{Handshake, Offer};
pub use losses::{Resent, ResentKind};
pub use round_trips::{RoundTrips, Vantage};
pub use stream::{Counts, Stream};
pub use table::{LIVE_CONNECTIONS, Table};
