use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sweetspot_control::policy::is_loopback_host;
use sweetspot_http::{BadRequest, Request, Response, Site, serve};

/// Serves metrics over HTTP, to this host only.
#[derive(Debug)]
pub struct Exporter {
    published: Arc<Published>,
}

impl Exporter {
    /// Listens at `address`, which must be a loopback address ([`loopback`](sweetspot_control::policy::loopback)).
    pub fn start(address: SocketAddr) -> io::Result<Exporter> {
        let published = Arc::<Published>::default();
        serve("metrics", TcpListener::bind(address)?, Arc::clone(&published))?;
        Ok(Exporter { published })
    }

    /// Serves `metrics`, in Prometheus's text format, from now on.
    pub fn publish(&self, metrics: String) {
        *self.published.lock() = metrics;
    }
}

/// The latest published metrics.
#[derive(Debug, Default)]
struct Published(Mutex<String>);

impl Site for Published {
    fn answer(&self, request: Result<&Request, BadRequest>) -> Response {
        match request {
            Err(bad) => Response::refusal(bad.code(), "expected an HTTP/1.1 request with a Host"),
            // The `Host` is a name that a web page made resolve to this host (DNS rebinding).
            Ok(request) if !is_loopback_host(&request.host) => Response::refusal(
                421,
                "metrics are for this host only: use 127.0.0.1 or localhost in the address",
            ),
            Ok(_) => Response::ok("text/plain; version=0.0.4", self.lock().clone()),
        }
    }

    fn admits(&self, _: &Request) -> bool {
        false
    }
}

impl Published {
    fn lock(&self) -> MutexGuard<'_, String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read, Write};
    use std::net::TcpStream;

    use super::*;

    fn served(metrics: &str) -> SocketAddr {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        Exporter::start(free).unwrap().publish(metrics.to_owned());
        free
    }

    fn query(at: SocketAddr, request: &str) -> String {
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
    fn the_exporter_serves_the_published_metrics() {
        let at = served("watched 7\n");
        let answer = query(at, &get(&at.to_string()));
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"));
        assert!(answer.ends_with("\r\n\r\nwatched 7\n"));
    }

    #[test]
    fn dns_rebinding_requests_get_no_metrics() {
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
            let answer = query(at, &request);
            assert_eq!(answer.split(' ').nth(1), Some(code), "{request:?}: {answer}");
            assert_eq!(answer.contains("secret"), code == "200", "{request:?}: {answer}");
        }
    }

    #[test]
    fn silent_clients_block_no_other_request() {
        let at = served("watched 0\n");
        let connect = |count: usize| -> Vec<TcpStream> {
            (0..count).map(|_| TcpStream::connect(at).unwrap()).collect()
        };
        let silent = connect(30);
        assert!(query(at, &get("localhost")).ends_with("\r\n\r\nwatched 0\n"));
        // Their connections are still open, so they could still send a request.
        for each in &silent {
            each.set_nonblocking(true).unwrap();
            let response = (&mut &*each).read(&mut [0]).map_err(|error| error.kind());
            assert_eq!(response, Err(ErrorKind::WouldBlock));
        }
        // More connections than the server keeps waiting. It drops the oldest, but the client ends stay connected.
        let crowd = connect(200);
        assert!(query(at, &get("localhost")).ends_with("\r\n\r\nwatched 0\n"));
        drop((silent, crowd));
    }
}
