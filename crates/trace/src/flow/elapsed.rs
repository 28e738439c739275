use sweetspot_units::{Duration, Time};

/// The maximum number of intervals. Beyond it, later time only extends the last interval.
const PIECES: usize = 4096;

/// A total of time and, if recorded, its intervals.
#[derive(Debug, Clone, Default)]
pub struct Elapsed {
    time: Duration,
    /// The intervals, in order of time.
    pieces: Vec<(Time, Time)>,
}

impl Elapsed {
    /// The time from `from` to `to`, with its interval if `recorded`.
    pub fn between(from: Time, to: Time, recorded: bool) -> Elapsed {
        let mut elapsed = Elapsed::default();
        elapsed.add(from, to, recorded);
        elapsed
    }

    /// Adds the time from `from` to `to`, which is later than everything before.
    pub fn add(&mut self, from: Time, to: Time, recorded: bool) {
        let time = to.since(from);
        if time == Duration::ZERO {
            return;
        }
        self.time += time;
        if recorded {
            self.push(from, to);
        }
    }

    /// Appends `later`, which is later than everything before.
    pub fn extend(&mut self, later: Elapsed) {
        self.time += later.time;
        later.pieces.into_iter().for_each(|(from, to)| self.push(from, to));
    }

    /// Splits off the last `time`, or everything if there is less.
    pub fn split_last(&mut self, time: Duration) -> Elapsed {
        let time = time.min(self.time);
        self.time = self.time.saturating_sub(time);
        let (mut pieces, mut missing) = (Vec::new(), time);
        while missing > Duration::ZERO
            && let Some((from, to)) = self.pieces.pop()
        {
            let split = from + to.since(from).saturating_sub(missing);
            if split > from {
                self.pieces.push((from, split));
            }
            missing = missing.saturating_sub(to.since(split));
            pieces.push((split, to));
        }
        pieces.reverse();
        Elapsed { time, pieces }
    }

    /// The total length.
    pub fn time(&self) -> Duration {
        self.time
    }

    /// The intervals in order of time; empty unless recorded.
    pub fn pieces(&self) -> &[(Time, Time)] {
        &self.pieces
    }

    fn push(&mut self, from: Time, to: Time) {
        let full = self.pieces.len() >= PIECES;
        match self.pieces.last_mut() {
            Some((_, last)) if full || *last == from => *last += to.since(from),
            _ => self.pieces.push((from, to)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn split_last_starts_where_the_remainder_ends() {
        let mut elapsed = Elapsed::between(at(0), at(2), true);
        elapsed.add(at(2), at(3), true);
        elapsed.add(at(5), at(9), true);
        assert_eq!(elapsed.pieces(), [(at(0), at(3)), (at(5), at(9))]);
        // The last five of seven seconds: four seconds after the gap, and one before it.
        let last = elapsed.split_last(Duration::from_secs(5));
        assert_eq!(last.pieces(), [(at(2), at(3)), (at(5), at(9))]);
        assert_eq!(elapsed.pieces(), [(at(0), at(2))]);
        assert_eq!([last.time(), elapsed.time()], [5, 2].map(Duration::from_secs));
    }

    #[test]
    fn split_last_returns_at_most_the_elapsed_time() {
        let mut elapsed = Elapsed::between(at(1), at(2), false);
        assert_eq!(elapsed.split_last(Duration::from_secs(9)).time(), Duration::from_secs(1));
        assert_eq!(elapsed.time(), Duration::ZERO);
        assert_eq!(elapsed.pieces(), []);
    }

    #[test]
    fn the_pieces_are_bounded_and_cover_all_elapsed_time() {
        let mut elapsed = Elapsed::default();
        (0..20_000).for_each(|n| elapsed.add(at(2 * n), at(2 * n + 1), true));
        assert_eq!(elapsed.pieces().len(), PIECES);
        let sum: u64 = elapsed.pieces().iter().map(|(from, to)| to.since(*from).as_nanos()).sum();
        assert_eq!(Duration::from_nanos(sum), Duration::from_secs(20_000));
        assert_eq!(elapsed.time(), Duration::from_secs(20_000));
    }
}
