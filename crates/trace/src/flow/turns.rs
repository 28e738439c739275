use sweetspot_units::{Duration, Time};

use super::accounts::Hold;

/// If neither side sends for this long, the pause lies between two transfers and not within one.
const BETWEEN: Duration = Duration::from_secs(5);

/// The end that sent last. In request-response traffic the other end's turn follows.
#[derive(Debug, Default)]
pub struct Turns {
    last: Option<(usize, Time)>,
}

impl Turns {
    /// Side `sender` sends data at `now`. Returns the state of each side until then, for sides without data in
    /// flight.
    pub fn handle_data(&mut self, sender: usize, now: Time) -> [Hold; 2] {
        let before = self.last.replace((sender, now));
        [0, 1].map(|side| match before {
            Some((_, then)) if now.since(then) >= BETWEEN => Hold::Quiet,
            // Both sides waited for the first data, and the speaker had to send them.
            None if side == sender => Hold::Idle,
            Some(_) if side == sender => Hold::Idle,
            None | Some(_) => Hold::Waiting,
        })
    }

    /// When the other side last sent data, if that was after `side` did.
    pub fn requested_at(&self, side: usize) -> Option<Time> {
        self.last.filter(|(last, _)| *last != side).map(|(_, at)| at)
    }

    /// Whether the other side sent the last data, so that `side` now answers.
    pub fn answers(&self, side: usize) -> bool {
        self.last.is_some_and(|(last, _)| last != side)
    }
}
