use thiserror::Error;

use crate::{Class, percent};

/// Quantities of a path that a scenario needs and the capture does not show, each with the reason.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UnknownPath {
    /// The capacity.
    #[error("the capacity is not known: {0}")]
    Capacity(String),
    /// The round trip.
    #[error("the round trip is not known: {0}")]
    RoundTrip(String),
    /// The capacity and the round trip.
    #[error("the capacity is not known: {capacity}, and the round trip is not known: {rtt}")]
    Both {
        /// Why the capacity is not known.
        capacity: String,
        /// Why the round trip is not known.
        rtt: String,
    },
}

/// Why a transfer cannot be simulated with and without its limit.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum NoReplay {
    /// The path is not known.
    #[error("{0}")]
    Path(#[from] UnknownPath),
    /// No setting of a simulator removes this kind of limit.
    #[error("a simulation cannot lift this limit ({0})")]
    Class(Class),
    /// The receiver's window is not known.
    #[error("the window is unknown")]
    NoWindow,
    /// The bytes in flight are not known.
    #[error("the flight is unknown")]
    NoFlight,
    /// All losses are overflows of a queue that holds at least a bandwidth-delay product.
    #[error("its losses were those of a full queue that is not small")]
    FullQueue,
    /// The limit held the transfer for only this share of the time.
    #[error("the limit held it for {} % of the time only", percent(*.0))]
    SeldomHeld(f64),
    /// For this share of the time there was nothing to send.
    #[error("for {} % of the time there was nothing to send", percent(*.0))]
    NothingToSend(f64),
    /// It has too few segments.
    #[error("the transfer is too short to compare")]
    TooShort,
}
