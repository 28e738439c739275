use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use sweetspot_diagnose::live::Live;
use sweetspot_emulator::Side;
use sweetspot_linux::clock;
use sweetspot_linux::diag::{Detail, Diag};
use sweetspot_units::Duration;

use sweetspot_watch::{NamespaceConnections, sample};

/// Interval between two samples, as in `diagnose`.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(100);

/// Samples the one connection of a side from outside.
pub struct KernelObserver {
    over: Arc<AtomicBool>,
    thread: JoinHandle<Result<Live, String>>,
}

impl KernelObserver {
    /// Starts sampling.
    pub fn start(side: &Side) -> io::Result<KernelObserver> {
        let mut host = NamespaceConnections::of(side.run(Diag::open)??);
        let over = Arc::new(AtomicBool::new(false));
        let over_seen = over.clone();
        let life = move || {
            let mut live = Live::default();
            while !over_seen.load(Ordering::Acquire) {
                let seen = host.read(Detail::ALL)?;
                let now = clock::now();
                if let Some(sample) = seen.first().and_then(|c| sample(c, now)) {
                    live.handle(sample);
                }
                clock::sleep_until(now + SAMPLE_INTERVAL);
            }
            Ok(live)
        };
        Ok(KernelObserver {
            over,
            thread: thread::Builder::new().name("observe".into()).spawn(life)?,
        })
    }

    /// Stops sampling.
    pub fn finish(self) -> Result<Live, String> {
        self.over.store(true, Ordering::Release);
        self.thread.join().map_err(|_| "the observer panicked".to_owned())?
    }
}
