//! Waits briefly for the previous transfer, which may be about to end.

use sweetspot_linux::clock;

use crate::limits::{TURN_INTERVAL, TURN_TIMEOUT};

/// Calls `ask` again while `waiting` returns true for its answer, at most for [`TURN_TIMEOUT`].
/// Returns the last answer.
pub(crate) fn ask<T>(mut ask: impl FnMut() -> T, waiting: impl Fn(&T) -> bool) -> T {
    let patience = clock::now() + TURN_TIMEOUT;
    loop {
        let answer = ask();
        if !waiting(&answer) || clock::now() >= patience {
            return answer;
        }
        clock::sleep_until(clock::now() + TURN_INTERVAL);
    }
}
