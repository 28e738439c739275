//! Connections that a tuner saw but never limited, with the reasons.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::net::SocketAddr;

use serde::Serialize;

use crate::path_group::BULK_BYTES;

/// Why a connection was never limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NotLimited {
    /// Its upload never kept a standing queue while its rate no longer rose.
    NoStandingQueue,
    /// It is an upload, and uploads are not tuned.
    UploadWithoutSend,
    /// The download or tuning ended before the first limit.
    EndedEarly,
    /// It had transferred less than [`BULK_BYTES`] at its last sample.
    Small,
    /// Its peer is not one of the tuned peers.
    OtherPeer,
    /// The rule of the policy that matches it leaves it alone.
    ByPolicy,
    /// No rule of the policy matches it.
    NoRule,
}

impl NotLimited {
    /// All reasons.
    pub const ALL: [NotLimited; 7] = [
        NotLimited::NoStandingQueue,
        NotLimited::UploadWithoutSend,
        NotLimited::EndedEarly,
        NotLimited::Small,
        NotLimited::OtherPeer,
        NotLimited::ByPolicy,
        NotLimited::NoRule,
    ];

    /// Whether the connection was a bulk transfer that should have been tuned.
    pub fn is_bulk(self) -> bool {
        match self {
            NotLimited::NoStandingQueue
            | NotLimited::UploadWithoutSend
            | NotLimited::EndedEarly => true,
            NotLimited::Small
            | NotLimited::OtherPeer
            | NotLimited::ByPolicy
            | NotLimited::NoRule => false,
        }
    }

    /// The reason in words, for a number of connections.
    pub fn words(self, connections: u64) -> String {
        let one = connections == 1;
        let it = if one { "it" } else { "they" };
        match self {
            NotLimited::NoStandingQueue => format!("{it} built no standing queue"),
            NotLimited::UploadWithoutSend => "uploads need --send".to_owned(),
            NotLimited::EndedEarly => format!("{it} ended before the first limit"),
            NotLimited::Small if one => {
                format!("it had moved less than {BULK_BYTES} when last sampled")
            }
            NotLimited::Small => format!("each had moved less than {BULK_BYTES} when last sampled"),
            NotLimited::OtherPeer => "--peer names another peer".to_owned(),
            NotLimited::ByPolicy if one => "a rule of the policy leaves it alone".to_owned(),
            NotLimited::ByPolicy => "rules of the policy leave them alone".to_owned(),
            NotLimited::NoRule if one => "no rule of the policy matches it".to_owned(),
            NotLimited::NoRule => "no rule of the policy matches them".to_owned(),
        }
    }

    /// The noun for a connection, and the word before its peer.
    fn noun(self) -> (&'static str, &'static str) {
        match self {
            NotLimited::NoStandingQueue | NotLimited::UploadWithoutSend => ("upload", "to"),
            NotLimited::EndedEarly => ("download", "from"),
            NotLimited::Small
            | NotLimited::OtherPeer
            | NotLimited::ByPolicy
            | NotLimited::NoRule => ("connection", "to"),
        }
    }
}

/// The number of connections that were never limited, by reason.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct UnlimitedConnections {
    by_reason: BTreeMap<NotLimited, Tally>,
    /// The last connections that a policy left alone, by cookie. A changed policy may find them again.
    left_alone: BTreeMap<u64, NotLimited>,
}

/// The most connections in [`UnlimitedConnections::left_alone`]. If more of them outlive a policy, some are counted twice.
const MAX_LEFT_ALONE: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq)]
struct Tally {
    connections: u64,
    /// The peer of all of them; `None` if there are several peers.
    peer: Option<SocketAddr>,
}

/// The connections that were never limited for one reason, in JSON.
#[derive(Debug, Serialize)]
pub(crate) struct UnlimitedRecord {
    reason: NotLimited,
    connections: u64,
    peer: Option<SocketAddr>,
}

impl UnlimitedConnections {
    /// Counts a connection to `peer`, with its reason.
    pub fn add(&mut self, why: NotLimited, peer: SocketAddr) {
        let new = Tally { connections: 0, peer: Some(peer) };
        let tally = self.by_reason.entry(why).or_insert(new);
        tally.connections += 1;
        tally.peer = tally.peer.filter(|known| *known == peer);
    }

    /// Counts a connection that is left alone. One that was counted before counts only for the new reason.
    pub fn leave_alone(&mut self, cookie: u64, why: NotLimited, peer: SocketAddr) {
        self.forget(cookie);
        self.add(why, peer);
        self.left_alone.insert(cookie, why);
        if self.left_alone.len() > MAX_LEFT_ALONE {
            // Cookies grow roughly with time.
            self.left_alone.pop_first();
        }
    }

    /// No longer counts a connection that was left alone, because it is tuned now.
    pub fn forget(&mut self, cookie: u64) {
        let Some(why) = self.left_alone.remove(&cookie) else { return };
        if let Entry::Occupied(mut tally) = self.by_reason.entry(why) {
            tally.get_mut().connections -= 1;
            if tally.get().connections == 0 {
                tally.remove();
            }
        }
    }

    /// Only the connections with a reason that `is_kept` accepts.
    pub fn only(&self, is_kept: impl Fn(NotLimited) -> bool) -> UnlimitedConnections {
        let kept = self.by_reason.iter().filter(|(why, _)| is_kept(**why));
        let by_reason = kept.map(|(why, tally)| (*why, *tally)).collect();
        UnlimitedConnections { by_reason, left_alone: BTreeMap::new() }
    }

    /// One line per reason.
    pub fn lines(&self) -> Vec<String> {
        let line = |(why, tally): (&NotLimited, &Tally)| {
            let (noun, to) = why.noun();
            let count = tally.connections;
            let plural = if count == 1 { "" } else { "s" };
            let peer = tally.peer.map_or(String::new(), |peer| format!(" {to} {peer}"));
            format!("{count} {noun}{plural}{peer} seen, not limited: {}", why.words(count))
        };
        self.by_reason.iter().map(line).collect()
    }

    pub(crate) fn records(&self) -> Vec<UnlimitedRecord> {
        let record = |(why, tally): (&NotLimited, &Tally)| UnlimitedRecord {
            reason: *why,
            connections: tally.connections,
            peer: tally.peer,
        };
        self.by_reason.iter().map(record).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_prints_one_line_with_the_count_and_any_sole_peer() {
        let mut seen = UnlimitedConnections::default();
        assert!(seen.lines().is_empty());
        let [one, other] = ["10.0.0.2:443", "10.0.0.3:443"].map(|peer| peer.parse().unwrap());
        seen.add(NotLimited::NoStandingQueue, one);
        for peer in [one, other] {
            seen.add(NotLimited::Small, peer);
            seen.add(NotLimited::ByPolicy, one);
        }
        let expected = [
            "1 upload to 10.0.0.2:443 seen, not limited: it built no standing queue",
            "2 connections seen, not limited: each had moved less than 60 kB when last sampled",
            "2 connections to 10.0.0.2:443 seen, not limited: rules of the policy leave them alone",
        ];
        assert_eq!(seen.lines(), expected);
        assert_eq!(seen.only(NotLimited::is_bulk).lines(), expected[..1]);
    }

    #[test]
    fn a_changed_policy_counts_each_connection_once_and_keeps_those_that_ended() {
        let mut seen = UnlimitedConnections::default();
        let peer = "10.0.0.2:443".parse().unwrap();
        (1..=4).for_each(|cookie| seen.leave_alone(cookie, NotLimited::NoRule, peer));
        // Under the next policy, 1 has ended, 2 is still left alone, a rule excludes 3, and 4 is tuned.
        seen.leave_alone(2, NotLimited::NoRule, peer);
        seen.leave_alone(3, NotLimited::ByPolicy, peer);
        seen.forget(4);
        let expected = [
            "1 connection to 10.0.0.2:443 seen, not limited: a rule of the policy leaves it alone",
            "2 connections to 10.0.0.2:443 seen, not limited: no rule of the policy matches them",
        ];
        assert_eq!(seen.lines(), expected);
        seen.forget(3);
        assert_eq!(seen.lines(), expected[1..]);
        let many = MAX_LEFT_ALONE as u64;
        (10..10 + many).for_each(|cookie| seen.leave_alone(cookie, NotLimited::NoRule, peer));
        assert_eq!(seen.left_alone.len(), MAX_LEFT_ALONE);
        assert!(seen.lines()[0].starts_with(&format!("{} connections", many + 2)));
    }
}
