//! A queue of entries between the thread that reads them and the thread that answers them.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};

use sweetspot_protocol::record::{Entry, EntryKind};

use crate::limits::{MAX_QUEUED_BYTES, attribute_bytes};
use crate::lock::lock;
use crate::{Result, TransferError};

/// Unanswered entries, in order. Beyond [`MAX_QUEUED_BYTES`], `push` waits: this end stops reading from a sender that
/// does not read its answers.
#[derive(Default)]
pub(crate) struct EntryQueue {
    queued: Mutex<Queued>,
    changed: Condvar,
}

#[derive(Default)]
struct Queued {
    lists: VecDeque<(u32, Vec<Entry>)>,
    bytes: usize,
    /// No more entries will be added.
    closed: bool,
    /// No more entries are wanted.
    abandoned: bool,
}

impl EntryQueue {
    /// Adds the entries from number `first` on. Waits until there is space.
    pub fn push(&self, first: u32, entries: Vec<Entry>) -> Result<()> {
        let mut queued = lock(&self.queued);
        while queued.bytes >= MAX_QUEUED_BYTES && !queued.abandoned {
            queued = self.changed.wait(queued).unwrap_or_else(PoisonError::into_inner);
        }
        if queued.abandoned {
            return Err(TransferError::Interrupted);
        }
        queued.bytes += entries.iter().map(weight).sum::<usize>();
        queued.lists.push_back((first, entries));
        self.changed.notify_all();
        Ok(())
    }

    /// The next entries. Waits until there are some; `None` if no more will come.
    pub fn next(&self) -> Option<(u32, Vec<Entry>)> {
        let mut queued = lock(&self.queued);
        while queued.lists.is_empty() && !queued.closed && !queued.abandoned {
            queued = self.changed.wait(queued).unwrap_or_else(PoisonError::into_inner);
        }
        if queued.abandoned {
            return None;
        }
        let next = queued.lists.pop_front()?;
        queued.bytes -= next.1.iter().map(weight).sum::<usize>();
        self.changed.notify_all();
        Some(next)
    }

    /// Notes that no more entries will be added.
    pub fn close(&self) {
        lock(&self.queued).closed = true;
        self.changed.notify_all();
    }

    /// Ends all waiting, because the transfer is over.
    pub fn abandon(&self) {
        lock(&self.queued).abandoned = true;
        self.changed.notify_all();
    }
}

/// The memory that an entry occupies, bytes.
fn weight(entry: &Entry) -> usize {
    let link = match &entry.kind {
        EntryKind::Symlink { target } => target.len(),
        _ => 0,
    };
    let owner = entry.owner.as_ref();
    let names = owner.map_or(0, |owner| {
        size_of_val(&**owner) + owner.user_name.raw().len() + owner.group_name.raw().len()
    });
    let own = size_of::<Entry>() + entry.path.as_bytes().len();
    own + link + names + attribute_bytes(&entry.attributes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;
    use sweetspot_protocol::RelativePath;

    fn list(attribute: usize) -> Vec<Entry> {
        vec![Entry {
            path: RelativePath::new("f").unwrap(),
            kind: EntryKind::Stream,
            mode: 0,
            modified: (0, 0),
            owner: None,
            attributes: vec![(Vec::new(), vec![0; attribute])],
        }]
    }

    /// Adds a hundred lists of one megabyte and removes none: the queue accepts its limit and one more list.
    #[test]
    fn a_full_entry_queue_blocks_the_sender() {
        const LIST: usize = 1_000_000;
        let (queue, added) = (EntryQueue::default(), AtomicUsize::new(0));
        thread::scope(|scope| {
            let add = scope.spawn(|| {
                (0..100).try_for_each(|first| {
                    queue.push(first, list(LIST)).map(|()| added.fetch_add(1, Ordering::AcqRel))?;
                    Ok::<(), TransferError>(())
                })
            });
            // Each removed list makes space for one more. All arrive in order.
            for expected in 0..50 {
                assert_eq!(queue.next().unwrap().0, expected);
                assert!(lock(&queue.queued).bytes < MAX_QUEUED_BYTES + LIST + 1000);
            }
            queue.abandon();
            assert!(
                add.join().unwrap().is_err(),
                "a sender does not wait for a transfer that is over"
            );
        });
        let max = 50 + MAX_QUEUED_BYTES / LIST + 1;
        assert!((50..=max).contains(&added.into_inner()));
        assert!(queue.next().is_none());
    }

    #[test]
    fn entries_queued_before_the_end_are_still_processed() {
        let queue = EntryQueue::default();
        queue.push(0, list(1)).unwrap();
        queue.close();
        assert!(queue.next().is_some());
        assert!(queue.next().is_none());
    }
}
