use std::io::{self, Read};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use sweetspot_system::clock;
use sweetspot_units::{Duration, Time};
use thiserror::Error;

use crate::assets::SIMULATOR;
use crate::auth::Token;
use crate::connections::{Connections, Place};
use crate::http::{self, MAX_BODY_BYTES, MAX_HEAD_BYTES, ParsedRequest, Request, Response};
use crate::routes::Site;
use crate::watched::WatchedFile;

/// The server; it runs until the program ends.
#[derive(Debug)]
pub struct PageServer {
    address: String,
}

/// Why the server cannot start.
#[derive(Debug, Error)]
pub enum UiError {
    /// The port is in use, or forbidden.
    #[error("cannot listen at 127.0.0.1:{port}: {error}; choose another --port, or leave it out")]
    Listen {
        /// The port asked for.
        port: u16,
        /// The kernel's reason.
        error: io::Error,
    },
    /// The kernel gave no random bytes.
    #[error("no randomness for the address: {0}")]
    Token(#[from] getrandom::Error),
}

/// Time within which a client must send its request, and read the response.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(5);

impl PageServer {
    /// Serves the page at this port of the loopback address; 0: any that is free. `watched` are the
    /// files that it shows.
    pub fn start(port: u16, watched: Vec<WatchedFile>) -> Result<PageServer, UiError> {
        let blame = |error| UiError::Listen { port, error };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(blame)?;
        let port = listener.local_addr().map_err(blame)?.port();
        let token = Token::new()?;
        let address = format!("http://127.0.0.1:{port}/{token}/");
        let site = Arc::new(Site { token, port, watched, playing: ().into() });
        let accept = move || listen(&listener, &site);
        thread::Builder::new().name("ui".to_owned()).spawn(accept).map_err(blame)?;
        Ok(PageServer { address })
    }

    /// Whether this server simulates for the page, because the program was built without WebAssembly.
    pub fn simulates(&self) -> bool {
        SIMULATOR.is_empty()
    }

    /// The page's address with its token.
    pub fn address(&self) -> &str {
        &self.address
    }
}

fn listen(listener: &TcpListener, site: &Arc<Site>) {
    let connections = Arc::<Connections>::default();
    for stream in listener.incoming() {
        let entered = stream.and_then(|stream| Ok((connections.enter(&stream)?, stream)));
        let Ok((place, stream)) = entered else {
            // No descriptors left: wait until some connection ends.
            clock::sleep_until(clock::now() + Duration::from_millis(50));
            continue;
        };
        let site = Arc::clone(site);
        // A thread that cannot be had drops the connection, and its place.
        let _ = thread::Builder::new().name("ui connection".to_owned()).spawn(move || {
            // A client may close its connection before it has read the response.
            let _ = serve(stream, &site, &place);
        });
    }
}

fn serve(mut stream: TcpStream, site: &Site, place: &Place) -> io::Result<()> {
    let due = clock::now() + CLIENT_TIMEOUT;
    let (response, with_body) = match receive(&mut stream, due)? {
        Ok(request) => {
            if site.admits(&request) {
                place.keep();
            }
            (site.answer(&request), request.method != "HEAD")
        }
        Err(refusal) => (refusal, true),
    };
    stream.set_write_timeout(Some(CLIENT_TIMEOUT.into()))?;
    response.write(&mut stream, with_body)?;
    // Closing with something unread would reset the connection before the answer is read.
    stream.shutdown(std::net::Shutdown::Write)?;
    let due = clock::now() + CLIENT_TIMEOUT;
    let mut rest = [0; 4096];
    let mut drained = 0;
    while drained < MAX_BODY_BYTES + MAX_HEAD_BYTES {
        let read = read_by(&mut stream, &mut rest, due)?;
        if read == 0 {
            break;
        }
        drained += read;
    }
    Ok(())
}

/// A request, or the error response to send instead. An error means that the client is gone.
fn receive(stream: &mut TcpStream, due: Time) -> io::Result<Result<Request, Response>> {
    let mut bytes = Vec::new();
    let mut some = [0; 4096];
    loop {
        match http::parse(&bytes) {
            Ok(ParsedRequest::Whole(request)) => return Ok(Ok(request)),
            Ok(ParsedRequest::Partial) => {}
            Err(bad) => return Ok(Err(Response::refusal(bad.code(), &bad.to_string()))),
        }
        match read_by(stream, &mut some, due) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => bytes.extend_from_slice(&some[..read]),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                return Ok(Err(Response::refusal(408, "this took too long")));
            }
            Err(error) => return Err(error),
        }
    }
}

/// Reads until `due` at the latest, however slowly bytes drip in.
fn read_by(stream: &mut TcpStream, into: &mut [u8], due: Time) -> io::Result<usize> {
    let left = due.since(clock::now());
    if left == Duration::ZERO {
        return Err(io::ErrorKind::TimedOut.into());
    }
    stream.set_read_timeout(Some(left.into()))?;
    stream.read(into).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
        _ => error,
    })
}
