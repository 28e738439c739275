//! The protocol's I/O on blocking threads.

mod admission;
mod channel;
mod connection_table;
mod content_stream;
mod control_stream;
mod file_source;
mod identity;
mod probe_responder;
mod receiver;
mod receiver_control;
mod send_buffer;
pub mod sender;
mod sender_congestion;
mod sender_task;
pub mod server;
mod sink;
mod temp_file;
mod udp_demux;
