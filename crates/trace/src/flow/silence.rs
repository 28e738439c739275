use sweetspot_units::{Duration, Time};

/// A time in which the peer did not answer repeated retransmissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Silence {
    /// The time of the peer's last answer, or of the first unanswered data.
    pub since: Time,
    /// The duration.
    pub lasted: Duration,
    /// Number of retransmissions meanwhile.
    pub repeats: u64,
    /// Whether an answer came in the end.
    pub ended: bool,
    /// Whether the retransmitted data had been acknowledged at the capture point: the acknowledgement was lost beyond it.
    pub beyond: bool,
}

/// Number of unanswered retransmissions from which on the peer counts as silent: a single one follows any loss.
const SILENT: u64 = 2;
/// Two timeouts in a row: the initial RTO is a second, and the next one twice as long (RFC 6298 §2.1, §5.5).
const TWO_TIMEOUTS: Duration = Duration::from_secs(3);

/// Whether `repeats` retransmissions without an answer in the time `lasted` show that the peer was silent. A capture behind a
/// path that was down shows only the last retransmission, after at least two timeouts. A capture `at_sender` shows all of them:
/// a single one that is answered ends a wait for the sender's own timer.
pub fn is_silent(repeats: u64, lasted: Duration, at_sender: bool) -> bool {
    repeats >= SILENT || (repeats > 0 && !at_sender && lasted >= TWO_TIMEOUTS)
}

/// Waits for the sender's retransmission timer, each before a retransmission that was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TimerWaits {
    /// Number of waits.
    pub count: u64,
    /// Their total duration.
    pub time: Duration,
    /// The longest wait.
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

/// Tracks whether the peer answers.
#[derive(Debug, Default)]
pub struct Silences {
    since: Option<Time>,
    repeats: u64,
    /// The latest retransmission by the sender's timer, and the pause before it.
    timed_out: Option<(Time, Duration)>,
    waits: TimerWaits,
    /// The number of retransmissions of acknowledged data since new data were last sent.
    spurious: u64,
    longest: Option<Silence>,
}

impl Silences {
    /// New data was sent: the wait for an answer starts now.
    pub fn sent_data(&mut self, now: Time) {
        self.spurious = 0;
        self.since.get_or_insert(now);
    }

    /// Data was retransmitted because no answer came. A probe of a closed window counts, too.
    pub fn repeated(&mut self, now: Time) {
        self.since.get_or_insert(now);
        self.repeats += 1;
    }

    /// The sender's retransmission timer expired at `now`, after a `pause` in which nothing passed.
    pub fn timed_out(&mut self, now: Time, pause: Duration) {
        self.repeated(now);
        self.timed_out = Some((now, pause));
    }

    /// Number of retransmissions without an answer.
    pub fn repeats(&self) -> u64 {
        self.repeats
    }

    /// The peer made progress. `outstanding`: more data waits for an answer. `at_sender`: the capture is at the sender.
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

    /// The capture has ended.
    pub fn end(&mut self, now: Time) {
        self.close(now, false);
        self.since = None;
    }

    /// Data was acknowledged at `since`, and retransmitted at `now`.
    pub fn beyond(&mut self, since: Time, now: Time) {
        self.spurious += 1;
        let (lasted, repeats) = (now.since(since), self.spurious);
        self.note(Silence { since, lasted, repeats, ended: true, beyond: true });
    }

    /// Whether the captured acknowledgements do not reach the sender: it repeatedly retransmitted acknowledged data, and has
    /// sent nothing new since.
    pub fn is_missing_acks(&self) -> bool {
        self.spurious >= 2
    }

    /// The waits for the sender's retransmission timer, captured at the sender, except those in silences of the peer.
    pub fn timer_waits(&self) -> TimerWaits {
        self.waits
    }

    /// The longest silence with retransmissions.
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
