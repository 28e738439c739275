//! Errors for sizings that cannot be used, with the names of those that can.

use sweetspot_units::UnitError;
use thiserror::Error;

/// The names of all sizings.
pub(crate) const NAMES: [&str; 19] = [
    "kernel",
    "fixed:SIZE",
    "max",
    "bdp",
    "bdp1 to bdp6",
    "wad",
    "nlanr",
    "drs",
    "drs:maxwnd",
    "heffner",
    "heffner:twice",
    "heffner:read",
    "heffner:no-timestamps",
    "linux",
    "linux:VERSION",
    "sobas",
    "sobas:paper",
    "sobas:live",
    "rledbat",
];

/// Why a text is not a sizing, or a sizing cannot be used.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum SizingError {
    /// No such controller.
    #[error("unknown sizing {0:?}; expected one of {known}", known = NAMES.join(", "))]
    Unknown(String),
    /// `linux:` without a valid kernel version.
    #[error("sizing linux: {0:?} is not a kernel version; write it like linux:6.15, or linux")]
    KernelVersion(String),
    /// `fixed:` without a valid size.
    #[error("sizing fixed: {0}")]
    Size(#[from] UnitError),
    /// `fixed:0B`.
    #[error("sizing fixed: a window of zero moves nothing; give at least one packet")]
    Zero,
    /// `bdp` without a path.
    #[error(
        "sizing bdp needs to know the path's rate and round-trip time; give them, or use fixed:SIZE, or sobas, which finds them"
    )]
    PathUnknown,
    /// A static scheme that lacks a quantity.
    #[error("sizing {sizing} needs {quantity}; {origin}; sobas needs no input")]
    Missing {
        /// The scheme.
        sizing: &'static str,
        /// The missing quantity.
        quantity: &'static str,
        /// Where the quantity comes from.
        origin: &'static str,
    },
}
