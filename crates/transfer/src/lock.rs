use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks `mutex` even if a holder panicked: here the data is consistent then, or the connection ends.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
