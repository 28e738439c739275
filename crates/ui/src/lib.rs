//! The local page: a small server on the loopback address, for whoever has its token.
//!
//! The page tries out a path with the simulator compiled to WebAssembly, or, where this program was
//! built without, with the server's, and shows what running programs write.

mod assets;
mod auth;
mod http;
mod routes;
mod server;
mod watched;

pub use auth::Token;
pub use server::{PageServer, UiError};
pub use watched::WatchedFile;
