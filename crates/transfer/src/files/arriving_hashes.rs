//! Passes the receiver's hashes of the pieces it has from the connection's thread to the file's reader.

use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::vec;

use sweetspot_protocol::ProtocolError;
use sweetspot_protocol::hash_tree::PieceHash;

use crate::limits::MAX_WAITING_HASHES;
use crate::lock::lock;

/// Limits the hashes that have arrived and are unused, over all files of a transfer.
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

/// Hashes that count against the budget until they are dropped.
struct Charged {
    hashes: vec::IntoIter<PieceHash>,
    counted: usize,
    budget: Arc<HashBudget>,
}

/// The connection's end. Only hashes of the most recently answered file may arrive.
pub(crate) struct ArrivingHashes {
    entry: u32,
    next: u32,
    pieces: u32,
    /// `None` once the file's reader needs no more.
    out: Option<mpsc::Sender<Charged>>,
}

/// The reader's end.
pub(crate) struct KnownHashes {
    arriving: mpsc::Receiver<Charged>,
    current: Option<Charged>,
    /// Number of announced hashes that are still unused.
    left: u32,
}

impl HashBudget {
    /// Waits until the budget allows `hashes`; `None` if the transfer is over. The waiting hashes belong to earlier files,
    /// so readers will use them.
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
    /// Both ends for an entry. The receiver announced `pieces` hashes.
    pub fn new(entry: u32, pieces: u32) -> (ArrivingHashes, KnownHashes) {
        let (out, arriving) = mpsc::channel();
        let known = KnownHashes { arriving, current: None, left: pieces };
        (ArrivingHashes { entry, next: 0, pieces, out: Some(out) }, known)
    }

    /// Handles the entry's next hashes, at most as many as it announced. Waits while the budget is exhausted.
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
            // The file's reader may be done.
            let _ = out.send(charged);
        }
        Ok(())
    }

    /// Stops waiting for more hashes of `entry`.
    pub fn give_up(&mut self, entry: u32) {
        if self.entry == entry {
            self.out = None;
        }
    }
}

impl KnownHashes {
    /// The receiver's hash of the next piece, after waiting for it if necessary; `None` if the receiver does not have the
    /// piece.
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
    fn hashes_must_arrive_in_order_and_within_the_announced_count() {
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
        // The iterator ends although more hashes could still arrive.
        let all: Vec<_> = std::iter::from_fn(|| known.next()).map(|hash| hash[0]).collect();
        assert_eq!(all, [0, 1, 2, 0, 1]);
    }

    #[test]
    fn the_reader_stops_waiting_for_hashes_of_an_abandoned_file() {
        let budget = Arc::default();
        let (mut arriving, mut known) = ArrivingHashes::new(7, 5);
        arriving.give_up(6);
        arriving.handle(&budget, (7, 0), hashes(1)).unwrap();
        arriving.give_up(7);
        arriving.handle(&budget, (7, 1), hashes(1)).unwrap();
        assert_eq!((known.next(), known.next()), (Some([0; 32]), None));
    }

    /// A hash more than fits exhausts the budget, so the next one waits until a reader uses or drops some.
    #[test]
    fn waiting_hashes_are_bounded_and_dropped_ones_free_the_budget() {
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
