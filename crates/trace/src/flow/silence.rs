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

/// Unanswered repetitions from which on the peer counts as silent: one is any loss's.
const SILENT: u64 = 2;
/// The first timeout lasts a second at least where nothing is known better, and the second twice as long (RFC 6298
/// §2.1, §5.5).
const TWO_TIMEOUTS: Duration = Duration::from_secs(3);

/// Whether `repeats` retransmissions without an answer in the time `lasted` show that the peer was silent. A capture far from
/// the sender and behind a path that was down shows only the last of them, and not before two timeouts have passed. One
/// `at_sender` shows all of them: a single one that is answered ends a wait for the sender's own timer.
pub fn is_silent(repeats: u64, lasted: Duration, at_sender: bool) -> bool {
    repeats >= SILENT || (repeats > 0 && !at_sender && lasted >= TWO_TIMEOUTS)
}

/// Waits for the sender's retransmission timer, each before a retransmission that was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TimerWaits {
    /// How many.
    pub count: u64,
    /// How long they lasted, all together.
    pub time: Duration,
    /// The longest.
    pub longest: Duration,
    /// The longest time from such a retransmission to its answer.
    pub answer: Duration,
}

impl TimerWaits {
    fn add(&mut self, wait: Duration, answer: Duration) {
        self.count += 1;
        self.time += wait;
        self.longest = self.longest.max(wait);
        self.answer = self.answer.max(answer);
    }
}

/// Follows whether the peer answers.
#[derive(Debug, Default)]
pub struct Silences {
    since: Option<Time>,
    repeats: u64,
    /// The latest retransmission by the sender's timer, and how long nothing had passed before it.
    timed_out: Option<(Time, Duration)>,
    waits: TimerWaits,
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

    /// The sender's retransmission timer ran out at `now`, after a `pause` in which nothing passed.
    pub fn timed_out(&mut self, now: Time, pause: Duration) {
        self.repeated(now);
        self.timed_out = Some((now, pause));
    }

    /// How often it was repeated without an answer.
    pub fn repeats(&self) -> u64 {
        self.repeats
    }

    /// The peer moved on; `outstanding` says whether more waits for an answer. The capture may be `at_sender`.
    pub fn answered(&mut self, now: Time, outstanding: bool, at_sender: bool) {
        let lasted = self.since.map_or(Duration::ZERO, |since| now.since(since));
        match self.timed_out.take() {
            Some((again, pause)) if at_sender && !is_silent(self.repeats, lasted, at_sender) => {
                self.waits.add(pause, now.since(again));
                self.repeats = 0;
            }
            _ => self.close(now, true),
        }
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

    /// The waits for the sender's retransmission timer, seen at the sender, that no silence of the peer explains.
    pub fn timer_waits(&self) -> TimerWaits {
        self.waits
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
