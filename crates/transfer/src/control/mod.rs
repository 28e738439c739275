//! The controllers of [`sweetspot_control`] on sockets: samples in, window clamps and pacing rates out.
//!
//! `receiver_control` feeds the sizing controller and sets clamps. `sender_link`, `send_buffer` and
//! `limit_watch` carry out the receiver's requests at the sender. `probe_responder` and `udp_demux` send and route probes.

pub mod limit_watch;
pub mod probe_responder;
pub mod receiver_control;
pub mod send_buffer;
pub mod sender_link;
pub mod udp_demux;
