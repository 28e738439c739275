//! Advice on window size, host settings and router buffers, from closed forms.
//!
//! Each module has a question type, a function `advise`, and an advice type that prints itself as text
//! (`text`) and as JSON (`json`). The crate does no I/O: the caller passes in the state of a host as a
//! [`host::Snapshot`].
//!
//! ```
//! use sweetspot_advise::window::{LossResponse, WindowQuestion, advise};
//! use sweetspot_units::Bytes;
//!
//! let advice = advise(&WindowQuestion {
//!     rate: "10Gbit/s".parse()?,
//!     rtt: "80ms".parse()?,
//!     buffer: Some("12MB".parse()?),
//!     cross: None,
//!     loss: None,
//!     congestion: LossResponse::Cubic,
//!     mtu: Bytes::new(1500),
//!     kernel: "6.18".parse()?,
//! })?;
//! // C x T_m = 100 MB, 1448 of each 1500 B as payload: this window is the lower end of the sweet spot.
//! assert_eq!(advice.sweet_spot.low, Bytes::new(96_533_333));
//! println!("{}", advice.text(false, 80));
//! # Ok::<(), sweetspot_advise::AdviceError>(())
//! ```

pub mod host;
pub mod router;
pub mod window;

mod error;
mod formula;
mod kernel;
mod limit;
mod text;

pub use error::AdviceError;
pub use formula::Formula;
pub use kernel::Kernel;
