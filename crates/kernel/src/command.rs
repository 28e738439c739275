use std::net::IpAddr;

use sweetspot_units::{Bytes, Duration, Rate, Time};

/// The connections that the programs report, in their cgroup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watch {
    /// A transfer counts as bulk once it has moved this many bytes ...
    pub bulk: Bytes,
    /// ... within this time.
    pub within: Duration,
    /// The time between two samples of a bulk transfer, unless a [`Command`] changes it.
    pub interval: Duration,
    /// Whether to sample transfers that mainly send, too.
    pub uploads: bool,
    /// Whether the tuner only reports: it gives no commands.
    pub dry_run: bool,
}

/// A decision about one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Command {
    /// The limit of its receive window; `None` for no limit.
    pub limit: Option<Bytes>,
    /// The limit of its pacing rate; `None` for no limit.
    pub pace: Option<Rate>,
    /// The name of its congestion control, padded with zeros; `None` keeps its own.
    pub congestion: Option<[u8; 16]>,
    /// The time between two samples.
    pub interval: Duration,
    /// Whether to leave the connection alone for good: it is no longer sampled.
    pub left: bool,
}

/// The direction of the transfers for which a path's parameters are saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Transfers {
    /// Transfers that this host receives: the next one's window is limited from its first byte.
    Downloads,
    /// Transfers that this host sends: the next one starts with half of the window, paced.
    Uploads,
}

/// The saved parameters of a path, on which a window limit held until the end of the last transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RememberedPath {
    /// The window.
    pub window: Bytes,
    /// The min RTT.
    pub minimum_rtt: Duration,
}

/// `struct settings` of bpf/tune.bpf.c.
pub type SettingsWords = [u64; 6];
/// The flag `UPLOADS`, and one by which another tuner knows a dry run.
const UPLOADS: u64 = 1;
const DRY_RUN: u64 = 2;
/// `struct command`.
pub type CommandWords = [u64; 6];
/// `struct path`.
pub type PathWords = [u64; 3];

/// The settings in the layout that the programs read.
pub fn settings(watch: &Watch, lease_ends: Time, generation: u64) -> SettingsWords {
    [
        lease_ends.as_nanos(),
        generation,
        watch.bulk.get(),
        watch.within.as_nanos(),
        watch.interval.as_nanos(),
        u64::from(watch.uploads) * UPLOADS + u64::from(watch.dry_run) * DRY_RUN,
    ]
}

/// The end of the lease in these settings, and whether their tuner only reports.
pub fn lease(settings: SettingsWords) -> (Time, bool) {
    let [ends, .., flags] = settings;
    (Time::from_nanos(ends), flags & DRY_RUN != 0)
}

impl RememberedPath {
    /// The path in the layout that the programs read; no connection uses it yet.
    pub fn words(&self) -> PathWords {
        [self.window.get().clamp(1, i32::MAX as u64), self.minimum_rtt.as_micros(), 0]
    }
}

/// A network in the layout of the programs' lookup: prefix length in bits and address. IPv4 is
/// mapped into IPv6.
pub fn destination(network: IpAddr, length: u8) -> (u32, [u8; 16]) {
    match network {
        IpAddr::V4(network) => (96 + u32::from(length), network.to_ipv6_mapped().octets()),
        IpAddr::V6(network) => (length.into(), network.octets()),
    }
}

impl Command {
    /// The command in the layout that the programs read: zero means no limit.
    pub fn words(&self) -> CommandWords {
        let limit = self.limit.map_or(0, |limit| limit.get().clamp(1, i32::MAX as u64));
        let pace = self.pace.map_or(0, |pace| (pace.bits_per_second() / 8).max(1));
        let name = self.congestion.unwrap_or_default();
        let (halves, _) = name.as_chunks();
        let [first, second] = [halves[0], halves[1]].map(u64::from_ne_bytes);
        [limit, pace, self.interval.as_nanos(), u64::from(self.left), first, second]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_limit_encodes_as_zero_and_a_limit_of_zero_as_one() {
        let none = Command {
            limit: None,
            pace: None,
            congestion: None,
            interval: Duration::ZERO,
            left: false,
        };
        assert_eq!(none.words(), [0; 6]);
        let min = Command { limit: Some(Bytes::ZERO), pace: Some(Rate::ZERO), ..none };
        assert_eq!(min.words(), [1, 1, 0, 0, 0, 0]);
        // 8 Mbit/s are 1,000,000 bytes per second.
        let pace = Some(Rate::from_mbit_per_second(8));
        assert_eq!(Command { pace, left: true, ..none }.words(), [0, 1_000_000, 0, 1, 0, 0]);
        let mut name = [0; 16];
        name[..3].copy_from_slice(b"bbr");
        let words = Command { congestion: Some(name), ..none }.words();
        assert_eq!(words[4].to_ne_bytes(), *b"bbr\0\0\0\0\0");
        assert_eq!(words[5], 0);
    }

    #[test]
    fn ipv4_and_ipv4_mapped_peers_are_the_same_destination() {
        let v4: IpAddr = "192.0.2.7".parse().unwrap();
        let mapped: IpAddr = "::ffff:192.0.2.7".parse().unwrap();
        assert_eq!(destination(v4, 32), destination(mapped, 128));
        assert_eq!(destination(v4, 24).0, 120);
        assert_eq!(destination(v4, 32).1[10..], [0xff, 0xff, 192, 0, 2, 7]);
    }

    #[test]
    fn limits_are_capped_at_the_range_of_tcp_window_clamp() {
        // TCP_WINDOW_CLAMP is an int.
        let interval = Duration::from_millis(3);
        let limit = Some(Bytes::new(u64::MAX));
        let command = Command { limit, pace: None, congestion: None, interval, left: false };
        assert_eq!(command.words(), [i32::MAX as u64, 0, 3_000_000, 0, 0, 0]);
    }
}
