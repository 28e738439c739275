//! The local page: a small HTTP server on the loopback address, protected by a token.
//! The page simulates a path with the simulator compiled to WebAssembly, or with the server's own
//! if this program was built without it, and shows files that running programs write.

mod assets;
mod auth;
mod http;
mod routes;
mod server;
mod watched;

pub use auth::Token;
pub use server::{PageServer, UiError};
pub use watched::WatchedFile;
