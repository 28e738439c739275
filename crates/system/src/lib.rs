//! A clock, atomic replacement of files, and signals, for verbs that also run on systems other than Linux. On
//! Linux, `sweetspot_linux` implements them, elsewhere the standard library.
//!
//! ```
//! use sweetspot_system::clock;
//! use sweetspot_units::Duration;
//!
//! let due = clock::now() + Duration::from_millis(1);
//! clock::sleep_until(due);
//! assert!(clock::now() >= due);
//! ```

#[cfg(not(target_pointer_width = "64"))]
compile_error!("Sweetspot runs on 64-bit machines only: build it for one (rustup target list)");

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod on_linux;

/// The clock. Portable crates read only this clock, and sleep only here.
pub mod clock {
    #[cfg(not(target_os = "linux"))]
    pub use crate::elsewhere::{now, sleep_until};
    #[cfg(target_os = "linux")]
    pub use sweetspot_linux::clock::{now, sleep_until};
}

#[cfg(not(target_os = "linux"))]
pub use elsewhere::{Interruption, replace};
#[cfg(target_os = "linux")]
pub use on_linux::{Interruption, replace};
