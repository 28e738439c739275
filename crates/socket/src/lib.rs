//! Sizes the windows of a program's own TCP sockets.
//!
//! A program attaches a socket and continues to use it. The library samples the kernel's statistics of the connection
//! (`TCP_INFO`), finds the window at which the connection is fastest and its queue shortest, and limits the advertised
//! window to that (`TCP_WINDOW_CLAMP`). It also paces the data that the socket sends (`SO_MAX_PACING_RATE`). It never
//! sets the size of a buffer, which would turn the kernel's autotuning off.
//!
//! ```
//! use std::net::{TcpListener, TcpStream};
//! use sweetspot_socket::{Options, SizedSocket};
//!
//! # let listener = TcpListener::bind("127.0.0.1:0")?;
//! # let address = listener.local_addr()?;
//! let stream = TcpStream::connect(address)?;
//! let sized = SizedSocket::attach(&stream, Options::default())?;
//! // Read and write as usual; dropping `sized` lifts every limit.
//! # drop(sized);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The library needs no privilege. It calls `getsockopt`, `setsockopt`, `ioctl` and `fcntl` only on attached sockets.
//! On systems other than Linux it does nothing, and [`SizedSocket::attach`] returns [`AttachError::Unsupported`].

mod both_ends;
mod error;
mod options;
mod report;

#[cfg(target_os = "linux")]
mod descriptor;
#[cfg(target_os = "linux")]
mod handle;
#[cfg(target_os = "linux")]
mod link;
#[cfg(target_os = "linux")]
mod member;
#[cfg(target_os = "linux")]
mod path;
#[cfg(target_os = "linux")]
mod pool;
#[cfg(target_os = "linux")]
mod pool_state;
#[cfg(target_os = "linux")]
mod process_pool;
#[cfg(target_os = "linux")]
pub mod readings;
#[cfg(target_os = "linux")]
mod sample_queue;
#[cfg(all(target_os = "linux", feature = "tokio"))]
mod stream;
#[cfg(not(target_os = "linux"))]
mod unsupported;
#[cfg(target_os = "linux")]
pub mod window;
#[cfg(target_os = "linux")]
mod woken;

pub use both_ends::BothEnds;
pub use error::{AttachError, SocketError};
#[cfg(target_os = "linux")]
pub use handle::SizedSocket;
pub use options::{Observer, Options, SocketEvent, SocketSizing};
#[cfg(target_os = "linux")]
pub use pool::Pool;
pub use report::{Activity, Autotuning, Report, Side};
#[cfg(all(target_os = "linux", feature = "tokio"))]
pub use stream::SizedStream;
pub use sweetspot_control::TuneEventKind as EventKind;
pub use sweetspot_diagnose::Class;
pub use sweetspot_protocol::{INVITATION_BYTES, InvitationError, MAX_INVITATION_BYTES};
pub use sweetspot_sizing::{HeffnerVariant, Reason, SizingPhase};
pub use sweetspot_units::{Bytes, Duration, Rate, Time};
#[cfg(not(target_os = "linux"))]
pub use unsupported::SizedSocket;

/// The current time, for [`Pool::poll`].
#[cfg(target_os = "linux")]
pub fn now() -> Time {
    sweetspot_linux::clock::now()
}

/// Limits the sum of the windows of all sockets of this process; `None` lifts that limit. See
/// [`Pool::set_memory_budget`].
#[cfg(target_os = "linux")]
pub fn set_memory_budget(memory: Option<Bytes>) -> Result<(), AttachError> {
    process_pool::of_process().map(|pool| pool.set_memory_budget(memory))
}
