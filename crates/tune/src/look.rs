use std::io;

use sweetspot_linux::live::{BorrowError, LiveSocket};
use sweetspot_linux::tcp::{Info, options};
use sweetspot_units::{Bytes, Duration};

use crate::bundle::Look;

/// A clamp that limits nothing: as much as the option can say.
const UNCLAMPED: Bytes = Bytes::new(i32::MAX as u64);

/// What the kernel says of a connection, and what of it a controller needs.
pub struct Seen {
    /// `TCP_INFO`.
    pub info: Info,
    /// For the controller.
    pub look: Look,
}

/// Looks at a connection, and holds its limit where it has one: the kernel overwrites a clamp
/// whenever it grows the buffer (kernel commits 05f76b2d634e, a2cbb1603943). Setting one that
/// stands costs nothing.
pub fn look(socket: &LiveSocket, limit: Option<Bytes>) -> Result<io::Result<Seen>, BorrowError> {
    socket.with(|fd| {
        let info = Info::read(fd)?;
        if let Some(limit) = limit {
            options::set_window_clamp(fd, limit)?;
        }
        let look = Look {
            received: info.bytes_received,
            unread: options::unread(fd)?,
            rtt: info.rcv_rtt,
            minimum_rtt: known(info.min_rtt),
            out_of_order: info.rcv_ooopack.unwrap_or(0).into(),
        };
        Ok(Seen { info, look })
    })
}

/// Limits a connection's window, or lifts the limit; returns the clamp that the kernel has then.
pub fn limit(socket: &LiveSocket, limit: Option<Bytes>) -> Result<io::Result<Bytes>, BorrowError> {
    socket.with(|fd| {
        options::set_window_clamp(fd, limit.unwrap_or(UNCLAMPED))?;
        options::window_clamp(fd)
    })
}

/// The kernel's minimum is all ones as long as it has none.
fn known(minimum: Duration) -> Duration {
    let none = Duration::from_micros(u32::MAX.into());
    if minimum == none { Duration::ZERO } else { minimum }
}
