/// Bursts from which on the same reach is a rule, and not chance.
const RULE: u64 = 5;

/// How far beyond the data that the receiver's latest small message acknowledged the sender goes. A window above TCP (HTTP/2's,
/// an SSH channel's) lets it go equally far each time, however much had been acknowledged by then. A window of TCP moves with
/// the acknowledgements, and a request is as long as its burst.
#[derive(Debug, Default)]
pub struct Credit {
    /// The latest message: the data that it acknowledged, and all that was sent by then.
    message: Option<(u64, u64)>,
    /// How far the burst before went, and its size.
    before: Option<(u64, u64)>,
    same: u64,
    other: u64,
}

impl Credit {
    /// A small message of the receiver acknowledges everything before `ack`; everything before `next` was sent. Returns how far
    /// the sender goes each time, if it goes equally far.
    pub fn heard(&mut self, ack: u64, next: u64, mss: u64) -> Option<u64> {
        let (acked, sent) = self.message.replace((ack, next))?;
        if next == sent {
            return None;
        }
        let (reach, burst) = (next - acked, next - sent);
        let (reach_before, burst_before) = self.before.replace((reach, burst))?;
        if burst.abs_diff(burst_before) > mss {
            let same = reach.abs_diff(reach_before) <= mss;
            *(if same { &mut self.same } else { &mut self.other }) += 1;
        }
        (self.same >= RULE && self.same > self.other).then_some(reach)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;

    /// The window that the last of the messages shows; each acknowledges everything before its first number, and the sender had
    /// sent everything before the second.
    fn last(messages: impl Iterator<Item = (u64, u64)>) -> Option<u64> {
        let mut credit = Credit::default();
        messages.map(|(ack, next)| credit.heard(ack, next, MSS)).last().flatten()
    }

    #[test]
    fn a_sender_that_stops_equally_far_behind_each_message_has_a_window_above_tcp() {
        // Twenty or forty segments are read, and granted again.
        let read = |n: u64| (n * 30 + n % 2 * 10) * MSS;
        assert_eq!(last((1..20).map(|n| (read(n), read(n - 1) + 60 * MSS))), Some(60 * MSS));
    }

    #[test]
    fn requests_of_any_size_show_none() {
        let sent = |n: u64| (n * 30 + n % 2 * 10) * MSS;
        assert_eq!(last((1..20).map(|n| (sent(n), sent(n)))), None);
        assert_eq!(last((1..20).map(|n| (n * 30 * MSS, n * 30 * MSS))), None);
    }

    #[test]
    fn a_constant_flight_shows_none() {
        // Messages come as they like; sixty segments are always under way.
        let acked = |n: u64| (n * 30 + n % 2 * 10) * MSS;
        assert_eq!(last((1..20).map(|n| (acked(n), acked(n) + 60 * MSS))), None);
    }
}
