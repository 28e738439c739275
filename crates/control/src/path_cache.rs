use std::collections::BTreeMap;

use sweetspot_sizing::PATH_LIFETIME;
use sweetspot_units::Time;

/// The maximum number of paths; the oldest one is dropped first.
const MAX_CACHED_PATHS: usize = 256;

/// The parameters learnt on paths without a connection, keyed by the paths' ends `K` (RFC 9040, "temporal sharing"). An entry
/// lasts five minutes.
pub struct PathCache<K, V> {
    paths: BTreeMap<K, (Time, V)>,
}

impl<K: Ord + Copy, V> Default for PathCache<K, V> {
    fn default() -> PathCache<K, V> {
        PathCache { paths: BTreeMap::new() }
    }
}

impl<K: Ord + Copy, V> PathCache<K, V> {
    /// Stores the parameters of a path that lost its last connection at `now`.
    pub fn keep(&mut self, now: Time, ends: K, learnt: V) {
        self.paths.retain(|_, (since, _)| now.since(*since) < PATH_LIFETIME);
        self.paths.insert(ends, (now, learnt));
        if self.paths.len() > MAX_CACHED_PATHS {
            let oldest = self.paths.iter().min_by_key(|(_, (since, _))| *since);
            if let Some(ends) = oldest.map(|(ends, _)| *ends) {
                self.paths.remove(&ends);
            }
        }
    }

    /// Removes and returns the parameters of a path that is used again at `now`. For an unknown path, returns the latest
    /// parameters of a path with `near` ends.
    pub fn recall(&mut self, now: Time, ends: &K, near: impl Fn(&K) -> bool) -> Option<V> {
        let newest = || {
            let near = self.paths.iter().filter(|(ends, _)| near(ends));
            near.max_by_key(|(_, (since, _))| *since).map(|(ends, _)| *ends)
        };
        let known = if self.paths.contains_key(ends) { Some(*ends) } else { newest() };
        let (since, learnt) = self.paths.remove(&known?)?;
        (now.since(since) < PATH_LIFETIME).then_some(learnt)
    }
}

#[cfg(test)]
mod tests {
    use sweetspot_units::Duration;

    use super::*;

    fn at(seconds: u64) -> Time {
        Time::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn entries_expire_after_five_minutes() {
        let mut path_cache = PathCache::default();
        path_cache.keep(at(0), 1, "fast");
        assert_eq!(path_cache.recall(at(299), &1, |_| false), Some("fast"));
        // The path is in use, so it has no entry.
        assert_eq!(path_cache.recall(at(299), &1, |_| false), None);
        path_cache.keep(at(300), 1, "fast");
        assert_eq!(path_cache.recall(at(600), &1, |_| false), None);
    }

    #[test]
    fn an_unknown_path_recalls_the_latest_nearby_entry() {
        let mut path_cache = PathCache::default();
        for path in [10, 12, 11, 20] {
            path_cache.keep(at(path % 10), path, path);
        }
        let mut recall =
            |ends: u64| path_cache.recall(at(5), &ends, |other| other / 10 == ends / 10);
        assert_eq!(recall(11), Some(11));
        assert_eq!(recall(15), Some(12));
        assert_eq!(recall(15), Some(10));
        assert_eq!(recall(15), None);
    }

    #[test]
    fn the_cache_is_bounded_and_evicts_the_oldest_path() {
        let mut path_cache = PathCache::default();
        for path in 0..=256 {
            path_cache.keep(at(0) + Duration::from_millis(path), path, ());
        }
        // After 257 paths, the oldest is gone.
        assert_eq!(path_cache.recall(at(1), &0, |_| false), None);
        assert_eq!(
            (1..=256).filter(|path| path_cache.recall(at(1), path, |_| false).is_some()).count(),
            256
        );
    }
}
