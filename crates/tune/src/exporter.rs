use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use sweetspot_control::policy::is_loopback_host;
use sweetspot_linux::clock;
use sweetspot_units::{Duration, Time};

/// Serves metrics over HTTP, to this host only.
#[derive(Debug)]
pub struct Exporter {
    text: Arc<Mutex<String>>,
}

/// A client must send its request within this time.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// The most clients that may wait. Beyond it the oldest are disconnected.
const MAX_WAITING_CLIENTS: usize = 64;
/// The longest request: a scraper's has a few hundred bytes.
const MAX_REQUEST_BYTES: usize = 8 << 10;
/// The most header fields of a request.
const MAX_HEADER_FIELDS: usize = 64;
/// The time between two looks at waiting clients.
const ACCEPT_INTERVAL: Duration = Duration::from_millis(10);

impl Exporter {
    /// Listens at `address`, which must be a loopback one
    /// ([`loopback`](sweetspot_control::policy::loopback)).
    pub fn start(address: SocketAddr) -> io::Result<Exporter> {
        let listener = TcpListener::bind(address)?;
        let text = Arc::<Mutex<String>>::default();
        let served = Arc::clone(&text);
        thread::Builder::new().name("metrics".to_owned()).spawn(move || {
            let mut waiting = WaitingClients::default();
            // A listener that cannot be set up any more is none.
            while waiting.serve(&listener, &served).is_ok() {}
        })?;
        Ok(Exporter { text })
    }

    /// Serves `metrics`, in Prometheus's text format, from now on.
    pub fn publish(&self, metrics: String) {
        if let Ok(mut text) = self.text.lock() {
            *text = metrics;
        }
    }
}

/// A client with an incomplete request.
#[derive(Debug)]
struct WaitingClient {
    stream: TcpStream,
    until: Time,
    request: Vec<u8>,
}

/// Clients that have connected and not sent their request, the oldest first.
#[derive(Debug, Default)]
struct WaitingClients(VecDeque<WaitingClient>);

impl WaitingClients {
    /// Accepts a client, if there is one, and answers those that sent a request.
    fn serve(&mut self, listener: &TcpListener, text: &Mutex<String>) -> io::Result<()> {
        listener.set_nonblocking(!self.0.is_empty())?;
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(true)?;
                let until = clock::now() + REQUEST_TIMEOUT;
                self.0.push_back(WaitingClient { stream, until, request: Vec::new() });
                self.0.drain(..self.0.len().saturating_sub(MAX_WAITING_CLIENTS));
            }
            // Nobody, or no descriptor left for anybody: later.
            Err(_) => clock::sleep_until(clock::now() + ACCEPT_INTERVAL),
        }
        let now = clock::now();
        self.0.retain_mut(|client| client.is_waiting(now, text));
        Ok(())
    }
}

impl WaitingClient {
    /// Reads what has arrived, and answers a complete request. Whether the client is to wait on.
    fn is_waiting(&mut self, now: Time, text: &Mutex<String>) -> bool {
        let mut some = [0; 4096];
        match self.stream.read(&mut some) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return now < self.until,
            Err(_) | Ok(0) => return false,
            Ok(read) => self.request.extend_from_slice(&some[..read]),
        }
        let Some(status) = status(&self.request) else { return now < self.until };
        let body = match status {
            Status::Ok => text.lock().map_or_else(|e| e.into_inner().clone(), |t| t.clone()),
            Status::BadRequest => "expected a request of HTTP/1.1 with a Host\n".to_owned(),
            Status::OtherHost => {
                "metrics are for this host only: use 127.0.0.1 or localhost in the address\n"
                    .to_owned()
            }
        };
        // A client that goes away while being answered gets no answer.
        let _ = answer(&mut self.stream, status, &body);
        false
    }
}

/// The answer to a request (RFC 9110, section 15).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Ok,
    BadRequest,
    /// Misdirected: a web page's own name was made to lead here (DNS rebinding).
    OtherHost,
}

/// The status for a request's bytes; `None` while they are not complete.
fn status(request: &[u8]) -> Option<Status> {
    let mut fields = [httparse::EMPTY_HEADER; MAX_HEADER_FIELDS];
    let mut head = httparse::Request::new(&mut fields);
    match head.parse(request) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) if request.len() <= MAX_REQUEST_BYTES => return None,
        _ => return Some(Status::BadRequest),
    }
    let mut hosts = head.headers.iter().filter(|field| field.name.eq_ignore_ascii_case("host"));
    let host = hosts.next().and_then(|field| std::str::from_utf8(field.value).ok());
    Some(match (host, hosts.next()) {
        (Some(host), None) if is_loopback_host(host.trim()) => Status::Ok,
        (Some(_), None) => Status::OtherHost,
        _ => Status::BadRequest,
    })
}

/// Sends `body`, which fits into a socket's buffer. The request was read, so that closing does not reset the connection.
fn answer(stream: &mut TcpStream, status: Status, body: &str) -> io::Result<()> {
    let (code, media_type) = match status {
        Status::Ok => ("200 OK", "text/plain; version=0.0.4"),
        Status::BadRequest => ("400 Bad Request", "text/plain"),
        Status::OtherHost => ("421 Misdirected Request", "text/plain"),
    };
    let head = format!(
        "HTTP/1.1 {code}\r\nContent-Type: {media_type}\r\nContent-Length: {}\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all((head + body).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(metrics: &str) -> SocketAddr {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        Exporter::start(free).unwrap().publish(metrics.to_owned());
        free
    }

    fn ask(at: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(at).unwrap();
        // In two pieces: a request is complete with its last byte.
        let (first, rest) = request.split_at(request.len() / 2);
        stream.write_all(first.as_bytes()).unwrap();
        stream.write_all(rest.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn get(host: &str) -> String {
        format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n")
    }

    #[test]
    fn what_was_published_last_is_handed_out() {
        let at = served("watched 7\n");
        let answer = ask(at, &get(&at.to_string()));
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"));
        assert!(answer.ends_with("\r\n\r\nwatched 7\n"));
    }

    #[test]
    fn a_web_page_whose_name_was_made_to_lead_here_gets_no_metrics() {
        let at = served("secret 7\n");
        for (request, code) in [
            (get("evil.example"), "421"),
            (get(&format!("evil.example:{}", at.port())), "421"),
            (get("127.0.0.1.evil.example"), "421"),
            ("GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n".to_owned(), "400"),
            ("GET / HTTP/1.1\r\n\r\n".to_owned(), "400"),
            ("\x16\x03\x01\x02\r\n\r\n".to_owned(), "400"),
            (get("localhost"), "200"),
        ] {
            let answer = ask(at, &request);
            assert_eq!(answer.split(' ').nth(1), Some(code), "{request:?}: {answer}");
            assert_eq!(answer.contains("secret"), code == "200", "{request:?}: {answer}");
        }
    }

    #[test]
    fn a_request_is_judged_once_it_is_complete_or_too_long() {
        let whole = get("localhost");
        for end in 0..whole.len() {
            assert_eq!(status(&whole.as_bytes()[..end]), None, "{end}");
        }
        assert_eq!(status(whole.as_bytes()), Some(Status::Ok));
        let endless = format!("GET /{}", "a".repeat(MAX_REQUEST_BYTES));
        assert_eq!(status(endless.as_bytes()), Some(Status::BadRequest));
    }

    #[test]
    fn who_connects_and_says_nothing_keeps_nobody_waiting() {
        let at = served("watched 0\n");
        let connect = |count: usize| -> Vec<TcpStream> {
            (0..count).map(|_| TcpStream::connect(at).unwrap()).collect()
        };
        let silent = connect(30);
        assert!(ask(at, &get("localhost")).ends_with("\r\n\r\nwatched 0\n"));
        // They could still ask.
        for each in &silent {
            each.set_nonblocking(true).unwrap();
            let heard = (&mut &*each).read(&mut [0]).map_err(|error| error.kind());
            assert_eq!(heard, Err(ErrorKind::WouldBlock));
        }
        // More than may wait: the oldest make room, and all of them stay connected at their end.
        let crowd = connect(3 * MAX_WAITING_CLIENTS);
        assert!(ask(at, &get("localhost")).ends_with("\r\n\r\nwatched 0\n"));
        drop((silent, crowd));
    }
}
