use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

/// Threads that share a list of independent jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workers(NonZeroUsize);

impl Workers {
    /// All jobs on the calling thread.
    pub const ONE: Workers = Workers(NonZeroUsize::MIN);

    /// `count` threads; zero counts as one.
    pub fn new(count: usize) -> Workers {
        Workers(NonZeroUsize::new(count).unwrap_or(NonZeroUsize::MIN))
    }

    /// One thread per core that this process may use.
    pub fn per_core() -> Workers {
        Workers::new(std::thread::available_parallelism().map_or(1, NonZeroUsize::get))
    }

    /// Number of threads.
    pub fn count(self) -> usize {
        self.0.get()
    }

    /// Calls `job` for each item. The results are in the order of the items.
    pub fn map<T, R>(self, items: &[T], job: impl Fn(&T) -> R + Sync) -> Vec<R>
    where
        T: Sync,
        R: Send,
    {
        if self.count() == 1 || items.len() < 2 {
            return items.iter().map(job).collect();
        }
        let next = AtomicUsize::new(0);
        let (sender, receiver) = mpsc::channel();
        std::thread::scope(|scope| {
            for _ in 0..self.count().min(items.len()) {
                let (next, job, sender) = (&next, &job, sender.clone());
                scope.spawn(move || {
                    // Each thread takes the next item when it is free, so that long jobs do not
                    // delay short ones.
                    while let index = next.fetch_add(1, Ordering::Relaxed)
                        && let Some(item) = items.get(index)
                    {
                        if sender.send((index, job(item))).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        drop(sender);
        let mut results: Vec<(usize, R)> = receiver.into_iter().collect();
        results.sort_by_key(|(index, _)| *index);
        results.into_iter().map(|(_, result)| result).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_the_order_of_the_items_for_any_number_of_workers() {
        let items: Vec<u64> = (0..100).collect();
        // Later items finish first.
        let job = |n: &u64| (0..(100 - n) * 1000).fold(*n, |sum, i| sum ^ (i * n));
        let alone = Workers::ONE.map(&items, job);
        for count in [0, 2, 3, 8, 200] {
            assert_eq!(Workers::new(count).map(&items, job), alone, "{count} workers");
        }
    }
}
