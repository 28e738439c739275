//! Reads captures (pcap, pcapng, snoop) as a stream and analyses each TCP connection.
//!
//! ```text
//! bytes of a file -> file::Decoder -> Record -> packet::Dissector -> Segment -> flow::Table -> Connection
//! ```
//!
//! The crate itself reads no file: the caller passes in bytes and gets facts, in memory that does not depend on the
//! length of the capture. Input may be truncated, corrupt or hostile; such input is counted, or rejected with an error,
//! and never causes a panic.
//!
//! ```
//! use sweetspot_trace::file::{Decoder, file_header, record_header};
//! use sweetspot_trace::packet::Dissector;
//! use sweetspot_units::Time;
//!
//! // A capture of one Ethernet frame that holds no IP.
//! let frame = [0; 60];
//! let header = record_header(Time::ZERO, frame.len(), frame.len());
//! let capture = [&file_header(96)[..], &header, &frame].concat();
//! let (mut decoder, mut dissector) = (Decoder::default(), Dissector::default());
//! let mut input = &capture[..];
//! while let Some(record) = decoder.next(&mut input)? {
//!     assert!(dissector.dissect(&record).is_err());
//! }
//! decoder.end(input)?;
//! assert_eq!(dissector.counts().packets, 1);
//! # Ok::<(), sweetspot_trace::file::CaptureError>(())
//! ```
//!
//! A capture is taken somewhere along the path, but the sender decides when to send. Each acknowledgement is therefore
//! delayed until it would have reached the sender (see [`flow::Vantage`]), and the analysis runs as if at the sender.

pub mod file;
pub mod flow;
pub mod packet;

/// Counts of numbers by size, with an accuracy of 3 %.
pub type Histogram = sweetspot_statistics::Histogram<5>;
