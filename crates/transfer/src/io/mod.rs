//! The protocol's I/O on blocking threads.

mod admission;
mod channel;
pub mod client;
mod connection_table;
mod failures;
mod identity;
mod incoming;
mod link;
pub mod measure;
mod outgoing;
mod probe_responder;
pub mod receive;
mod receiver_control;
mod send;
mod send_buffer;
mod sender_congestion;
pub mod server;
pub mod source;
mod target;
mod udp_demux;
