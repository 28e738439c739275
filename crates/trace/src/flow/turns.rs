use sweetspot_units::{Duration, Time};

use super::accounts::Hold;

/// A pause of both sides this long lies between two transfers and not within one.
const BETWEEN: Duration = Duration::from_secs(5);

/// The end that sent last: in request-response traffic it is then the other end's turn.
#[derive(Debug, Default)]
pub struct Turns {
    last: Option<(usize, Time)>,
}

impl Turns {
    /// Side `speaker` sends data at `now`. Returns what each side, having nothing under way, was
    /// doing until then.
    pub fn spoken(&mut self, speaker: usize, now: Time) -> [Hold; 2] {
        let before = self.last.replace((speaker, now));
        [0, 1].map(|side| match before {
            Some((_, then)) if now.since(then) >= BETWEEN => Hold::Quiet,
            // Both waited for the first word, which was the speaker's.
            None if side == speaker => Hold::Idle,
            Some(_) if side == speaker => Hold::Idle,
            None | Some(_) => Hold::Waiting,
        })
    }

    /// When the other side last spoke, if it did after `side`.
    pub fn asked(&self, side: usize) -> Option<Time> {
        self.last.filter(|(last, _)| *last != side).map(|(_, at)| at)
    }

    /// Whether it was the other side that spoke last before `side` does now.
    pub fn answers(&self, side: usize) -> bool {
        self.last.is_some_and(|(last, _)| last != side)
    }
}
