use sweetspot_units::{Duration, Time};

use super::accounts::Hold;

/// The cause of a retransmission, as far as the capture shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RetransmissionKind {
    /// Three duplicate acknowledgements, or selective ones to the same effect (RFC 5681, RFC 6675).
    Fast,
    /// Fewer duplicates than that: selective acknowledgements and time (RACK, RFC 8985).
    Selective,
    /// The tail again, to provoke an acknowledgement (TLP, RFC 8985 §7).
    Probe,
    /// The retransmission timer (RFC 6298).
    Timeout,
    /// Spurious: the data had already been acknowledged.
    Needless,
    /// The receiver dropped the data after it had withdrawn that part of its window (RFC 7323 §2.4).
    TakenBack,
}

/// Number of captured retransmissions, by cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retransmissions {
    /// After duplicate or selective acknowledgements.
    pub fast: u64,
    /// By time, with some selective acknowledgements (RACK).
    pub selective: u64,
    /// Tail loss probes.
    pub probes: u64,
    /// After a timeout.
    pub timeout: u64,
    /// Acknowledged before the retransmission.
    pub needless: u64,
    /// Dropped by the receiver, which had withdrawn the window for them.
    pub taken_back: u64,
    /// Duplicates that the receiver reported (DSACK, RFC 2883): spurious, too.
    pub reported_needless: u64,
    /// Loss events: all losses within a round trip count as one.
    pub events: u64,
    /// Events with a repair that began before any timeout: fast recoveries.
    pub recoveries: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
}

impl Retransmissions {
    /// All retransmitted segments.
    pub fn segments(&self) -> u64 {
        self.fast + self.selective + self.probes + self.timeout + self.needless + self.taken_back
    }

    /// Number of reductions of the congestion window: fast recoveries and timeouts.
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

/// The minimum RTO in use, less a tick of a 100 Hz clock. Linux uses 200 ms above the smoothed RTT, RFC 6298 a second.
const MIN_TIMEOUT: Duration = Duration::from_millis(190);

/// Loss state: evidence from the receiver, the current recovery, and counters.
#[derive(Debug, Default)]
pub struct Losses {
    duplicates: u32,
    /// The highest byte acknowledged selectively.
    sacked: u64,
    recovery: Option<Recovery>,
    last_repair: Option<Repair>,
    /// The counters.
    pub retransmissions: Retransmissions,
}

/// A retransmission that reduces the congestion window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repair {
    pub at: Time,
    /// The receiver dropped the segment, not the path.
    pub taken_back: bool,
}

impl Repair {
    /// The sender's limit after it.
    pub fn hold(self) -> Hold {
        if self.taken_back { Hold::TakenBack } else { Hold::AfterLoss }
    }
}

#[derive(Debug, Clone, Copy)]
struct Recovery {
    /// The highest byte sent when recovery began. Recovery ends when it is acknowledged (RFC 6675 §4).
    point: u64,
    kind: RetransmissionKind,
}

/// A retransmitted segment, and the state of its sender.
#[derive(Debug, Clone, Copy)]
pub struct Again {
    pub now: Time,
    pub end: u64,
    /// The position after the last byte sent (SND.NXT).
    pub next: u64,
    /// The position of the first unacknowledged byte (SND.UNA).
    pub una: u64,
    pub mss: u64,
    /// The time since data was last sent or acknowledged.
    pub pause: Duration,
    /// The RTT; zero if unknown.
    pub rtt: Duration,
    /// The segment was in a part of the window that the receiver withdrew.
    pub taken_back: bool,
}

impl Again {
    /// Whether only a timer can have ended the pause before it.
    pub fn is_timed_out(&self) -> bool {
        self.pause >= MIN_TIMEOUT.max(self.rtt)
    }
}

impl Losses {
    /// Whether the receiver reported a hole above `una`.
    pub fn has_evidence(&self, una: u64) -> bool {
        self.duplicates > 0 || self.sacked > una
    }

    /// Handles an acknowledgement that reached the sender: whether it advanced or was a duplicate, the highest byte in its
    /// SACK blocks, and whether it had a DSACK.
    pub fn received(
        &mut self,
        una: u64,
        advanced: bool,
        duplicate: bool,
        sacked: u64,
        dsack: bool,
    ) {
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

    /// Classifies and counts a retransmission.
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
        // If data sent since recovery began is also lost, this is another event (RFC 6675 §5).
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
        // A timer ended a pause in which neither data nor an acknowledgement passed.
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
