//! The two ends: a client that connects, a server that admits clients, and the sessions that either runs.
//!
//! `send`, `receive` and `measure` are the sessions; `accepted` is a receiver's agreement with its sender, and
//! `link_reader` reads the receiver's connections. `client` resumes sessions when the path breaks. `server` accepts
//! connections, `admission` authenticates them, `work` has the task of each, and the tables limit each client's
//! resources.

pub mod accepted;
pub mod admission;
pub mod claim;
pub mod client;
pub mod client_table;
pub mod clients_file;
pub mod connection_table;
pub mod expiry;
pub mod link_reader;
pub mod measure;
pub mod once;
pub mod ports;
pub mod receive;
pub mod receive_config;
pub mod send;
pub mod server;
pub mod session_table;
pub mod turn;
pub mod uses;
pub mod work;
