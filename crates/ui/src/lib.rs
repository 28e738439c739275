//! The local page: a small HTTP server on the loopback address, protected by a token.
//!
//! The page simulates a path, with the simulator compiled to WebAssembly or, if this program was built without it,
//! with the server's own. It also shows files that running programs write. A second page diagnoses captures and pasted
//! text; it is also available as one file ([`diagnosis_page`]).
//!
//! ```
//! use sweetspot_ui::PageServer;
//!
//! let server = PageServer::start(0, Vec::new())?;
//! assert!(server.address().starts_with("http://127.0.0.1:"));
//! # Ok::<(), sweetspot_ui::UiError>(())
//! ```

mod assets;
mod auth;
mod diagnosis;
mod isolation;
mod routes;
mod server;
mod watched;

pub use auth::Token;
pub use diagnosis::diagnosis_page;
pub use server::{PageServer, UiError};

/// Whether this build has the page that diagnoses captures, which needs WebAssembly.
pub const HAS_DIAGNOSE_PAGE: bool = !assets::SIMULATOR.is_empty();
pub use watched::WatchedFile;
