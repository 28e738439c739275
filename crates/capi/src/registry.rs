//! The attached sockets by number. The number also identifies the process, because a child cannot use its
//! parent's locks.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use sweetspot_linux::live::fork_generation;
use sweetspot_socket::SizedSocket;

use crate::codes::{SWEETSPOT_ERROR_FORKED, SWEETSPOT_ERROR_NOT_ATTACHED, SWEETSPOT_ERROR_SYSTEM};

/// The low bits of a number count sockets, the high bits forks.
const FORK_SHIFT: u32 = 48;
/// The maximum number of forks between this process and the one that first attached a socket.
const MAX_FORKS: usize = 64;

static SOCKETS: [Mutex<BTreeMap<i64, SizedSocket>>; MAX_FORKS] =
    [const { Mutex::new(BTreeMap::new()) }; MAX_FORKS];
static NEXT: AtomicI64 = AtomicI64::new(1);

/// A number that has never been used.
pub fn next() -> Result<i64, i32> {
    let generation = generation()?;
    Ok(generation << FORK_SHIFT | NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Stores a socket under its number.
pub fn insert(number: i64, socket: SizedSocket) {
    if let Ok(mut sockets) = sockets(number) {
        sockets.insert(number, socket);
    }
}

/// Removes a socket.
pub fn remove(number: i64) -> Result<SizedSocket, i32> {
    sockets(number)?.remove(&number).ok_or(SWEETSPOT_ERROR_NOT_ATTACHED)
}

/// Calls `operation` with a socket.
pub fn with<T>(number: i64, operation: impl FnOnce(&SizedSocket) -> T) -> Result<T, i32> {
    sockets(number)?.get(&number).map(operation).ok_or(SWEETSPOT_ERROR_NOT_ATTACHED)
}

fn generation() -> Result<i64, i32> {
    fork_generation().map(i64::from).map_err(|_| SWEETSPOT_ERROR_SYSTEM)
}

/// This process's sockets; an error if the number belongs to another process.
fn sockets(number: i64) -> Result<MutexGuard<'static, BTreeMap<i64, SizedSocket>>, i32> {
    if number <= 0 {
        return Err(SWEETSPOT_ERROR_NOT_ATTACHED);
    }
    let (of, here) = (number >> FORK_SHIFT, generation()?);
    if of != here {
        // A number from a process that is not an ancestor was never issued.
        return Err(if of < here { SWEETSPOT_ERROR_FORKED } else { SWEETSPOT_ERROR_NOT_ATTACHED });
    }
    let sockets = usize::try_from(here).ok().and_then(|here| SOCKETS.get(here));
    let sockets = sockets.ok_or(SWEETSPOT_ERROR_FORKED)?;
    Ok(sockets.lock().unwrap_or_else(PoisonError::into_inner))
}
