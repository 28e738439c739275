use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;

use sweetspot_http::serve;
use thiserror::Error;

use crate::assets::SIMULATOR;
use crate::auth::Token;
use crate::routes::Page;
use crate::watched::WatchedFile;

/// The server; it runs until the program ends.
#[derive(Debug)]
pub struct PageServer {
    address: String,
}

/// Why the server cannot start.
#[derive(Debug, Error)]
pub enum UiError {
    /// The port is in use or forbidden.
    #[error("cannot listen at 127.0.0.1:{port}: {}; choose another --port, or leave it out", .error.kind())]
    Listen {
        /// The requested port.
        port: u16,
        /// The kernel's reason.
        error: io::Error,
    },
    /// The kernel gave no random bytes.
    #[error("no randomness for the address: {0}")]
    Token(#[from] getrandom::Error),
}

impl PageServer {
    /// Serves the page at this port of the loopback address, or at any free port if `port` is 0. The
    /// page shows the files in `watched`.
    pub fn start(port: u16, watched: Vec<WatchedFile>) -> Result<PageServer, UiError> {
        let blame = |error| UiError::Listen { port, error };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(blame)?;
        let port = listener.local_addr().map_err(blame)?.port();
        let token = Token::new()?;
        let address = format!("http://127.0.0.1:{port}/{token}/");
        let page = Arc::new(Page { token, port, watched, running: ().into() });
        serve("ui", listener, page).map_err(blame)?;
        Ok(PageServer { address })
    }

    /// Whether this server runs the simulations, because the program was built without WebAssembly.
    pub fn simulates(&self) -> bool {
        SIMULATOR.is_empty()
    }

    /// The page's address with its token.
    pub fn address(&self) -> &str {
        &self.address
    }
}
