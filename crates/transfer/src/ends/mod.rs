//! The two ends: a client that connects, a server that admits clients, and the sessions that either runs.
//!
//! `send`, `receive` and `measure` are the sessions. `client` resumes them when the path breaks. `server` accepts connections,
//! `admission` authenticates them, and the tables bound each client's use.

pub mod admission;
pub mod client;
pub mod client_table;
pub mod clients_file;
pub mod connection_table;
pub mod measure;
pub mod receive;
pub mod send;
pub mod server;
pub mod session_table;
