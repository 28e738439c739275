//! Runs sizing controllers on live connections, without any I/O.
//!
//! The control laws are in `sweetspot-sizing`, the wire format in `sweetspot-protocol`. The crate opens no socket and reads
//! no clock; the time is an argument. It decides for three kinds of programs:
//!
//! A transfer, which controls both ends (`sweetspot-transfer`, and the lab through it):
//!
//! - [`ControlLoop`] runs a controller at the receiver. It returns [`TransferEffect`]s for the caller to carry out.
//! - [`StreamCount`] chooses the number of connections, and [`LossWatch`] tells a sender when losses limit it.
//! - `--json` prints a [`TransferSummary`]; `--series` writes [`series`].
//!
//! A tuner (`sweetspot-tune`) and a program that sizes its own sockets (`sweetspot-socket`), which control one end:
//!
//! - A [`policy`] says which connections are tuned and for which [`Goal`].
//! - A [`PathGroup`] holds all downloads between two hosts. One controller sizes them, and their window is
//!   divided max-min fair ([`sweetspot_sizing::share`]). A [`PathCache`] keeps what a group learnt for five minutes (RFC 9040).
//! - A [`PeerLink`] exchanges datagrams with a connection's other end: probes, trains, steering.
//! - An [`OwnClamp`] distinguishes a clamp that the program set itself from the kernel's, and restores it.
//! - A [`ClampCheck`] finds out whether the kernel keeps a window below its limit.
//! - A [`PacedUpload`] limits a sending connection by its pacing rate; [`BufferAdvice`] recommends a larger send
//!   buffer.
//! - A [`TuneEvent`] reports an action on a connection and the reason, in words and as JSON.
//!
//! # Example
//!
//! Two downloads share a budget of 300 kB:
//!
//! ```
//! use sweetspot_control::{ConnectionSample, Goal, PathGroup};
//! use sweetspot_sizing::ControllerConfig;
//! use sweetspot_units::{Bytes, Duration, Time};
//!
//! let (mss, packet) = (Bytes::new(1448), Bytes::new(1500));
//! let max_window = Bytes::new(6_000_000);
//! let config = ControllerConfig { mss, packet, max_window, size: None, path: None };
//! let mut group = PathGroup::new(Goal::Throughput.controller(&config), mss);
//! group.set_ceiling(Some(Bytes::new(300_000)));
//!
//! let sample = |received| ConnectionSample {
//!     received: Bytes::new(received),
//!     unread: Bytes::ZERO,
//!     rtt: Some(Duration::from_millis(40)),
//!     minimum_rtt: Some(Duration::from_millis(40)),
//!     out_of_order: 0,
//!     advertised: None,
//! };
//! let now = Time::from_nanos(1_000_000_000);
//! for cookie in [1, 2] {
//!     group.add(now, cookie, sample(0));
//!     group.handle_sample(now + Duration::from_millis(50), cookie, sample(100_000));
//! }
//! group.handle_round(now + Duration::from_millis(50));
//! assert_eq!(group.limit(1), Some(Bytes::new(150_000)));
//! assert_eq!(group.limit(2), Some(Bytes::new(150_000)));
//! ```

mod clamp_check;
mod congestion_name;
mod connection_owner;
mod control_loop;
mod event;
mod goal;
mod own_clamp;
mod path_cache;
mod path_group;
mod peer_labels;
mod peer_link;
pub mod policy;
mod readings;
mod sender_help;
pub mod series;
mod stream_count;
mod transfer_summary;
mod tune_summary;
mod unlimited;
mod upload;

pub use clamp_check::{ClampCheck, IgnoredLimit};
pub use congestion_name::{CongestionName, CongestionNameError};
pub use connection_owner::ConnectionOwner;
pub use control_loop::{ControlLoop, ROW_INTERVAL, ReceiverMeasurements, TransferEffect};
pub use event::{AppliedChange, TuneEvent, TuneEventKind};
pub use goal::Goal;
pub use own_clamp::{BufferState, OwnClamp, UNCLAMPED};
pub use path_cache::PathCache;
pub use path_group::{
    BULK_BYTES, ConnectionSample, LimitChange, MIN_SHARE_SEGMENTS, PathGroup, receiver_config,
};
pub use peer_labels::{MAX_PEER_LABELS, OTHER_PEERS, PeerLabels, network};
pub use peer_link::{PeerLink, Received, Transmit};
pub use sender_help::SenderRequest;
pub use tune_summary::{TuneSummary, ended_line};
pub use unlimited::{NotLimited, UnlimitedConnections};

pub use stream_count::{HeldDown, LossWatch, SenderSample, StreamCount, loss_limited_rate};
pub use transfer_summary::{DryRunCounts, DryRunEntry, DryRunKind, OwnAccount, TransferSummary};
pub use upload::{BufferAdvice, PaceStep, PacedUpload, SendBufferSample, send_buffer_share};
