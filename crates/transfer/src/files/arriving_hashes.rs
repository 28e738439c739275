//! The receiver's hashes of its part of a file, from the connection to the thread that reads the file.

use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::vec;

use sweetspot_protocol::ProtocolError;
use sweetspot_protocol::hash_tree::PieceHash;

use crate::limits::MAX_WAITING_HASHES;
use crate::lock::lock;

/// Hashes that arrived and were not used yet, over all files of a transfer.
#[derive(Debug, Default)]
pub(crate) struct HashBudget {
    state: Mutex<Waiting>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    hashes: usize,
    over: bool,
}

/// Hashes that count until they are dropped.
struct Charged {
    hashes: vec::IntoIter<PieceHash>,
    counted: usize,
    budget: Arc<HashBudget>,
}

/// The end at the connection. Only the hashes of the file that was answered last may come.
pub(crate) struct ArrivingHashes {
    entry: u32,
    next: u32,
    pieces: u32,
    /// `None` once the file needs them no more.
    out: Option<mpsc::Sender<Charged>>,
}

/// The end at the reader.
pub(crate) struct KnownHashes {
    arriving: mpsc::Receiver<Charged>,
    current: Option<Charged>,
    /// Announced hashes that are not used yet.
    left: u32,
}

impl HashBudget {
    /// Waits until there is room for `hashes`; `None` if the transfer is over. Hashes that wait here belong to files before
    /// this one, so readers reach them.
    fn charge(self: &Arc<HashBudget>, hashes: Vec<PieceHash>) -> Option<Charged> {
        let counted = hashes.len();
        let mut state = lock(&self.state);
        while state.hashes > 0 && state.hashes + counted > MAX_WAITING_HASHES && !state.over {
            state = self.freed.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        if state.over {
            return None;
        }
        state.hashes += counted;
        Some(Charged { hashes: hashes.into_iter(), counted, budget: Arc::clone(self) })
    }

    pub fn end(&self) {
        lock(&self.state).over = true;
        self.freed.notify_all();
    }
}

impl Drop for Charged {
    fn drop(&mut self) {
        lock(&self.budget.state).hashes -= self.counted;
        self.budget.freed.notify_all();
    }
}

impl ArrivingHashes {
    /// Both ends for an entry; the receiver has `pieces` pieces of it.
    pub fn new(entry: u32, pieces: u32) -> (ArrivingHashes, KnownHashes) {
        let (out, arriving) = mpsc::channel();
        let known = KnownHashes { arriving, current: None, left: pieces };
        (ArrivingHashes { entry, next: 0, pieces, out: Some(out) }, known)
    }

    /// Hashes came: the next of this entry, and no more than were announced. May wait until earlier ones were used.
    pub fn handle(
        &mut self,
        budget: &Arc<HashBudget>,
        (entry, first): (u32, u32),
        hashes: Vec<PieceHash>,
    ) -> Result<(), ProtocolError> {
        let count = u32::try_from(hashes.len()).unwrap_or(u32::MAX);
        let end = first.checked_add(count).filter(|end| *end <= self.pieces);
        if entry != self.entry || first != self.next || count == 0 {
            let (what, when) = ("hashes", "out of order");
            return Err(ProtocolError::OutOfOrder { what, when });
        }
        let (what, when) = ("more hashes", "than it announced");
        self.next = end.ok_or(ProtocolError::OutOfOrder { what, when })?;
        if let Some(out) = &self.out
            && let Some(charged) = budget.charge(hashes)
        {
            // A file that is done needs them no more.
            let _ = out.send(charged);
        }
        Ok(())
    }

    /// No thread waits for more of them if they are this entry's.
    pub fn give_up(&mut self, entry: u32) {
        if self.entry == entry {
            self.out = None;
        }
    }
}

impl KnownHashes {
    /// The receiver's hash of the next piece, waiting for it if need be; `None` if it has none.
    pub fn next(&mut self) -> Option<PieceHash> {
        self.left = self.left.checked_sub(1)?;
        loop {
            if let Some(hash) = self.current.as_mut().and_then(|current| current.hashes.next()) {
                return Some(hash);
            }
            self.current = None;
            self.current = Some(self.arriving.recv().ok()?);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashes(count: usize) -> Vec<PieceHash> {
        (0..count).map(|n| [n as u8; 32]).collect()
    }

    #[test]
    fn hashes_come_in_order_and_none_beyond_those_announced() {
        let budget = Arc::default();
        let (mut arriving, mut known) = ArrivingHashes::new(7, 5);
        assert!(arriving.handle(&budget, (6, 0), hashes(1)).is_err(), "of another entry");
        assert!(arriving.handle(&budget, (7, 1), hashes(1)).is_err(), "not the first");
        assert!(arriving.handle(&budget, (7, 0), hashes(0)).is_err(), "none, for ever");
        assert!(arriving.handle(&budget, (7, 0), hashes(6)).is_err(), "more than announced");
        arriving.handle(&budget, (7, 0), hashes(3)).unwrap();
        arriving.handle(&budget, (7, 3), hashes(2)).unwrap();
        assert!(arriving.handle(&budget, (7, 5), hashes(1)).is_err());
        assert!(arriving.handle(&budget, (7, u32::MAX), hashes(2)).is_err());
        // The end is known although more could still come.
        let all: Vec<_> = std::iter::from_fn(|| known.next()).map(|hash| hash[0]).collect();
        assert_eq!(all, [0, 1, 2, 0, 1]);
    }

    #[test]
    fn nobody_waits_for_hashes_of_a_file_that_was_given_up() {
        let budget = Arc::default();
        let (mut arriving, mut known) = ArrivingHashes::new(7, 5);
        arriving.give_up(6);
        arriving.handle(&budget, (7, 0), hashes(1)).unwrap();
        arriving.give_up(7);
        arriving.handle(&budget, (7, 1), hashes(1)).unwrap();
        assert_eq!((known.next(), known.next()), (Some([0; 32]), None));
    }

    /// The budget is full with one hash more than fits, so the next waits until a reader has used, or dropped, some.
    #[test]
    fn what_waits_is_bounded_and_what_is_dropped_makes_room() {
        let budget: Arc<HashBudget> = Arc::default();
        let pieces = MAX_WAITING_HASHES as u32;
        let (mut first, known) = ArrivingHashes::new(0, pieces);
        first.handle(&budget, (0, 0), hashes(MAX_WAITING_HASHES)).unwrap();
        let (mut second, mut after) = ArrivingHashes::new(1, 1);
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| second.handle(&budget, (1, 0), hashes(1)));
            assert!(after.arriving.try_recv().is_err());
            drop(known);
            waits.join().unwrap().unwrap();
        });
        assert_eq!(lock(&budget.state).hashes, 1);
        assert_eq!(after.next(), Some([0; 32]));
        budget.end();
        let (mut third, mut last) = ArrivingHashes::new(2, pieces);
        third.handle(&budget, (2, 0), hashes(1)).unwrap();
        drop(third);
        assert_eq!(last.next(), None, "after the end nothing is kept");
    }
}
