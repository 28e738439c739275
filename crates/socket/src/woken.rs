use std::collections::{BTreeSet, VecDeque};

use sweetspot_linux::live::{ActivityWatch, OwnSocket};
use sweetspot_units::{Duration, Time};

/// Minimum interval between queries of the kernel.
const INTERVAL: Duration = Duration::from_millis(10);
/// Maximum number of sockets sampled after one query.
const MAX_SAMPLED: usize = 25;
/// Time reserved for each of these samples: at most 500 per second, even if many sockets receive a byte now and then.
const SAMPLE_TIME: Duration = Duration::from_millis(2);

/// Resting sockets with activity reported by the kernel. The first data is noticed at once even if very many sockets
/// rest.
pub(crate) struct Woken {
    /// `None` if the kernel or the program prevents it; sockets are then only sampled in turn.
    watch: Option<ActivityWatch>,
    /// Sockets without a report so far. The first report is only that they are writable, as they were before.
    new: BTreeSet<u64>,
    /// Sockets to be sampled.
    waiting: VecDeque<u64>,
    next: Time,
}

impl Woken {
    pub fn new() -> Woken {
        let watch = ActivityWatch::new().ok();
        Woken { watch, new: BTreeSet::new(), waiting: VecDeque::new(), next: Time::ZERO }
    }

    /// Whether the kernel reports activity.
    pub fn is_watching(&self) -> bool {
        self.watch.is_some()
    }

    /// Adds a socket that begins to rest.
    pub fn add(&mut self, socket: &OwnSocket) {
        let Some(watch) = &self.watch else { return };
        match watch.add(socket.fd(), socket.cookie()) {
            Ok(()) => {
                self.new.insert(socket.cookie());
            }
            // A limit of the kernel, or the program closed the watch's descriptor.
            Err(_) => self.watch = None,
        }
    }

    /// Removes a socket that no longer rests.
    pub fn remove(&mut self, socket: &OwnSocket) {
        self.new.remove(&socket.cookie());
        if let Some(watch) = &self.watch {
            watch.remove(socket.fd());
        }
    }

    /// The sockets to sample now. One may not be resting any more, if a child of fork(2) has it open.
    pub fn poll(&mut self, now: Time) -> Vec<u64> {
        if self.next > now {
            return Vec::new();
        }
        // The kernel keeps the other reports, one for each socket.
        if self.waiting.len() < MAX_SAMPLED {
            self.take();
        }
        let sampled = self.waiting.len().min(MAX_SAMPLED);
        self.next = now + INTERVAL.max(SAMPLE_TIME * sampled as u64);
        self.waiting.drain(..sampled).collect()
    }

    fn take(&mut self) {
        let Some(watch) = &self.watch else { return };
        let mut events = Vec::new();
        if watch.take(&mut events).is_err() {
            self.watch = None;
        }
        for events in events {
            // A report that a socket is writable matters only if it was not writable before.
            if !self.new.remove(&events.number) || events.readable || events.closed {
                self.waiting.push_back(events.number);
            }
        }
    }
}
