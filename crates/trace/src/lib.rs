//! Captures (pcap, pcapng) read as a stream, and what they show of each TCP connection.
//!
//! ```text
//! bytes of a file -> file::Decoder -> Record -> packet::Dissector -> Segment -> flow::Table -> Connection
//! ```
//!
//! Nothing here reads a file: bytes come in, facts come out, in memory that does not depend on the
//! length of the capture. Input may be cut off, corrupt or hostile: it is refused or counted, in
//! words, and never a panic.
//!
//! A capture is taken somewhere along the path, but what holds a transfer back is decided at the
//! sender. Each acknowledgement is therefore held until it would have reached the sender (see
//! [`flow::Vantage`]), and the rest is written as if the capture stood there.

pub mod file;
pub mod flow;
mod histogram;
pub mod packet;

pub use histogram::Histogram;
