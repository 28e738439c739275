//! Captured connections, each with the limit that the diagnosis must find.

mod captured;
mod field;
mod midway;
mod paced;
mod reader;
mod receiver;
