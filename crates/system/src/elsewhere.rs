use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Instant;

use sweetspot_units::{Duration, Time};

/// The time since this process first called it.
#[allow(clippy::disallowed_methods, reason = "the one clock of programs outside Linux")]
pub fn now() -> Time {
    static START: OnceLock<Instant> = OnceLock::new();
    let passed = START.get_or_init(Instant::now).elapsed();
    Time::from_nanos(u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX))
}

/// Sleeps until `due` on the clock of [`now`]. Returns at once if that has passed.
#[allow(clippy::disallowed_methods, reason = "the one sleep of programs outside Linux")]
pub fn sleep_until(due: Time) {
    thread::sleep(due.since(now()).into());
}

/// Replaces or creates the file at `path`. If the program ends early, the file has either the old or the new
/// content.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?.to_string_lossy();
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let unfinished = path.with_file_name(format!(".{name}.{}.{number}.part", std::process::id()));
    let mut file = File::create_new(&unfinished)?;
    let written = file.write_all(content).and_then(|()| file.sync_all());
    let placed = written.and_then(|()| fs::rename(&unfinished, path));
    if placed.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    placed
}

/// Maximum length of a single sleep.
const LONG: Duration = Duration::from_secs(3600);

/// Does not block signals: outside Linux Ctrl-C ends the program at once, and leaves its output incomplete.
#[derive(Debug)]
pub struct Interruption(());

impl Interruption {
    /// Has no effect.
    pub fn hold() -> io::Result<Interruption> {
        Ok(Interruption(()))
    }

    /// Waits until `due`, or for an hour. Never returns a signal.
    pub fn wait_until(&mut self, due: Time) -> io::Result<Option<u8>> {
        sleep_until(due.min(now() + LONG));
        Ok(None)
    }

    /// As [`Interruption::wait_until`].
    pub fn wait_patiently_until(&mut self, due: Time) -> io::Result<Option<u8>> {
        self.wait_until(due)
    }
}
