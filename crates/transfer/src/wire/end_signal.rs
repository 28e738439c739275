//! The end of a transfer, for threads that poll for it or wait for it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crossbeam_channel::{Receiver, Sender};
use sweetspot_units::Duration;

use crate::lock::lock;

pub(crate) struct EndSignal {
    is_set: AtomicBool,
    /// Dropped at the end, which disconnects `ended`.
    end: Mutex<Option<Sender<()>>>,
    ended: Receiver<()>,
}

impl Default for EndSignal {
    fn default() -> EndSignal {
        let (end, ended) = crossbeam_channel::bounded(0);
        EndSignal { is_set: AtomicBool::new(false), end: Mutex::new(Some(end)), ended }
    }
}

impl EndSignal {
    /// Marks the transfer as over, and wakes all waiting threads.
    pub fn set(&self) {
        self.is_set.store(true, Ordering::Release);
        *lock(&self.end) = None;
    }

    pub fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }

    /// Waits until the transfer is over, at most for `patience`.
    pub fn wait(&self, patience: Duration) {
        let _ = self.ended.recv_timeout(patience.into());
    }

    /// A channel that is disconnected when the transfer is over, and never carries anything.
    pub fn ended(&self) -> &Receiver<()> {
        &self.ended
    }
}
