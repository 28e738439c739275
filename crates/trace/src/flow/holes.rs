use sweetspot_units::Time;

/// The maximum number of holes. Beyond it, the oldest hole counts as filled.
const MAX: usize = 256;

/// The gaps in a stream: bytes that the capture has not seen yet.
#[derive(Debug, Default)]
pub struct Holes {
    holes: Vec<Hole>,
}

#[derive(Debug, Clone, Copy)]
struct Hole {
    start: u64,
    end: u64,
    since: Time,
}

impl Holes {
    /// Opens a hole: the bytes from `start` to `end` were skipped.
    pub fn open(&mut self, start: u64, end: u64, now: Time) {
        if self.holes.len() == MAX {
            self.holes.remove(0);
        }
        self.holes.push(Hole { start, end, since: now });
    }

    /// Handles the bytes from `start` to `end`, which arrived after all. Returns since when they were missing, if
    /// they were.
    pub fn fill(&mut self, start: u64, end: u64) -> Option<Time> {
        let index = self.holes.iter().position(|h| h.start < end && start < h.end)?;
        let hole = self.holes.remove(index);
        let rests = [(hole.start, start), (end, hole.end)];
        for (at, (start, end)) in rests.into_iter().filter(|(s, e)| s < e).enumerate() {
            self.holes.insert(index + at, Hole { start, end, since: hole.since });
        }
        // Filling the middle of one of 256 holes leaves two.
        self.holes.truncate(MAX);
        Some(hole.since)
    }

    /// Closes all holes below `una`. Returns the number of bytes in them: they were acknowledged but never
    /// captured.
    pub fn close_below(&mut self, una: u64) -> u64 {
        let mut unseen = 0;
        self.holes.retain_mut(|hole| {
            let below = hole.end.min(una).saturating_sub(hole.start);
            unseen += below;
            hole.start += below;
            hole.start < hole.end
        });
        unseen
    }
}
