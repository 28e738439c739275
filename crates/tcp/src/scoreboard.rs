use crate::runs::Runs;
use crate::segment::Run;

/// What a sender knows from SACK blocks (RFC 6675), in whole packets.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scoreboard {
    sacked: Runs,
    /// One past HighRxt: the highest number sent again in this recovery.
    retransmitted_to: u64,
    /// Below this, everything not sacked is lost: IsLost().
    lost_to: u64,
}

/// DupThresh of RFC 6675.
const THRESHOLD: u64 = 3;

impl Scoreboard {
    /// Takes the blocks of an ACK up to `una` in and returns how many packets are news.
    pub(crate) fn handle_blocks(&mut self, una: u64, blocks: &[Run]) -> u64 {
        let mut news = 0;
        for run in blocks {
            let mut run = *run;
            run.start = run.start.max(una);
            if run.start < run.end {
                news += self.sacked.insert(run);
            }
        }
        // IsLost(): DupThresh packets above it were sacked. Below the third highest, all were.
        if let Some(third) = self.sacked.nth_highest(THRESHOLD) {
            self.lost_to = self.lost_to.max(third);
        }
        news
    }

    /// The cumulative ACK reached `una`: returns how many of those packets were sacked before.
    pub(crate) fn remove_below(&mut self, una: u64) -> u64 {
        self.retransmitted_to = self.retransmitted_to.max(una);
        self.sacked.remove_below(una)
    }

    /// `number` was sent again.
    pub(crate) fn handle_retransmission(&mut self, number: u64) {
        self.retransmitted_to = self.retransmitted_to.max(number + 1);
    }

    /// A timeout: all that was sent again may be lost again (RFC 6675 section 5.1).
    pub(crate) fn handle_timeout(&mut self) {
        self.retransmitted_to = 0;
        self.lost_to = 0;
        self.sacked.clear();
    }

    /// SetPipe() of RFC 6675: packets thought to be in the network.
    pub(crate) fn pipe(&self, una: u64, highest: u64) -> u64 {
        let missing_below = |number: u64| {
            let number = number.clamp(una, highest);
            number - una - self.sacked.count_below(number)
        };
        let missing = highest - una - self.sacked.count();
        let lost = missing_below(self.lost_to);
        let sent_again = missing_below(self.retransmitted_to);
        missing - lost + sent_again
    }

    /// Packets from `una` on that are lost.
    pub(crate) fn lost(&self, una: u64) -> u64 {
        self.lost_to.saturating_sub(una + self.sacked.count_below(self.lost_to))
    }

    /// NextSeg() rule (1): the lowest lost packet not sent again yet.
    pub(crate) fn next_hole(&self, una: u64) -> Option<u64> {
        let hole = self.sacked.first_missing(self.retransmitted_to.max(una));
        (hole < self.lost_to).then_some(hole)
    }

    /// IsLost().
    pub(crate) fn is_lost(&self, number: u64) -> bool {
        number < self.lost_to
    }

    /// The first number from `number` on that the receiver does not have.
    pub(crate) fn first_missing(&self, number: u64) -> u64 {
        self.sacked.first_missing(number)
    }

    /// Whether nothing is sacked.
    pub(crate) fn is_empty(&self) -> bool {
        self.sacked.is_empty()
    }
}
