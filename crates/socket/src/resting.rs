use std::collections::VecDeque;

use sweetspot_units::{Duration, Time};

use crate::member::Member;

/// A socket on which nothing moves.
pub(crate) struct Resting {
    pub since: Time,
    pub member: Member,
}

/// Resting sockets in the order of their next look.
#[derive(Default)]
pub(crate) struct RestingQueue {
    cookies: VecDeque<u64>,
    next_look: Time,
}

impl RestingQueue {
    /// Puts a socket last.
    pub fn push(&mut self, now: Time, cookie: u64) {
        if self.cookies.is_empty() {
            self.next_look = now;
        }
        self.cookies.push_back(cookie);
    }

    /// When to look next; `None`: there are no sockets.
    pub fn due(&self) -> Option<Time> {
        (!self.cookies.is_empty()).then_some(self.next_look)
    }

    /// The sockets to look at now; the others wait for their turn.
    pub fn take(&mut self, now: Time, (interval, most): (Duration, usize)) -> Vec<u64> {
        if self.due().is_none_or(|due| due > now) {
            return Vec::new();
        }
        self.next_look = now + interval;
        self.cookies.drain(..self.cookies.len().min(most)).collect()
    }
}
