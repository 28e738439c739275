//! Closed forms for TCP: throughput as a function of window, cross traffic, loss, and router
//! buffers.
//!
//! There is one file per result. A comment above each function gives the paper and the equation.
//! Types carry the units, and errors give the domain in which a formula holds. A function returns a
//! number or a [`TheoryError`], never NaN.
//!
//! - [`path`]: throughput versus socket buffer, cross traffic, the sawtooth, the six
//!   bandwidth-delay products (Jain, Prasad, Dovrolis).
//! - [`reno`]: throughput versus loss (PFTK, the L- and S-model), losses of many flows (Morris).
//! - [`router`]: the best buffer of a router (Prasad, Dovrolis, Thottan), and the other rules.
//! - [`host`]: socket buffer to advertised window, window scale, frame efficiency, receivers that
//!   size themselves (Gordon; Heffner; Weigle and Feng; RFC 9840).
//! - [`engine`]: an engine for the scenarios that a closed form covers.
//!
//! The crate is pure: it reads no clock and does not touch the operating system. Its logarithms and
//! powers give the same bits on every platform.
//!
//! ```
//! use sweetspot_theory::path::{Path, saturation};
//! use sweetspot_units::{Bytes, Duration, Rate};
//!
//! // 50 Mbit/s x 100 ms = 625 kB, and a buffer of 313 kB.
//! let rate = Rate::from_mbit_per_second(50);
//! let path = Path::new(rate, Duration::from_millis(100), Bytes::new(313_000))?;
//! let sweet_spot = saturation::sweet_spot(&path);
//! assert_eq!((sweet_spot.low, sweet_spot.high), (Bytes::new(625_000), Bytes::new(938_000)));
//! // Half of the bandwidth-delay product gives half of the rate.
//! let half = saturation::throughput(&path, Bytes::new(312_500))?;
//! assert_eq!(half.rate, Rate::from_mbit_per_second(25));
//! # Ok::<(), sweetspot_theory::TheoryError>(())
//! ```

pub mod engine;
pub mod host;
pub mod path;
pub mod reno;
pub mod router;

mod error;
mod packets;

pub use error::{Result, TheoryError};
pub use packets::Packets;
