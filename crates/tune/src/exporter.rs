use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

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
/// The time between two looks at waiting clients.
const ACCEPT_INTERVAL: Duration = Duration::from_millis(10);

impl Exporter {
    /// Listens at `address`, which must be a loopback one
    /// ([`loopback`](sweetspot_groups::policy::loopback)).
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

/// Clients that have connected and not sent their request, with their time limits.
#[derive(Debug, Default)]
struct WaitingClients(VecDeque<(TcpStream, Time)>);

impl WaitingClients {
    /// Accepts a client, if there is one, and answers those that sent a request.
    fn serve(&mut self, listener: &TcpListener, text: &Mutex<String>) -> io::Result<()> {
        listener.set_nonblocking(!self.0.is_empty())?;
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(true)?;
                self.0.push_back((stream, clock::now() + REQUEST_TIMEOUT));
                self.0.drain(..self.0.len().saturating_sub(MAX_WAITING_CLIENTS));
            }
            // Nobody, or no descriptor left for anybody: later.
            Err(_) => clock::sleep_until(clock::now() + ACCEPT_INTERVAL),
        }
        let now = clock::now();
        self.0.retain_mut(|(stream, until)| match stream.read(&mut [0; 4096]) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => now < *until,
            Err(_) | Ok(0) => false,
            Ok(_) => {
                let text = text.lock().map_or_else(|e| e.into_inner().clone(), |t| t.clone());
                // Whoever goes away while being answered has had enough.
                let _ = answer(stream, &text);
                false
            }
        });
        Ok(())
    }
}

/// Answers any request with `text`, which fits into a socket's buffer. The request was read, so that closing does not
/// reset the connection.
fn answer(stream: &mut TcpStream, text: &str) -> io::Result<()> {
    let length = text.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all((head + text).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_published_last_is_handed_out() {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let exporter = Exporter::start(free).unwrap();
        exporter.publish("watched 7\n".to_owned());
        let mut stream = TcpStream::connect(free).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"));
        assert!(answer.ends_with("\r\n\r\nwatched 7\n"));
    }

    #[test]
    fn who_connects_and_says_nothing_keeps_nobody_waiting() {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let exporter = Exporter::start(free).unwrap();
        exporter.publish("watched 0\n".to_owned());
        let silent: Vec<TcpStream> = (0..30).map(|_| TcpStream::connect(free).unwrap()).collect();
        let mut stream = TcpStream::connect(free).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.ends_with("\r\n\r\nwatched 0\n"));
        // They could still ask.
        for mut each in silent {
            each.set_nonblocking(true).unwrap();
            let heard = each.read(&mut [0]).map_err(|error| error.kind());
            assert_eq!(heard, Err(ErrorKind::WouldBlock));
        }
    }
}
