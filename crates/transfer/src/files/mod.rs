//! Files on both ends: a sender lists and reads them; a receiver checks, writes and renames them.
//!
//! `source`, `outgoing` and `file_reader` send; `incoming`, `target`, `temp_file`, `provenance` and `quota` receive.
//! Paths from a peer are opened relative to a directory descriptor, and a file gets its name once all of its pieces
//! are verified.

pub mod accounts;
pub mod arriving_hashes;
pub mod beneath;
pub mod bounded_lines;
pub mod failures;
pub mod file_reader;
pub mod incoming;
pub mod outgoing;
pub mod packing;
pub mod provenance;
pub mod quota;
pub mod source;
pub mod target;
pub mod temp_file;
pub mod would_move;
