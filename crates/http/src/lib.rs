//! The part of HTTP/1.1 (RFC 9112) that the local page and the metrics need: one request per connection, with a content
//! length, within limits.
//!
//! ```
//! use std::net::TcpListener;
//! use std::sync::Arc;
//!
//! use sweetspot_http::{BadRequest, Request, Response, Site, serve};
//!
//! struct Greeting;
//!
//! impl Site for Greeting {
//!     fn answer(&self, request: Result<&Request, BadRequest>) -> Response {
//!         match request {
//!             Ok(_) => Response::ok("text/plain", "hello\n"),
//!             Err(bad) => Response::refusal(bad.code(), &bad.to_string()),
//!         }
//!     }
//!
//!     fn admits(&self, _: &Request) -> bool {
//!         false
//!     }
//! }
//!
//! serve("greeting", TcpListener::bind("127.0.0.1:0")?, Arc::new(Greeting))?;
//! # Ok::<(), std::io::Error>(())
//! ```

mod connections;
mod request;
mod response;
mod server;

pub use request::{BadRequest, Request};
pub use response::Response;
pub use server::{Site, serve};
