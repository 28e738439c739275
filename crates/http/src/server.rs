use std::io::{self, Read};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use sweetspot_system::clock;
use sweetspot_units::{Duration, Time};

use crate::connections::{Connections, Place};
use crate::request::{self, BadRequest, MAX_BODY_BYTES, MAX_HEAD_BYTES, ParsedRequest, Request};
use crate::response::Response;

/// The content of a server.
pub trait Site: Send + Sync + 'static {
    /// The response to a request, or to an invalid one.
    fn answer(&self, request: Result<&Request, BadRequest>) -> Response;

    /// Whether the client of `request` keeps its place, however many others connect.
    fn admits(&self, request: &Request) -> bool;
}

/// Time limit for a client to send its request and to read the response.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(5);

/// Serves `site` in threads called `name` until the program ends.
///
/// # Errors
/// If no thread can be created.
pub fn serve(name: &'static str, listener: TcpListener, site: Arc<impl Site>) -> io::Result<()> {
    let accept = move || accept(name, &listener, &site);
    thread::Builder::new().name(name.to_owned()).spawn(accept).map(drop)
}

fn accept(name: &str, listener: &TcpListener, site: &Arc<impl Site>) {
    let connections = Arc::<Connections>::default();
    for stream in listener.incoming() {
        let entered = stream.and_then(|stream| Ok((connections.enter(&stream)?, stream)));
        let Ok((place, stream)) = entered else {
            // No descriptors are left: wait for some connection to end.
            clock::sleep_until(clock::now() + Duration::from_millis(50));
            continue;
        };
        let site = Arc::clone(site);
        // If no thread can be created, this drops the connection and its place.
        let _ = thread::Builder::new().name(name.to_owned()).spawn(move || {
            // A client may disconnect before it has read the response.
            let _ = respond(stream, &*site, &place);
        });
    }
}

fn respond(mut stream: TcpStream, site: &impl Site, place: &Place) -> io::Result<()> {
    let due = clock::now() + CLIENT_TIMEOUT;
    let request = receive(&mut stream, due)?;
    if request.as_ref().is_ok_and(|request| site.admits(request)) {
        place.keep();
    }
    let response = site.answer(request.as_ref().map_err(|bad| *bad));
    let is_head = request.is_ok_and(|request| request.method == "HEAD");
    stream.set_write_timeout(Some(CLIENT_TIMEOUT.into()))?;
    response.write(&mut stream, !is_head)?;
    // Closing the socket with unread data would reset the connection before the client reads the
    // answer.
    stream.shutdown(Shutdown::Write)?;
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

/// The request, or the reason why it is invalid. An error means that the client has disconnected.
fn receive(stream: &mut TcpStream, due: Time) -> io::Result<Result<Request, BadRequest>> {
    let mut bytes = Vec::new();
    let mut some = [0; 4096];
    loop {
        match request::parse(&bytes) {
            Ok(ParsedRequest::Whole(request)) => return Ok(Ok(request)),
            Ok(ParsedRequest::Partial) => {}
            Err(bad) => return Ok(Err(bad)),
        }
        match read_by(stream, &mut some, due) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => bytes.extend_from_slice(&some[..read]),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                return Ok(Err(BadRequest::TooSlow));
            }
            Err(error) => return Err(error),
        }
    }
}

/// Reads until `due`, even if the client sends single bytes slowly.
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
