//! `tune`: sizes the windows of live connections of any program.

mod attach;
mod daemon;
mod doctor;
mod inside;
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

  Print the actions without doing them:
    sweetspot tune run --dry-run --events events.jsonl -- rsync -a host:/data .

  Lift the limits of a tuner that was killed together with its guardians:
    sweetspot tune undo

Actions in messages, with their names in --events where those differ:
  limited (taken)             the window of a bulk transfer has a limit
  held                        its window or pace is held at the path's capacity
  reduced (tightened)         a smaller window or pace is tried
  growing again (reopened)    an upload's pace grows again
  released (let_go)           its limit does not help
  lifted                      tuning ends
  cannot be limited (refused) the kernel refuses or ignores the limit
  closed (gone)               the connection has ended
  advice (advised)            a change that would help an upload
  switched                    another congestion control
  adjusted                    the limit follows the window (-v, --events)
\"advertised\" is the window that this kernel announces to the sender; a larger
limit has no effect yet.";

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
/// guardian ends.
fn under_guard(
    inside: Option<Inside>,
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
            1
        })
    };
    Ok(ExitCode::from(guarded(work, || undo.iter().for_each(|undo| undo()))?))
}

#[cfg(test)]
mod tests {
    use sweetspot_control::TuneEventKind;

    use super::EXAMPLES;

    #[test]
    fn the_help_has_each_action_with_its_name_in_events() {
        for kind in TuneEventKind::ALL {
            let (words, name) = (kind.words(), kind.name());
            let entry = if words == name { name.to_owned() } else { format!("{words} ({name})") };
            let is_listed = |line: &str| line.trim().starts_with(&entry);
            assert!(EXAMPLES.lines().any(is_listed), "{entry}");
        }
    }
}
