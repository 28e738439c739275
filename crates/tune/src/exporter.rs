use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::metrics::Snapshot;

/// Hands out metrics over HTTP, to this host only.
#[derive(Debug)]
pub struct Exporter {
    text: Arc<Mutex<String>>,
}

/// Who takes longer to ask is not answered: there is one thread.
const PATIENCE: Duration = Duration::from_secs(1);

impl Exporter {
    /// Listens at `address`, which must be a loopback one
    /// ([`policy::loopback`](crate::policy::loopback)).
    pub fn start(address: SocketAddr) -> io::Result<Exporter> {
        let listener = TcpListener::bind(address)?;
        let text = Arc::new(Mutex::new(Snapshot::default().prometheus()));
        let served = Arc::clone(&text);
        thread::Builder::new().name("metrics".to_owned()).spawn(move || {
            for stream in listener.incoming().flatten() {
                let text = served.lock().map_or_else(|e| e.into_inner().clone(), |t| t.clone());
                // Whoever goes away while being answered has had enough.
                let _ = answer(stream, &text);
            }
        })?;
        Ok(Exporter { text })
    }

    /// From now on this is handed out.
    pub fn publish(&self, snapshot: &Snapshot) {
        if let Ok(mut text) = self.text.lock() {
            *text = snapshot.prometheus();
        }
    }
}

/// Answers any request: there is one thing to be had. The request is read so that closing does
/// not reset the connection.
fn answer(mut stream: TcpStream, text: &str) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let _ = stream.read(&mut [0; 4096])?;
    let length = text.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_published_last_is_handed_out() {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let exporter = Exporter::start(free).unwrap();
        exporter.publish(&Snapshot { watched: 7, ..Snapshot::default() });
        let mut stream = TcpStream::connect(free).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"));
        assert!(answer.contains("\nsweetspot_connections_watched 7\n"));
    }
}
