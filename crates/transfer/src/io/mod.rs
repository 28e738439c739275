//! The protocol's I/O on blocking threads.

mod admission;
mod channel;
pub mod client;
mod client_table;
mod connection_table;
mod failures;
pub mod identity;
mod incoming;
mod limit_watch;
pub mod link;
pub mod measure;
mod outgoing;
pub mod pace;
mod probe_responder;
mod quota;
pub mod receive;
mod receiver_control;
mod send;
mod send_buffer;
mod sender_congestion;
mod sender_link;
pub mod server;
pub mod source;
pub mod spoken;
mod target;
mod udp_demux;
