use std::collections::VecDeque;

use sweetspot_units::Time;

use crate::runs::Runs;
use crate::segment::Run;

/// A sender's state from SACK blocks (RFC 6675), in whole packets. A timed scoreboard also detects lost retransmissions (RFC
/// 8985).
#[derive(Debug, Clone, Default)]
pub(crate) struct Scoreboard {
    sacked: Runs,
    /// One past HighRxt: the highest number retransmitted in this recovery.
    retransmitted_to: u64,
    /// Below this, everything not sacked is lost: IsLost().
    lost_to: u64,
    /// RescueRxt: rule (4) may act once HighACK is above it.
    rescued_to: Option<u64>,
    /// Retransmissions in flight, in the order in which they left, on a timed scoreboard.
    again: Option<VecDeque<(u64, Time)>>,
    /// Lost retransmissions, in order of their numbers.
    lost_again: Vec<u64>,
}

/// DupThresh of RFC 6675, the duplicate ACKs that mean a loss in RFC 5681 section 3.2.
pub(crate) const DUP_THRESH: u32 = 3;

impl Scoreboard {
    /// An empty scoreboard. A `timed` one detects retransmissions that are lost again.
    pub(crate) fn new(timed: bool) -> Scoreboard {
        Scoreboard { again: timed.then(VecDeque::new), ..Scoreboard::default() }
    }

    /// Adds the blocks of an ACK up to `una`. Returns the number of packets newly SACKed.
    pub(crate) fn handle_blocks(&mut self, una: u64, blocks: &[Run]) -> u64 {
        let mut new = 0;
        for run in blocks {
            let mut run = *run;
            run.start = run.start.max(una);
            if run.start < run.end {
                new += self.sacked.insert(run);
            }
        }
        // IsLost(): DupThresh packets above it were SACKed. This is true of all packets below the third-highest SACKed one.
        if let Some(third) = self.sacked.nth_highest(u64::from(DUP_THRESH)) {
            self.lost_to = self.lost_to.max(third);
        }
        if new > 0 && !self.lost_again.is_empty() {
            let sacked = &self.sacked;
            self.lost_again.retain(|number| sacked.holding(*number).is_none());
        }
        new
    }

    /// The cumulative ACK reached `una`. Returns how many packets below it had been SACKed.
    pub(crate) fn remove_below(&mut self, una: u64) -> u64 {
        self.retransmitted_to = self.retransmitted_to.max(una);
        self.lost_again.retain(|number| *number >= una);
        self.sacked.remove_below(una)
    }

    /// Records that `number` was retransmitted at `now`.
    pub(crate) fn handle_retransmission(&mut self, now: Time, number: u64) {
        self.retransmitted_to = self.retransmitted_to.max(number + 1);
        if let Some(again) = &mut self.again {
            again.push_back((number, now));
            self.lost_again.retain(|lost| *lost != number);
        }
    }

    /// A packet sent at `sent` has arrived (RACK.xmit_ts of RFC 8985). Packets are not reordered, so packets sent before it
    /// and still missing are lost (section 6.2 step 5 with a reordering window of zero, as in recovery). Returns the number of
    /// lost retransmissions.
    pub(crate) fn handle_delivery(&mut self, una: u64, sent: Time) -> u64 {
        let Some(again) = &mut self.again else { return 0 };
        let before = self.lost_again.len();
        while let Some((number, _)) = again.front().filter(|(_, at)| *at < sent) {
            let number = *number;
            again.pop_front();
            if number >= una && self.sacked.holding(number).is_none() {
                let place = self.lost_again.partition_point(|lost| *lost < number);
                if self.lost_again.get(place) != Some(&number) {
                    self.lost_again.insert(place, number);
                }
            }
        }
        (self.lost_again.len() - before) as u64
    }

    pub(crate) fn handle_recovery(&mut self) {
        self.rescued_to = None;
    }

    /// Handles a timeout after all packets below `highest` were sent. An untimed scoreboard forgets SACKed packets (RFC 2018
    /// section 8). A timed one keeps them, as Linux does (`tcp_timeout_mark_lost`), and marks the rest lost.
    pub(crate) fn handle_timeout(&mut self, highest: u64) {
        self.retransmitted_to = 0;
        self.lost_again.clear();
        match &mut self.again {
            Some(again) => {
                again.clear();
                self.lost_to = highest;
            }
            None => {
                self.lost_to = 0;
                self.sacked.clear();
            }
        }
    }

    /// SetPipe() of RFC 6675: packets thought to be in the network.
    pub(crate) fn pipe(&self, una: u64, highest: u64) -> u64 {
        let missing_below = |number: u64| {
            let number = number.clamp(una, highest);
            number - una - self.sacked.count_below(number)
        };
        let missing = highest - una - self.sacked.count();
        let lost = missing_below(self.lost_to);
        let retransmitted = missing_below(self.retransmitted_to);
        missing - lost + retransmitted - self.lost_again.len() as u64
    }

    /// awnd of FACK: snd.nxt - snd.fack + retran_data (Mathis and Mahdavi 1996, section 2.1).
    pub(crate) fn forward_pipe(&self, una: u64, highest: u64) -> u64 {
        let retransmitted = self.retransmitted_to.clamp(una, highest);
        let repaired = retransmitted - una - self.sacked.count_below(retransmitted);
        highest - self.sacked.end().clamp(una, highest) + repaired
    }

    /// Whether a packet beyond `number` arrived: snd.fack > `number`, so that FACK considers the lowest packet lost.
    pub(crate) fn reaches(&self, number: u64) -> bool {
        self.sacked.end() > number
    }

    /// Number of lost packets from `una` on.
    pub(crate) fn lost(&self, una: u64) -> u64 {
        self.lost_to.saturating_sub(una + self.sacked.count_below(self.lost_to))
    }

    /// NextSeg() rule (1): the lowest lost packet that was not retransmitted yet, or was lost again.
    pub(crate) fn next_hole(&self, una: u64) -> Option<u64> {
        if let Some(number) = self.lost_again.first() {
            return Some(*number);
        }
        let hole = self.first_not_repaired(una);
        (hole < self.lost_to).then_some(hole)
    }

    /// NextSeg() rule (3): the lowest packet not retransmitted yet below a SACKed one, whether lost or not.
    pub(crate) fn next_doubtful(&self, una: u64) -> Option<u64> {
        let hole = self.first_not_repaired(una);
        (hole < self.sacked.end()).then_some(hole)
    }

    fn first_not_repaired(&self, una: u64) -> u64 {
        self.sacked.first_missing(self.retransmitted_to.max(una))
    }

    /// NextSeg() rule (4): once per recovery the highest outstanding packet, so that its ACK shows losses at the end.
    pub(crate) fn next_rescue(&self, una: u64, highest: u64) -> Option<u64> {
        let last = self.sacked.last_missing_below(highest)?;
        (last >= una && self.rescued_to.is_none_or(|to| una > to)).then_some(last)
    }

    /// Records that rule (4) has acted in a recovery that ends at `recover`.
    pub(crate) fn handle_rescue(&mut self, recover: u64) {
        self.rescued_to = Some(recover);
    }

    /// IsLost().
    pub(crate) fn is_lost(&self, number: u64) -> bool {
        number < self.lost_to
    }

    /// The first number from `number` on that is not sacked.
    pub(crate) fn first_missing(&self, number: u64) -> u64 {
        self.sacked.first_missing(number)
    }

    /// Whether nothing is SACKed and no retransmission is in flight.
    pub(crate) fn is_idle(&self) -> bool {
        self.sacked.is_empty() && self.again.as_ref().is_none_or(VecDeque::is_empty)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sacked.is_empty()
    }
}
