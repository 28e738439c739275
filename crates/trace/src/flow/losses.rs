use sweetspot_units::{Duration, Time};

use super::accounts::Hold;

/// The cause of a retransmission, as far as the capture shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RetransmissionKind {
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
    /// The receiver dropped it, having taken back that part of its window (RFC 7323 §2.4).
    TakenBack,
}

/// Retransmitted segments as captured, by cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retransmissions {
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
    /// Dropped by the receiver, which had taken back the window that they were sent into.
    pub taken_back: u64,
    /// Duplicates that the receiver reported (DSACK, RFC 2883): these too were needless.
    pub reported_needless: u64,
    /// Separate events: everything lost in a round trip is one.
    pub events: u64,
    /// Events with a repair that began before any timeout.
    pub recoveries: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
}

impl Retransmissions {
    /// All segments sent again.
    pub fn segments(&self) -> u64 {
        self.fast + self.selective + self.probes + self.timeout + self.needless + self.taken_back
    }

    /// How often the congestion window answered to losses: in fast recoveries and at timeouts.
    pub fn loss_events(&self) -> u64 {
        self.recoveries + self.timeouts
    }

    fn of(&mut self, kind: RetransmissionKind) -> &mut u64 {
        match kind {
            RetransmissionKind::Fast => &mut self.fast,
            RetransmissionKind::Selective => &mut self.selective,
            RetransmissionKind::Probe => &mut self.probes,
            RetransmissionKind::Timeout => &mut self.timeout,
            RetransmissionKind::Needless => &mut self.needless,
            RetransmissionKind::TakenBack => &mut self.taken_back,
        }
    }
}

/// The minimum retransmission timeout in use: Linux has 200 ms above the smoothed round trip, the
/// RFC a second.
/// Less a tick of a clock of 100 Hz.
const MIN_TIMEOUT: Duration = Duration::from_millis(190);

/// Loss state: evidence from the receiver, and the current recovery.
#[derive(Debug, Default)]
pub struct Losses {
    duplicates: u32,
    /// The highest byte acknowledged selectively.
    sacked: u64,
    recovery: Option<Recovery>,
    last_repair: Option<Repair>,
    /// The counts.
    pub retransmissions: Retransmissions,
}

/// A retransmission that the congestion window answers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repair {
    pub at: Time,
    /// The receiver had dropped the segment, and not the path.
    pub taken_back: bool,
}

impl Repair {
    /// The limit of the sender behind it.
    pub fn hold(self) -> Hold {
        if self.taken_back { Hold::TakenBack } else { Hold::AfterLoss }
    }
}

#[derive(Debug, Clone, Copy)]
struct Recovery {
    /// The highest byte sent when it began; recovery ends once that is acknowledged (RFC 6675 §4).
    point: u64,
    kind: RetransmissionKind,
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
    /// It lay in a part of the window that the receiver took back.
    pub taken_back: bool,
}

impl Again {
    /// Whether only a timer can have ended the silence before.
    pub fn is_timed_out(&self) -> bool {
        self.pause >= MIN_TIMEOUT.max(self.rtt)
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
        self.retransmissions.reported_needless += u64::from(dsack);
    }

    /// Names and counts a segment sent again.
    pub fn sent_again(&mut self, again: &Again) -> RetransmissionKind {
        let kind = self.kind(again);
        *self.retransmissions.of(kind) += 1;
        if matches!(kind, RetransmissionKind::Needless | RetransmissionKind::Probe) {
            return kind;
        }
        let taken_back = kind == RetransmissionKind::TakenBack;
        self.last_repair = Some(Repair { at: again.now, taken_back });
        if taken_back {
            return kind;
        }
        let timed_out = kind == RetransmissionKind::Timeout && again.pause >= MIN_TIMEOUT;
        self.retransmissions.timeouts += u64::from(timed_out);
        // If data sent since recovery began are also lost, that is another event (RFC 6675 §5).
        let another = self.recovery.is_none_or(|recovery| again.end > recovery.point);
        if another || timed_out {
            self.retransmissions.events += u64::from(another);
            self.retransmissions.recoveries += u64::from(another && !timed_out);
            self.recovery = Some(Recovery { point: again.next, kind });
        }
        kind
    }

    fn kind(&self, again: &Again) -> RetransmissionKind {
        if again.end <= again.una {
            return RetransmissionKind::Needless;
        }
        if again.taken_back {
            return RetransmissionKind::TakenBack;
        }
        let evidence = self.has_evidence(again.una);
        // A pause in which neither data nor acknowledgement passed ends with a timer.
        let timer = again.is_timed_out();
        match self.recovery {
            Some(recovery) if !timer => recovery.kind,
            _ if timer => RetransmissionKind::Timeout,
            _ if self.duplicates >= 3 || self.sacked >= again.una + 3 * again.mss => {
                RetransmissionKind::Fast
            }
            _ if evidence => RetransmissionKind::Selective,
            _ if again.end == again.next => RetransmissionKind::Probe,
            _ => RetransmissionKind::Selective,
        }
    }

    /// Whether a loss is being repaired.
    pub fn in_recovery(&self) -> bool {
        self.recovery.is_some()
    }

    /// The latest retransmission of a lost or dropped segment.
    pub fn last_repair(&self) -> Option<Repair> {
        self.last_repair
    }
}
