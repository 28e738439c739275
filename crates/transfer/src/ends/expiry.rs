//! The expiry of a server's only ticket or code.

use std::sync::atomic::{AtomicBool, Ordering};

use sweetspot_linux::clock;
use sweetspot_units::Time;

use crate::TransferError;

pub(crate) struct Expiry {
    /// Wall-clock time, as in the ticket.
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

    /// The time of the next check. `Time::MAX` once the expiry is announced: from then on the end of each
    /// connection checks it.
    pub fn due(&self) -> Time {
        match self.announced.load(Ordering::Acquire) {
            true => Time::MAX,
            false => clock::now() + self.at.since(clock::wall()),
        }
    }

    /// Announces once that running transfers continue.
    pub fn announce(&self, send_message: impl FnOnce(String)) {
        if !self.announced.swap(true, Ordering::AcqRel) {
            send_message(format!(
                "the {} has expired: running transfers continue; nobody else is admitted",
                self.what
            ));
        }
    }

    /// The error of a server that no peer can use any more.
    pub fn error(&self) -> TransferError {
        TransferError::TicketExpired(self.what)
    }
}
