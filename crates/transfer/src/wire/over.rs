//! The end of a transfer, for threads that poll it and threads that wait for it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crossbeam_channel::{Receiver, Sender};
use sweetspot_units::Duration;

use crate::lock::lock;

pub(crate) struct Over {
    is_set: AtomicBool,
    /// Dropped at the end, which disconnects `ended`.
    end: Mutex<Option<Sender<()>>>,
    ended: Receiver<()>,
}

impl Default for Over {
    fn default() -> Over {
        let (end, ended) = crossbeam_channel::bounded(0);
        Over { is_set: AtomicBool::new(false), end: Mutex::new(Some(end)), ended }
    }
}

impl Over {
    /// Marks it as over and wakes the waiting threads.
    pub fn set(&self) {
        self.is_set.store(true, Ordering::Release);
        *lock(&self.end) = None;
    }

    pub fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }

    /// Waits until it is over, for `patience` at most.
    pub fn wait(&self, patience: Duration) {
        let _ = self.ended.recv_timeout(patience.into());
    }

    /// Is disconnected when it is over, and never brings anything.
    pub fn ended(&self) -> &Receiver<()> {
        &self.ended
    }
}
