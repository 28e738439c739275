use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks `mutex` even if its holder panicked: the data is consistent even then, or the connection
/// ends.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
