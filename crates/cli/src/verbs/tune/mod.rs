//! `tune`: sizes the windows of live connections of any program.

mod attach;
mod daemon;
mod doctor;
mod inside;
mod journal;
mod options;
mod run;
mod steer;
mod undo;

use std::process::ExitCode;

use clap::Subcommand;
use sweetspot_linux::signals::Supervisor;
use sweetspot_tune::{Leases, guarded, lift_leftovers};

use super::{Ending, Fallible};
use inside::Inside;

const EXAMPLES: &str = "\
Examples:
  Download without filling the bottleneck's buffer:
    sweetspot tune run -- curl -O https://example.org/dataset.tar

  Tune a running program:
    sweetspot tune attach 4711

  Upload without filling it:
    sweetspot tune run --send -- rsync -a data/ host:/backup

  Run a command untuned, and print what tuning would do:
    sweetspot tune run --dry-run --events events.jsonl -- rsync -a host:/data .

  Lift the limits of a tuner that was killed together with its guardians:
    sweetspot tune undo

Actions in messages, with their names in --events where those differ:
  limited (taken)             the window of a bulk transfer has a limit
  held                        its window or pacing rate is held at capacity
  reduced (tightened)         a smaller window or pacing rate is tried
  yielding (yielded)          a less-than-best-effort transfer makes way for
                              cross traffic
  growing again (reopened)    an upload's pacing rate grows again, or a transfer
                              that yielded
  released (let_go)           a hold or a trial ends: its limit does not help
  lifted                      tuning ends
  cannot be limited (refused) the kernel refuses or ignores the limit
  closed (gone)               the connection has ended
  advice (advised)            a change that would help an upload
  switched                    another congestion control
  adjusted                    the limit follows the window or the rate (-v)
  not limited (not_limited)   a bulk transfer needed no limit, or the policy
                              does not tune a connection (-v)
A bulk transfer moves at least 60 kB. Via bpf, it must do so within 2 s.
The advertised window is the one that this kernel announces to the sender; a
larger limit has no effect yet. In the summary, the first rate and RTT are from
before the first reduction; the second are the medians since.

Members of --events, a line of JSON for each action:
  t_s                seconds since 1970 (UTC)
  event, why         the action; its reason, in words
  pid, program, local, remote, cookie
                     the connection and its process; 0 and ? if that is unknown
  from_bytes, to_bytes
                     window limit before and after; null for no limit
  clamp_bytes, advertised_bytes
                     the kernel's clamp and advertised window after the change;
                     null if unknown, or if the limit had changed again
  pace_from_bps, pace_to_bps, pace_kernel_bps
                     for uploads, instead of these four: pacing rate before,
                     after, and in the kernel
  congestion_to      for a switch, instead: the congestion control
  goodput_bps, rtt_s, rtt_min_s
                     of this connection; null before the first measurement. The
                     goodput is the mean of about 200 ms, or an upload's
                     delivery rate
  rule               the rule of the policy that matched, with its number,
                     line and goal; absent if none did
  dry_run            true in a dry run, otherwise absent
  tuned, not_limited in the last line, whose event is ended and which has no
                     connection: the number of tuned connections; the others,
                     by reason, each with reason, connections, peer";

/// Size the windows of live connections of any program
///
/// Holds downloads at the window that fills the path without a standing queue, by limiting the receive
/// window of each bulk connection from outside (TCP_WINDOW_CLAMP). With --send, also paces uploads.
/// Leaves all other connections alone, and lifts every limit at exit. If the tuner, its guardian or
/// both are killed (kill -9), a third process lifts the limits. If all three are killed at once, limits
/// via bpf expire within two seconds. Limits via pidfd then stay until the connection ends, or until
/// the same user next runs `sweetspot tune`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct TuneArguments {
    #[command(subcommand)]
    verb: TuneVerb,
}

#[derive(Debug, Subcommand)]
enum TuneVerb {
    Run(run::TuneRunArguments),
    Attach(attach::TuneAttachArguments),
    Daemon(daemon::TuneDaemonArguments),
    Doctor(doctor::TuneDoctorArguments),
    Undo(undo::TuneUndoArguments),
}

pub fn run(arguments: TuneArguments) -> Ending {
    match arguments.verb {
        TuneVerb::Run(arguments) => run::run(arguments),
        TuneVerb::Attach(arguments) => attach::run(arguments),
        TuneVerb::Daemon(arguments) => daemon::run(arguments),
        TuneVerb::Doctor(arguments) => doctor::run(arguments),
        TuneVerb::Undo(arguments) => undo::run(arguments),
    }
}

/// Runs `work` under a guardian process that undoes it, with the programs attached to a cgroup; errors are printed before the
/// guardian ends. The exit code after one is `failed`.
fn under_guard(
    inside: Option<Inside>,
    failed: u8,
    work: impl FnOnce(Option<Inside>, Leases, Supervisor) -> Fallible<u8>,
) -> Ending {
    let left = lift_leftovers();
    if left > 0 {
        note!("sweetspot: {}", undo::words(left));
    }
    let undo = inside.as_ref().map(Inside::undo);
    let work = |leases, supervisor| {
        work(inside, leases, supervisor).unwrap_or_else(|error| {
            err!("sweetspot: {error}");
            failed
        })
    };
    Ok(ExitCode::from(guarded(work, || undo.iter().for_each(|undo| undo()))?))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use sweetspot_control::policy::MatchedRule;
    use sweetspot_control::{
        AppliedChange, ConnectionOwner, NotLimited, TuneEvent, TuneEventKind, UnlimitedConnections,
        ended_line,
    };
    use sweetspot_units::{Duration, Rate};

    use super::EXAMPLES;
    use crate::verbs::members::listed;

    fn event(change: AppliedChange) -> TuneEvent {
        let rule = MatchedRule { number: 1, line: 2, goal: None };
        TuneEvent {
            wall_s: 1.0,
            connection_owner: ConnectionOwner {
                pid: 1,
                program: "curl".to_owned(),
                local: "192.0.2.1:50000".parse().unwrap(),
                remote: "192.0.2.2:443".parse().unwrap(),
                cookie: 7,
                rule: Some(rule),
            },
            kind: TuneEventKind::Taken,
            why: "why".to_owned(),
            change,
            rate: Rate::ZERO,
            rtt: (Duration::ZERO, None),
        }
    }

    /// The lines of --events: one of each kind, with all members.
    fn lines() -> Vec<serde_json::Value> {
        let to = "bbr".parse().unwrap();
        let changes = [
            AppliedChange::Window { from: None, to: None, clamp: None, advertised: None },
            AppliedChange::Pace { from: None, to: None, kernel: None },
            AppliedChange::Congestion { to },
        ];
        let mut unlimited = UnlimitedConnections::default();
        unlimited.add(NotLimited::Small, "192.0.2.2:443".parse().unwrap());
        let ended = ended_line(1.0, true, Some("why"), 0, &unlimited);
        let lines = changes.map(|change| event(change).json(true)).into_iter().chain([ended]);
        lines.map(|line| serde_json::from_str(&line).unwrap()).collect()
    }

    /// Compares with the code: the help and docs/formats.md name each member that it writes, and the help names no other.
    #[test]
    fn the_help_lists_exactly_the_event_members() {
        let written = lines();
        let keys = |line: &serde_json::Value| {
            line.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>()
        };
        let members: BTreeSet<String> = written.iter().flat_map(keys).collect();
        let (_, help) = EXAMPLES.split_once("Members of --events").unwrap();
        assert_eq!(listed(help), members);
        let page = include_str!("../../../../../docs/formats.md");
        let (begin, end) =
            (page.find("## Events of `tune`").unwrap(), page.find("## A diagnosis").unwrap());
        let page = &page[begin..end];
        let inner = keys(&written.last().unwrap()["not_limited"][0]);
        let rule = keys(&written[0]["rule"]);
        for name in members.iter().chain(&inner).chain(&rule) {
            assert!(page.contains(&format!("`{name}`")), "docs/formats.md lacks {name}");
        }
        assert!(inner.iter().chain(&rule).all(|name| help.contains(name.as_str())), "{inner:?}");
        for reason in NotLimited::ALL {
            let name = serde_json::to_value(reason).unwrap();
            let name = format!("`{}`", name.as_str().unwrap());
            assert!(page.contains(&name), "docs/formats.md lacks {name}");
        }
    }

    #[test]
    fn the_help_lists_each_action_with_its_event_name() {
        for kind in TuneEventKind::ALL {
            let (words, name) = (kind.words(), kind.name());
            let entry = if words == name { name.to_owned() } else { format!("{words} ({name})") };
            let is_listed = |line: &str| line.trim().starts_with(&entry);
            assert!(EXAMPLES.lines().any(is_listed), "{entry}");
        }
    }
}
