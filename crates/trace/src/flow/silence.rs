use sweetspot_units::{Duration, Time};

/// A time in which the peer answered none of the repeated retransmissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Silence {
    /// When the peer was last heard, or data first went unanswered.
    pub since: Time,
    /// How long it lasted.
    pub lasted: Duration,
    /// How often something was sent again meanwhile.
    pub repeats: u64,
    /// Whether an answer came after all.
    pub ended: bool,
    /// Whether the retransmitted data had been acknowledged at the capture point: the acknowledgement was lost beyond it.
    pub beyond: bool,
}

/// Follows whether the peer answers.
#[derive(Debug, Default)]
pub struct Silences {
    since: Option<Time>,
    repeats: u64,
    /// The number of retransmissions of acknowledged data since new data were last sent.
    unheard: u64,
    longest: Option<Silence>,
}

impl Silences {
    /// New data was sent: the wait for an answer starts now.
    pub fn asked(&mut self, now: Time) {
        self.unheard = 0;
        self.since.get_or_insert(now);
    }

    /// Something was sent again because no answer came; a probe of a closed window counts, too.
    pub fn repeated(&mut self, now: Time) {
        self.since.get_or_insert(now);
        self.repeats += 1;
    }

    /// How often it was repeated without an answer.
    pub fn repeats(&self) -> u64 {
        self.repeats
    }

    /// The peer moved on; `outstanding` says whether more waits for an answer.
    pub fn answered(&mut self, now: Time, outstanding: bool) {
        self.close(now, true);
        self.since = outstanding.then_some(now);
    }

    /// The capture is over.
    pub fn end(&mut self, now: Time) {
        self.close(now, false);
        self.since = None;
    }

    /// It was acknowledged at `since`, and at `now` sent again.
    pub fn beyond(&mut self, since: Time, now: Time) {
        self.unheard += 1;
        let (lasted, repeats) = (now.since(since), self.unheard);
        self.note(Silence { since, lasted, repeats, ended: true, beyond: true });
    }

    /// Whether the sender receives nothing of the captured acknowledgements: it repeatedly retransmitted acknowledged data, and
    /// sent nothing since.
    pub fn is_unheard(&self) -> bool {
        self.unheard >= 2
    }

    /// The longest in which something was repeated.
    pub fn longest(&self) -> Option<Silence> {
        self.longest
    }

    fn close(&mut self, now: Time, ended: bool) {
        let repeats = std::mem::take(&mut self.repeats);
        if let Some(since) = self.since.filter(|_| repeats > 0) {
            let lasted = now.since(since);
            self.note(Silence { since, lasted, repeats, ended, beyond: false });
        }
    }

    fn note(&mut self, silence: Silence) {
        if self.longest.is_none_or(|longest| longest.lasted < silence.lasted) {
            self.longest = Some(silence);
        }
    }
}
