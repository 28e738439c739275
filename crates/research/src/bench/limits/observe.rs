use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use sweetspot_diagnose::live::Sample;
use sweetspot_emulator::Side;
use sweetspot_linux::clock;
use sweetspot_linux::diag::{Detail, Diag, DiagConnection};
use sweetspot_units::Duration;

use sweetspot_watch::{NamespaceConnections, sample};

/// Interval between two samples, as in `diagnose`.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(100);

/// The end of the connection to sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watched {
    /// The end that connects to the port.
    Opener,
    /// The end that accepts on that port.
    Opened,
}

/// Samples a side's only connection from outside.
pub struct KernelObserver {
    finished: Arc<AtomicBool>,
    thread: JoinHandle<Result<Vec<Sample>, String>>,
}

impl KernelObserver {
    /// Starts sampling the given `end` of the connection to `port`.
    pub fn start(side: &Side, end: Watched, port: u16) -> io::Result<KernelObserver> {
        let mut host = NamespaceConnections::of(side.run(Diag::open)??);
        let finished = Arc::new(AtomicBool::new(false));
        let finished_seen = finished.clone();
        let life = move || {
            let mut samples = Vec::new();
            while !finished_seen.load(Ordering::Acquire) {
                let seen = host.read(Detail::ALL).map_err(|e| e.to_string())?;
                let now = clock::now();
                let is_it = |c: &&DiagConnection| match end {
                    Watched::Opener => c.remote.port() == port,
                    Watched::Opened => c.local.port() == port,
                };
                if let Some(sample) = seen.iter().find(is_it).and_then(|c| sample(c, now)) {
                    samples.push(sample);
                }
                clock::sleep_until(now + SAMPLE_INTERVAL);
            }
            Ok(samples)
        };
        Ok(KernelObserver {
            finished,
            thread: thread::Builder::new().name("observe".into()).spawn(life)?,
        })
    }

    /// Stops sampling; returns the kernel's counters in chronological order.
    pub fn finish(self) -> Result<Vec<Sample>, String> {
        self.finished.store(true, Ordering::Release);
        self.thread.join().map_err(|_| "the observer panicked".to_owned())?
    }
}
