//! The expiry of the only ticket or code of a server.

use std::sync::atomic::{AtomicBool, Ordering};

use sweetspot_linux::clock;
use sweetspot_units::Time;

use crate::TransferError;

pub(crate) struct Expiry {
    /// By the wall clock, as in the ticket.
    at: Time,
    what: &'static str,
    announced: AtomicBool,
}

impl Expiry {
    pub fn new(at: Time, is_code: bool) -> Expiry {
        let what = if is_code { "code" } else { "ticket" };
        Expiry { at, what, announced: AtomicBool::new(false) }
    }

    pub fn has_passed(&self) -> bool {
        clock::wall() >= self.at
    }

    /// When to check it next: never again once it is announced, because the end of each connection checks it then.
    pub fn due(&self) -> Time {
        match self.announced.load(Ordering::Acquire) {
            true => Time::MAX,
            false => clock::now() + self.at.since(clock::wall()),
        }
    }

    /// Says once that running transfers go on.
    pub fn announce(&self, say: impl FnOnce(String)) {
        if !self.announced.swap(true, Ordering::AcqRel) {
            say(format!(
                "the {} has expired: running transfers go on, and nobody else is admitted",
                self.what
            ));
        }
    }

    /// The end of a server that nobody can use any more.
    pub fn error(&self) -> TransferError {
        TransferError::TicketExpired(self.what)
    }
}
