use sweetspot_units::{Duration, Time};

/// The cause of a retransmission, as far as the capture shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ResentKind {
    /// Three duplicate acknowledgements, or selective ones to the same effect (RFC 5681, RFC 6675).
    Fast,
    /// Fewer: selective acknowledgements and time (RACK, RFC 8985).
    Selective,
    /// The tail once more, to provoke an answer (TLP, RFC 8985 §7).
    Probe,
    /// The retransmission timer (RFC 6298).
    Timeout,
    /// It had been acknowledged already.
    Needless,
}

/// Retransmitted segments as captured, by cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Resent {
    /// After duplicate or selective acknowledgements.
    pub fast: u64,
    /// By time, with some selective acknowledgements.
    pub selective: u64,
    /// Tail probes.
    pub probes: u64,
    /// After a timeout.
    pub timeout: u64,
    /// Acknowledged before they were sent again.
    pub needless: u64,
    /// Duplicates that the receiver reported (DSACK, RFC 2883): these too were needless.
    pub reported_needless: u64,
    /// Separate events: everything lost in a round trip is one.
    pub events: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
}

impl Resent {
    /// All segments sent again.
    pub fn segments(&self) -> u64 {
        self.fast + self.selective + self.probes + self.timeout + self.needless
    }

    fn of(&mut self, kind: ResentKind) -> &mut u64 {
        match kind {
            ResentKind::Fast => &mut self.fast,
            ResentKind::Selective => &mut self.selective,
            ResentKind::Probe => &mut self.probes,
            ResentKind::Timeout => &mut self.timeout,
            ResentKind::Needless => &mut self.needless,
        }
    }
}

/// The least retransmission timeout in use: Linux has 200 ms above the smoothed round trip, the
/// RFC a second.
/// Less a tick of a clock of 100 Hz.
const LEAST_TIMEOUT: Duration = Duration::from_millis(190);

/// Loss state: evidence from the receiver, and the current recovery.
#[derive(Debug, Default)]
pub struct Losses {
    duplicates: u32,
    /// The highest byte acknowledged selectively.
    sacked: u64,
    recovery: Option<Recovery>,
    last_loss: Option<Time>,
    /// The counts.
    pub resent: Resent,
}

#[derive(Debug, Clone, Copy)]
struct Recovery {
    /// The highest byte sent when it began; recovery ends once that is acknowledged (RFC 6675 §4).
    point: u64,
    kind: ResentKind,
}

/// A retransmitted segment, and the sender's knowledge.
#[derive(Debug, Clone, Copy)]
pub struct Again {
    pub now: Time,
    pub end: u64,
    /// All that was sent.
    pub next: u64,
    /// All that was acknowledged.
    pub una: u64,
    pub mss: u64,
    /// Since data was last sent or acknowledged.
    pub pause: Duration,
    /// The round trip, or zero where it is unknown.
    pub rtt: Duration,
}

impl Again {
    /// Whether only a timer can have ended the silence before.
    pub fn is_timed_out(&self) -> bool {
        self.pause >= LEAST_TIMEOUT.max(self.rtt)
    }
}

impl Losses {
    /// Whether the receiver reported a hole above `una`.
    pub fn has_evidence(&self, una: u64) -> bool {
        self.duplicates > 0 || self.sacked > una
    }

    /// An acknowledgement reached the sender: whether it was a duplicate, its SACK blocks, whether it reported a duplicate.
    pub fn heard(&mut self, una: u64, advanced: bool, duplicate: bool, sacked: u64, dsack: bool) {
        if advanced {
            self.duplicates = 0;
            if self.recovery.is_some_and(|r| una >= r.point) {
                self.recovery = None;
            }
        }
        self.duplicates = self.duplicates.saturating_add(duplicate.into());
        self.sacked = self.sacked.max(sacked);
        self.resent.reported_needless += u64::from(dsack);
    }

    /// Names and counts a segment sent again.
    pub fn sent_again(&mut self, again: &Again) -> ResentKind {
        let kind = self.kind(again);
        *self.resent.of(kind) += 1;
        if matches!(kind, ResentKind::Needless | ResentKind::Probe) {
            return kind;
        }
        let timed_out = kind == ResentKind::Timeout && again.pause >= LEAST_TIMEOUT;
        self.resent.timeouts += u64::from(timed_out);
        // If data sent since recovery began are also lost, that is another event (RFC 6675 §5).
        let another = self.recovery.is_none_or(|recovery| again.end > recovery.point);
        if another || timed_out {
            self.resent.events += u64::from(another);
            self.recovery = Some(Recovery { point: again.next, kind });
        }
        self.last_loss = Some(again.now);
        kind
    }

    fn kind(&self, again: &Again) -> ResentKind {
        if again.end <= again.una {
            return ResentKind::Needless;
        }
        let evidence = self.has_evidence(again.una);
        // A pause in which neither data nor acknowledgement passed ends with a timer.
        let timer = again.is_timed_out();
        match self.recovery {
            Some(recovery) if !timer => recovery.kind,
            _ if timer => ResentKind::Timeout,
            _ if self.duplicates >= 3 || self.sacked >= again.una + 3 * again.mss => {
                ResentKind::Fast
            }
            _ if evidence => ResentKind::Selective,
            _ if again.end == again.next => ResentKind::Probe,
            _ => ResentKind::Selective,
        }
    }

    /// Whether a loss is being repaired.
    pub fn in_recovery(&self) -> bool {
        self.recovery.is_some()
    }

    /// When something was last sent again because it was lost.
    pub fn last_loss(&self) -> Option<Time> {
        self.last_loss
    }
}
