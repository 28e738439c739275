use std::sync::OnceLock;

use sweetspot_linux::live::fork_generation;
use sweetspot_linux::signals::without_signals;

use crate::error::AttachError;
use crate::pool::Pool;

/// Maximum number of forks between a process and the one that first attached a socket.
const MAX_FORKS: usize = 64;

/// The pool of this process. Its thread starts with the first socket. A child of fork(2) gets its own pool and thread,
/// because a thread that the child does not have may hold a lock.
pub(crate) fn of_process() -> Result<Pool, AttachError> {
    static POOLS: [OnceLock<Pool>; MAX_FORKS] = [const { OnceLock::new() }; MAX_FORKS];
    let system = |call| move |source| AttachError::System { call, source };
    let generation = fork_generation().map_err(system("pthread_atfork"))?;
    let place = POOLS.get(generation as usize).ok_or(AttachError::Forked)?;
    if let Some(pool) = place.get() {
        return Ok(pool.clone());
    }
    let pool = Pool::new()?;
    if place.set(pool.clone()).is_ok() {
        let serving = pool.clone();
        let thread = std::thread::Builder::new().name("sweetspot".to_owned());
        let start = || thread.spawn(move || serving.serve());
        without_signals(start).map_err(system("clone"))?;
    }
    Ok(place.get().unwrap_or(&pool).clone())
}
