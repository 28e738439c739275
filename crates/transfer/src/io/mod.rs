//! The protocol's I/O: blocking threads around the pure parts.

mod admission;
mod channel;
mod congestion;
mod connection_table;
mod control_stream;
mod identity;
mod probe_responder;
mod receiver;
mod receiver_control;
mod send_buffer;
pub mod sender;
mod sender_task;
pub mod server;
mod sink;
mod source;
mod stream;
mod temp_file;
mod udp_demux;
