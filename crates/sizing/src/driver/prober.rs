use std::collections::VecDeque;

use sweetspot_units::{Bytes, Duration, Time};

use crate::contract::{Probe, Probing, SenderReport};
use crate::model::{MEASURING_SHARE, SILENCE};

/// Interval of periodic probes: 20 ms (section VII-A of the SOBAS paper).
pub const PROBE_INTERVAL: Duration = Duration::from_millis(20);
/// Bytes of a probe on the wire (section VII-A of the SOBAS paper).
pub const PROBE_SIZE: Bytes = Bytes::new(100);
/// Probes allowed in advance, for the first round trips. Together they are about one full segment of 1500 bytes, so even a
/// transfer too short to earn them loses only one packet's time.
const ADVANCE_PROBES: u64 = 16;

/// Payload that must arrive for each probe.
fn data_per_probe() -> Bytes {
    PROBE_SIZE.scaled(1.0 / MEASURING_SHARE)
}

/// The sender's answer to a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeAnswer {
    /// Number of the answered probe.
    pub probe: u32,
    /// Number of the answer, counted from 0.
    pub sequence: u32,
    /// Time from the probe's arrival to the answer's departure.
    pub held: Duration,
    /// The sender's report.
    pub report: SenderReport,
}

/// Counts of probes by their fate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProbeCounts {
    /// Probes sent.
    pub sent: u64,
    /// Probes answered.
    pub answered: u64,
    /// Answers lost on the forward path, the direction of the data.
    pub lost_forward: u64,
    /// Probes lost on the way to the sender.
    pub lost_reverse: u64,
    /// Whether the kernel's RTT estimate replaced probes at some time.
    pub fallback: bool,
}

/// The receiver's side of the periodic probes.
///
/// **Contract.** `now` never goes backwards.
#[derive(Debug)]
pub struct Prober {
    probing: Probing,
    schedule: Schedule,
    /// Payload received that no probe has used up yet.
    credit: Bytes,
    last_sent: Time,
    /// When the probes from `first` on were sent; `None` once answered.
    sent: VecDeque<Option<Time>>,
    first: u32,
    next_answer: u32,
    /// Answers lost on the forward path, less those that arrived late.
    lost_forward: u64,
    lost_reverse: u64,
    answered: u64,
    /// Time of the last answer.
    quiet_since: Time,
    rtt: Option<Duration>,
    report: Option<SenderReport>,
    fell_back: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Schedule {
    /// The sender's address is not known yet.
    Waiting,
    /// The next probe is due at this time.
    Running { due: Time },
}

impl Prober {
    /// A prober that waits until the sender can be reached.
    pub fn new(now: Time, probing: Probing) -> Prober {
        Prober {
            probing,
            schedule: Schedule::Waiting,
            credit: data_per_probe() * ADVANCE_PROBES,
            last_sent: now,
            sent: VecDeque::new(),
            first: 0,
            next_answer: 0,
            lost_forward: 0,
            lost_reverse: 0,
            answered: 0,
            quiet_since: now,
            rtt: None,
            report: None,
            fell_back: false,
        }
    }

    /// The sender can be reached.
    pub fn start(&mut self, now: Time) {
        if self.schedule == Schedule::Waiting {
            self.schedule = Schedule::Running { due: now };
            self.quiet_since = self.quiet_since.max(now);
        }
    }

    /// Whether the sender can be reached.
    pub fn is_started(&self) -> bool {
        self.schedule != Schedule::Waiting
    }

    /// Whether the path is probed at all.
    pub fn is_probing(&self) -> bool {
        self.probing != Probing::Never
    }

    /// Sets how often the path is probed.
    pub fn set_probing(&mut self, probing: Probing) {
        self.probing = probing;
    }

    /// The transfer received payload, which allows further probes.
    pub fn handle_data(&mut self, bytes: Bytes) {
        self.credit = (self.credit + bytes).min(data_per_probe() * ADVANCE_PROBES);
    }

    /// The next probe's number, if one is due.
    pub fn handle_timeout(&mut self, now: Time) -> Option<u32> {
        let Schedule::Running { due } = &mut self.schedule else { return None };
        if now < *due {
            return None;
        }
        // A late probe is not made up for: two probes at once would delay each other.
        let next = *due + PROBE_INTERVAL;
        *due = if next > now { next } else { now + PROBE_INTERVAL };
        if !self.may_probe(now) {
            return None;
        }
        self.credit = self.credit.saturating_sub(data_per_probe());
        self.last_sent = now;
        self.forget(now);
        self.sent.push_back(Some(now));
        Some(self.first + self.sent.len() as u32 - 1)
    }

    /// Forgets probes that were answered or are too old: an answer that late is ignored.
    fn forget(&mut self, now: Time) {
        let longest = self.rtt.unwrap_or(SILENCE).max(SILENCE) * 3;
        let is_over = |sent: &Option<Time>| sent.is_none_or(|sent| now.since(sent) > longest);
        while self.sent.front().is_some_and(is_over) {
            self.sent.pop_front();
            self.first += 1;
        }
    }

    /// Whether the budget allows a probe.
    fn may_probe(&self, now: Time) -> bool {
        match self.probing {
            Probing::Never => false,
            Probing::Periodic => true,
            Probing::Budgeted => {
                self.credit >= data_per_probe() || now.since(self.last_sent) >= SILENCE
            }
            Probing::Sparse => now.since(self.last_sent) >= SILENCE,
        }
    }

    /// When the next probe is due.
    pub fn poll_timeout(&self) -> Option<Time> {
        match self.schedule {
            Schedule::Waiting => None,
            Schedule::Running { due } => Some(due),
        }
    }

    /// An answer arrived. `None` if it is a duplicate, too old, or invalid.
    pub fn handle_answer(&mut self, arrived: Time, answer: &ProbeAnswer) -> Option<Probe> {
        // There cannot be more answers than probes.
        if answer.sequence > answer.probe {
            return None;
        }
        let at = answer.probe.checked_sub(self.first)? as usize;
        let sent = self.sent.get_mut(at)?.take()?;
        let rtt = arrived.since(sent).saturating_sub(answer.held);
        self.answered += 1;
        self.quiet_since = self.quiet_since.max(arrived);
        self.rtt = Some(rtt);
        let mut forward_lost = 0;
        if answer.sequence >= self.next_answer {
            forward_lost = u64::from(answer.sequence - self.next_answer);
            self.next_answer = answer.sequence + 1;
            self.lost_forward += forward_lost;
            self.lost_reverse = u64::from(answer.probe - answer.sequence);
            self.report = Some(answer.report);
        } else {
            // A later answer overtook this one, which was then counted as lost.
            self.lost_forward = self.lost_forward.saturating_sub(1);
        }
        Some(Probe { rtt, forward_lost })
    }

    /// Whether probes are blocked; the kernel's RTT estimate must then replace them.
    pub fn is_blocked(&mut self, now: Time, kernel_rtt: Option<Duration>) -> bool {
        let rtt = self.rtt.or(kernel_rtt).unwrap_or_default();
        // A transfer with a small probe budget expects few answers, so a gap between them means less.
        let patience = match self.probing {
            Probing::Budgeted | Probing::Sparse if self.answered > 0 => SILENCE * 3,
            Probing::Never | Probing::Periodic | Probing::Budgeted | Probing::Sparse => SILENCE,
        };
        let blocked = now.since(self.quiet_since) > patience.max(rtt * 3);
        self.fell_back |= blocked;
        blocked
    }

    /// The latest round-trip time.
    pub fn rtt(&self) -> Option<Duration> {
        self.rtt
    }

    /// The sender's latest report.
    pub fn report(&self) -> Option<&SenderReport> {
        self.report.as_ref()
    }

    /// Counts of the probes so far.
    pub fn counts(&self) -> ProbeCounts {
        ProbeCounts {
            sent: u64::from(self.first) + self.sent.len() as u64,
            answered: self.answered,
            lost_forward: self.lost_forward,
            lost_reverse: self.lost_reverse,
            fallback: self.fell_back,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(n: u64) -> Time {
        Time::ZERO + Duration::from_millis(n)
    }

    fn answer(probe: u32, sequence: u32) -> ProbeAnswer {
        ProbeAnswer { probe, sequence, held: Duration::ZERO, report: SenderReport::default() }
    }

    fn started(probes: u64) -> Prober {
        let mut prober = Prober::new(Time::ZERO, Probing::Periodic);
        prober.start(Time::ZERO);
        for n in 0..probes {
            assert_eq!(prober.handle_timeout(ms(20 * n)), Some(n as u32));
            assert_eq!(prober.handle_timeout(ms(20 * n)), None);
        }
        prober
    }

    #[test]
    fn the_probe_rtt_excludes_the_time_an_answer_was_held() {
        let mut prober = started(1);
        let held = Duration::from_millis(7);
        let probe = prober.handle_answer(ms(44), &ProbeAnswer { held, ..answer(0, 0) }).unwrap();
        assert_eq!(probe.rtt, Duration::from_millis(37));
    }

    #[test]
    fn forward_and_reverse_losses_are_counted_separately() {
        let mut prober = started(10);
        // Probes 1 and 2 never reached the sender; it answered 0, 3, 4, 5 as 0, 1, 2, 3. Answers 1
        // and 2 were lost on the way back.
        prober.handle_answer(ms(40), &answer(0, 0)).unwrap();
        let probe = prober.handle_answer(ms(140), &answer(5, 3)).unwrap();
        assert_eq!(probe.forward_lost, 2);
        let counts = prober.counts();
        assert_eq!((counts.lost_forward, counts.lost_reverse), (2, 2));
    }

    #[test]
    fn a_reordered_answer_is_not_a_loss() {
        let mut prober = started(3);
        assert_eq!(prober.handle_answer(ms(60), &answer(1, 1)).unwrap().forward_lost, 1);
        assert_eq!(prober.handle_answer(ms(61), &answer(0, 0)).unwrap().forward_lost, 0);
        assert_eq!(prober.counts().lost_forward, 0);
    }

    #[test]
    fn an_answer_counts_once() {
        let mut prober = started(2);
        assert!(prober.handle_answer(ms(30), &answer(0, 0)).is_some());
        assert!(prober.handle_answer(ms(31), &answer(0, 0)).is_none());
        assert!(prober.handle_answer(ms(31), &answer(0, 1)).is_none());
        assert_eq!(prober.counts().answered, 1);
    }

    #[test]
    fn impossible_answers_are_ignored() {
        let mut prober = started(2);
        assert!(prober.handle_answer(ms(30), &answer(7, 0)).is_none());
        assert!(prober.handle_answer(ms(30), &answer(1, 2)).is_none());
    }

    #[test]
    fn a_late_prober_does_not_catch_up_with_a_burst() {
        let mut prober = started(1);
        assert!(prober.handle_timeout(ms(200)).is_some());
        assert!(prober.handle_timeout(ms(200)).is_none());
        assert_eq!(prober.poll_timeout(), Some(ms(220)));
    }

    #[test]
    fn silence_of_a_second_or_three_rtts_counts_as_blocked() {
        let mut prober = started(1);
        assert!(!prober.is_blocked(ms(1000), None));
        assert!(prober.is_blocked(ms(1001), None));
        assert!(!prober.is_blocked(ms(1500), Some(Duration::from_millis(600))));
        prober.handle_answer(ms(1600), &answer(0, 0)).unwrap();
        assert!(!prober.is_blocked(ms(2000), None));
        assert!(prober.counts().fallback);
    }

    proptest! {
        /// For any pattern of losses in each direction, in order: each probe is answered, lost one way, lost the other way, or
        /// not yet known.
        #[test]
        fn probes_are_conserved(fates in proptest::collection::vec(0u8..3, 1..300)) {
            let (mut prober, mut answers) = (started(0), 0);
            for (n, fate) in fates.iter().enumerate() {
                let now = ms(20 * n as u64);
                let probe = prober.handle_timeout(now).unwrap();
                if *fate == 1 { continue; }
                let sequence = answers;
                answers += 1;
                if *fate == 2 { continue; }
                prober.handle_answer(now, &answer(probe, sequence)).unwrap();
            }
            let last = fates.iter().rposition(|f| *f == 0).map_or(0, |n| n + 1);
            let count = |kind| fates[..last].iter().filter(|f| **f == kind).count() as u64;
            let counts = prober.counts();
            prop_assert_eq!(counts.sent, fates.len() as u64);
            prop_assert_eq!(counts.answered, count(0));
            prop_assert_eq!(counts.lost_reverse, count(1));
            prop_assert_eq!(counts.lost_forward, count(2));
        }
    }
}
