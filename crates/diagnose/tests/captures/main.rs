//! Captured connections, each with the limit that must be found in it.

mod captured;
mod field;
mod midway;
mod reader;
mod receiver;
