//! The lines that record the limits in force. A guardian or the next tuner reads them to lift the limits.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};

use sweetspot_control::OwnClamp;
use sweetspot_linux::live::LiveSocket;
use sweetspot_linux::processes::{self, Process};
use sweetspot_units::{Bytes, Rate};

use crate::sample::{lift, pace};

/// A limit set on a connection, with the state needed to undo it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppliedLimit {
    /// A window limit, with what the tuner knows about the program's own clamp.
    Window(OwnClamp),
    /// A pacing rate limit, with the limit before it.
    Pace(Option<Rate>),
}

impl AppliedLimit {
    /// Lifts the limit. Does nothing if the connection is gone.
    pub fn undo(self, socket: &LiveSocket) {
        match self {
            AppliedLimit::Window(own) => drop(lift(socket, own)),
            AppliedLimit::Pace(before) => drop(pace(socket, before)),
        }
    }

    /// The limit as the guardian reads it.
    pub fn word(self) -> String {
        match self {
            AppliedLimit::Window(own) => format!("window:{}", own.words()),
            AppliedLimit::Pace(None) => "pace".to_owned(),
            AppliedLimit::Pace(Some(before)) => format!("pace:{}", before.bits_per_second()),
        }
    }

    fn from_word(word: &str) -> Option<AppliedLimit> {
        match word {
            "pace" => Some(AppliedLimit::Pace(None)),
            _ => match word.split_once(':')? {
                ("window", own) => Some(AppliedLimit::Window(OwnClamp::from_words(own)?)),
                ("pace", before) => {
                    let before = Rate::from_bits_per_second(before.parse().ok()?);
                    Some(AppliedLimit::Pace(Some(before)))
                }
                _ => None,
            },
        }
    }
}

/// The window limit that these lines set, and did not release, on the socket with this inode and cookie.
pub fn window_in(lines: File, inode: u64, cookie: u64) -> Option<Bytes> {
    let held = HeldLeases::read(lines);
    let lease = held.0.get(&cookie).filter(|lease| lease.inode == inode)?;
    match lease.window? {
        AppliedLimit::Window(own) => own.limit(),
        AppliedLimit::Pace(_) => None,
    }
}

/// Whether these lines have a limit on the window of the socket with this cookie, perhaps lifted for now. Without an `inode` it is
/// not known.
pub fn has_lease_in(lines: File, inode: Option<u64>, cookie: u64) -> bool {
    let held = HeldLeases::read(lines);
    let lease = held.0.get(&cookie).filter(|lease| lease.window.is_some());
    lease.is_some_and(|lease| inode.is_none_or(|inode| inode == lease.inode))
}

/// Lifts every limit that these lines set and did not release. Returns the number of connections.
pub fn lift_all(lines: File) -> usize {
    let held = HeldLeases::read(lines);
    let lift = |lease: &Lease| {
        let Some(socket) = lease.socket() else { return false };
        lease.window.into_iter().chain(lease.pace).for_each(|applied| applied.undo(&socket));
        true
    };
    held.0.values().filter(|lease| lift(lease)).count()
}

/// The leases taken and not released, by cookie.
#[derive(Debug, Default, PartialEq, Eq)]
struct HeldLeases(BTreeMap<u64, Lease>);

/// A socket and the limits set on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Lease {
    pid: u32,
    started: u64,
    inode: u64,
    cookie: u64,
    window: Option<AppliedLimit>,
    pace: Option<AppliedLimit>,
}

impl Lease {
    /// Finds the socket, even if its program has moved it to another process or descriptor.
    fn socket(&self) -> Option<LiveSocket> {
        let find = |pid| LiveSocket::find(pid, self.inode, self.cookie);
        let same = Process::read(self.pid).is_ok_and(|p| p.started == self.started);
        if same && let Some(socket) = find(self.pid) {
            return Some(socket);
        }
        processes::all().ok()?.into_iter().find_map(find)
    }
}

impl HeldLeases {
    fn read(lines: File) -> HeldLeases {
        let mut held = HeldLeases::default();
        for line in BufReader::new(lines).lines().map_while(Result::ok) {
            held.note(&line);
        }
        held
    }

    /// Reads one line of the record. An incomplete line is ignored.
    fn note(&mut self, line: &str) -> Option<()> {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["+", applied, pid, started, inode, cookie] => {
                let applied = AppliedLimit::from_word(applied)?;
                let cookie = cookie.parse().ok()?;
                let lease = Lease {
                    pid: pid.parse().ok()?,
                    started: started.parse().ok()?,
                    inode: inode.parse().ok()?,
                    cookie,
                    window: None,
                    pace: None,
                };
                let lease = self.0.entry(cookie).or_insert(lease);
                match applied {
                    // The latest line counts: the program may have set its clamp in the meantime.
                    AppliedLimit::Window(_) => lease.window = Some(applied),
                    // The first line counts: it has the program's own limit.
                    AppliedLimit::Pace(_) => lease.pace = lease.pace.or(Some(applied)),
                }
            }
            ["-", cookie] => {
                self.0.remove(&cookie.parse().ok()?);
            }
            _ => {}
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, Write};

    use super::*;

    fn own(words: &str) -> AppliedLimit {
        AppliedLimit::Window(OwnClamp::from_words(words).unwrap())
    }

    #[test]
    fn the_guardian_knows_every_unreleased_lease() {
        let mut held = HeldLeases::default();
        held.note("+ window:9000:-:-:-:- 10 99 1234 77");
        held.note("+ window:9000:-:-:-:- 10 99 1235 78");
        held.note("+ window:8000:50003:-:-:- 10 99 1235 78");
        held.note("+ pace:8000 10 99 1235 78");
        held.note("+ pace:16000 10 99 1235 78");
        held.note("- 77");
        let before = Some(Rate::from_bits_per_second(8000));
        let lease = Lease {
            pid: 10,
            started: 99,
            inode: 1235,
            cookie: 78,
            window: Some(own("8000:50003:-:-:-")),
            pace: Some(AppliedLimit::Pace(before)),
        };
        assert_eq!(held.0, BTreeMap::from([(78, lease)]));
    }

    #[test]
    fn an_applied_limit_round_trips() {
        let some = Some(Rate::from_mbit_per_second(95));
        for applied in [
            own("-:-:-:-:-"),
            own("9000:50003:65536:131072:1448"),
            AppliedLimit::Pace(None),
            AppliedLimit::Pace(some),
        ] {
            assert_eq!(AppliedLimit::from_word(&applied.word()), Some(applied));
        }
    }

    #[test]
    fn a_window_lease_lasts_until_its_release_line() {
        let held = |lines: &str| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(lines.as_bytes()).unwrap();
            file.rewind().unwrap();
            window_in(file, 1235, 78)
        };
        let taken = "+ window:9000:-:50003:-:- 10 99 1235 78\n";
        assert_eq!(held(taken), Some(Bytes::new(9000)));
        assert_eq!(held(&format!("{taken}- 78\n")), None);
        // A window of another socket, and a pacing rate.
        assert_eq!(held("+ window:9000:-:-:-:- 10 99 1234 78\n+ pace:8000 10 99 1235 77\n"), None);
        // The limit is no lower than the clamp without a tuner.
        assert_eq!(held("+ window:50003:-:50003:-:- 10 99 1235 78\n"), None);
    }

    #[test]
    fn a_tuner_that_lifted_its_limit_for_now_still_has_a_lease() {
        let has_lease = |lines: &str, inode| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(lines.as_bytes()).unwrap();
            file.rewind().unwrap();
            has_lease_in(file, inode, 78)
        };
        for window in ["9000:-:50003:-:-", "50003:-:50003:-:-", "-:-:-:-:-"] {
            let taken = format!("+ window:{window} 10 99 1235 78\n");
            assert!(has_lease(&taken, Some(1235)) && has_lease(&taken, None));
            assert!(!has_lease(&taken, Some(1234)));
            assert!(!has_lease(&format!("{taken}- 78\n"), None));
        }
        // A pacing rate, and another socket.
        assert!(!has_lease("+ pace:8000 10 99 1235 78\n", None));
        assert!(!has_lease("+ window:9000:-:-:-:- 10 99 1235 77\n", None));
    }

    #[test]
    fn a_malformed_line_is_not_a_lease() {
        let mut held = HeldLeases::default();
        let lines = [
            "",
            "+ window 10 99 3",
            "+ window x 1 1 1",
            "+ window:x 1 1 1 1",
            "+ pace:x 1 1 1 1",
            "-",
            "- x",
        ];
        for line in lines {
            held.note(line);
        }
        assert_eq!(held, HeldLeases::default());
    }
}
