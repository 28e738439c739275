use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use sweetspot_emulator::Side;
use sweetspot_linux::clock;
use sweetspot_units::{Duration, Time};

/// Small requests by another program on the same path, each with its response time.
pub struct Interactive {
    /// For each request, the time at which it was sent and the response time.
    pub answers: Vec<(Time, Duration)>,
}

/// Interval between two requests.
const QUESTION_INTERVAL: Duration = Duration::from_millis(20);

/// A longer response time means that the path has failed.
const ANSWER_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(5);

impl Interactive {
    /// Sends requests until `stop`.
    pub fn run(near: &Side, far: &Side, stop: &AtomicBool) -> Result<Interactive, String> {
        let listener = far
            .run(|| TcpListener::bind((far.address(), 0)))
            .and_then(|bound| bound)
            .map_err(|e| format!("the interactive flow: {e}"))?;
        let address = listener.local_addr().map_err(|e| e.to_string())?;
        thread::scope(|scope| {
            scope.spawn(move || answer(&listener));
            near.run(|| exchange(address, stop))
                .and_then(|requested| requested)
                .map_err(|e| format!("the interactive flow: {e}"))
        })
    }
}

fn answer(listener: &TcpListener) -> io::Result<()> {
    let (mut stream, _) = listener.accept()?;
    stream.set_nodelay(true)?;
    let mut question = [0; 64];
    while stream.read_exact(&mut question).is_ok() {
        stream.write_all(&question)?;
    }
    Ok(())
}

fn exchange(address: SocketAddr, stop: &AtomicBool) -> io::Result<Interactive> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    let mut answers = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let requested = clock::now();
        stream.write_all(&[0; 64])?;
        stream.read_exact(&mut [0; 64])?;
        answers.push((requested, clock::now().since(requested)));
        clock::sleep_until(requested + QUESTION_INTERVAL);
    }
    Ok(Interactive { answers })
}
