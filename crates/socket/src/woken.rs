use std::collections::{BTreeSet, VecDeque};

use sweetspot_linux::live::{ActivityWatch, OwnSocket};
use sweetspot_units::{Duration, Time};

/// The minimum time between two questions to the kernel.
const INTERVAL: Duration = Duration::from_millis(10);
/// The maximum number of sockets sampled after one question.
const MAX_SAMPLED: usize = 25;
/// The time for each of these samples: 500 a second at most, however many sockets get a byte now and then.
const SAMPLE_TIME: Duration = Duration::from_millis(2);

/// Resting sockets on which something happened, as the kernel says, so that the first data are noticed at once however
/// many sockets rest.
pub(crate) struct Woken {
    /// `None`: the kernel or the program refuses, and sockets have their turns only.
    watch: Option<ActivityWatch>,
    /// Sockets that have told nothing yet. Their first news is room to write, which they had before.
    new: BTreeSet<u64>,
    /// Not looked at yet.
    waiting: VecDeque<u64>,
    next: Time,
}

impl Woken {
    pub fn new() -> Woken {
        let watch = ActivityWatch::new().ok();
        Woken { watch, new: BTreeSet::new(), waiting: VecDeque::new(), next: Time::ZERO }
    }

    /// Whether activity is noticed at all.
    pub fn is_watching(&self) -> bool {
        self.watch.is_some()
    }

    /// A socket begins to rest.
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

    /// A socket rests no more.
    pub fn remove(&mut self, socket: &OwnSocket) {
        self.new.remove(&socket.cookie());
        if let Some(watch) = &self.watch {
            watch.remove(socket.fd());
        }
    }

    /// Sockets to look at now. One that does not rest may be among them, if a child of fork(2) has it open.
    pub fn poll(&mut self, now: Time) -> Vec<u64> {
        if self.next > now {
            return Vec::new();
        }
        // The kernel keeps the rest, once for each socket.
        if self.waiting.len() < MAX_SAMPLED {
            self.take();
        }
        let sampled = self.waiting.len().min(MAX_SAMPLED);
        self.next = now + INTERVAL.max(SAMPLE_TIME * sampled as u64);
        self.waiting.drain(..sampled).collect()
    }

    fn take(&mut self) {
        let Some(watch) = &self.watch else { return };
        let mut news = Vec::new();
        if watch.take(&mut news).is_err() {
            self.watch = None;
        }
        for news in news {
            // Room to write is news only where there was none before.
            if !self.new.remove(&news.number) || news.readable || news.over {
                self.waiting.push_back(news.number);
            }
        }
    }
}
