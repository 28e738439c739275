/// The number of bursts with the same reach that is no longer chance.
const RULE: u64 = 5;

/// Detects a window above TCP, such as an HTTP/2 stream's or an SSH channel's. Each small message of the receiver lets the
/// sender send up to a fixed reach beyond the data that it acknowledges, however much had been acknowledged. A TCP window
/// instead moves with the acknowledgements, and a request is as long as its burst.
#[derive(Debug, Default)]
pub struct Credit {
    /// The latest message: the position that it acknowledged, and the end of the data sent until then.
    message: Option<(u64, u64)>,
    /// The reach and the size of the previous burst.
    before: Option<(u64, u64)>,
    same: u64,
    other: u64,
}

impl Credit {
    /// Handles a small message of the receiver, which acknowledges everything before `ack`; everything before `next` was sent.
    /// Returns the reach, if it is the same for each message.
    pub fn received(&mut self, ack: u64, next: u64, mss: u64) -> Option<u64> {
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

    /// The window after the last message. Each message has the position that it acknowledges and the end of the data sent.
    fn last(messages: impl Iterator<Item = (u64, u64)>) -> Option<u64> {
        let mut credit = Credit::default();
        messages.map(|(ack, next)| credit.received(ack, next, MSS)).last().flatten()
    }

    #[test]
    fn a_sender_with_a_constant_reach_has_a_window_above_tcp() {
        // The receiver reads twenty or forty segments, and grants as many again.
        let read = |n: u64| (n * 30 + n % 2 * 10) * MSS;
        assert_eq!(last((1..20).map(|n| (read(n), read(n - 1) + 60 * MSS))), Some(60 * MSS));
    }

    #[test]
    fn requests_of_any_size_show_no_window_above_tcp() {
        let sent = |n: u64| (n * 30 + n % 2 * 10) * MSS;
        assert_eq!(last((1..20).map(|n| (sent(n), sent(n)))), None);
        assert_eq!(last((1..20).map(|n| (n * 30 * MSS, n * 30 * MSS))), None);
    }

    #[test]
    fn a_constant_flight_shows_no_window_above_tcp() {
        // Messages come at any time, and sixty segments are always in flight.
        let acked = |n: u64| (n * 30 + n % 2 * 10) * MSS;
        assert_eq!(last((1..20).map(|n| (acked(n), acked(n) + 60 * MSS))), None);
    }
}
