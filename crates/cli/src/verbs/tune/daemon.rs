use std::collections::BTreeSet;
use std::fs;
use std::io::{self, IsTerminal};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sweetspot_control::policy::Policy;
use sweetspot_linux::processes;
use sweetspot_linux::signals::Supervisor;
use sweetspot_linux::sysctl;
use sweetspot_tune::{Chosen, HostScope, KernelScope, Leases, Tuner, TunerOptions, uid_of};

use super::inside::{Inside, report_untracked};
use super::journal::{EventLog, Watched};
use super::options::{Common, Via, via_help};
use super::steer::{Until, steer_with};
use super::under_guard;
use crate::verbs::{Ending, Fallible};
use sweetspot_program::print::Shown;
use sweetspot_program::text_file;
use sweetspot_program::usage_error::UsageError;

const POLICY: &str = "\
Examples:
  sweetspot tune daemon --policy /etc/sweetspot/policy.toml --dry-run
  sweetspot tune daemon --policy policy.toml --events events.jsonl

A policy:
  # Total memory for all windows, shared max-min fairly
  memory = \"256MB\"
  # Prometheus, loopback only; --metrics replaces it
  metrics = \"127.0.0.1:9477\"
  # true acts like --dry-run; false does not undo that
  dry_run = false

  # Every rule needs a goal. The first rule whose other
  # keys all match a connection decides; a rule without
  # other keys matches every connection. Connections
  # that no rule matches are left alone.
  [[rule]]
  # The names that `ps -o comm` shows
  programs = [\"restic\", \"rsync\"]
  users = [\"backup\"]            # names or numbers
  goal = \"less-than-best-effort\"

  [[rule]]
  ports = [443, \"8000-8999\"]    # local or remote
  peers = [\"10.0.0.0/8\", \"2001:db8::/32\"]  # remote
  cgroups = [\"system.slice/docker-*.scope\"]
  # Via bpf, with --send; a program's own choice wins
  congestion = \"bbr\"
  goal = \"throughput\"           # or \"leave\"

Exit codes: 0 a signal ended it; 1 tuning could not start or continue; 2 the
command line or the policy is wrong.

`sweetspot tune --help` explains the actions and the members of --events.";

/// Tune a host's connections by a policy
///
/// Runs until a signal ends it (SIGHUP, too). It applies a changed policy within a second, without a signal. At the end it lists the tuned connections (a dry run counts them), and why
/// other bulk transfers (60 kB or more) were not limited. A policy from a pipe is read only once. Via pidfd, it needs CAP_SYS_PTRACE for other users'
/// connections; the Debian package's unit sweetspot-tune.service has this capability and few others. Via bpf, it sees the connections
/// of all containers.
#[derive(Debug, clap::Args)]
#[command(after_help = POLICY)]
#[command(mut_arg("via", |via| via.help(via_help!("auto"))))]
pub struct TuneDaemonArguments {
    #[command(flatten)]
    common: Common,

    /// Policy file; an example is below
    #[arg(long, value_name = "FILE")]
    policy: PathBuf,

    /// Via bpf: tune only the connections of this cgroup, such as system.slice/nginx.service
    #[arg(long, value_name = "CGROUP")]
    cgroup: Option<String>,
}

pub fn run(arguments: TuneDaemonArguments) -> Ending {
    let policy = read(&arguments.policy)?;
    let cgroup = arguments.cgroup.as_deref();
    // Only BPF programs can be attached to one cgroup. If they are not available, the error names the missing requirement.
    let usual = if cgroup.is_some() { Via::Bpf } else { Via::Auto };
    let inside = arguments.common.inside(
        usual,
        arguments.common.is_dry_run() || policy.dry_run,
        |watch| Inside::on(cgroup, watch),
    )?;
    if inside.is_none() && cgroup.is_some() {
        return Err(UsageError::new("--cgroup needs --via bpf").into());
    }
    under_guard(inside, 1, |inside, leases, supervisor| {
        guarded(&arguments, policy, inside, leases, supervisor)
    })
}

fn read(file: &Path) -> Fallible<Policy> {
    let text = text_file::read(file, "a policy").map_err(UsageError::new)?;
    let policy = Policy::parse(&text, &uid_of);
    Ok(policy.map_err(|error| UsageError::new(format!("{}: {error}", file.shown())))?)
}

/// The first line of the log: the mechanism, the rules and the metrics address.
fn beginning(
    arguments: &TuneDaemonArguments,
    policy: &Policy,
    is_inside: bool,
    dry_run: bool,
) -> String {
    let via = if is_inside { "bpf" } else { "pidfd" };
    let rules = rules(policy);
    let metrics = match arguments.common.metrics().or(policy.metrics) {
        Some(address) => format!("metrics at http://{address}/metrics"),
        None => "no metrics".to_owned(),
    };
    let sight = match is_inside || processes::may_inspect_others() {
        true => "",
        false => {
            "; it sees only the sockets of its own user's processes (others need CAP_SYS_PTRACE)"
        }
    };
    let (what, so) = match dry_run {
        true => ("dry run of", "nothing is changed; "),
        false => ("tuning by", ""),
    };
    let ends = if io::stderr().is_terminal() { EventLog::ctrl_c(dry_run) } else { "" };
    let file = arguments.policy.shown();
    format!("{what} {file} ({rules}) via {via}; {so}{metrics}{sight}{ends}")
}

fn rules(policy: &Policy) -> String {
    match policy.rules() {
        1 => "1 rule".to_owned(),
        count => format!("{count} rules"),
    }
}

/// Reports the rules that never match, and the congestion controls that connections will not have, and why.
fn warn_about_ineffective_rules(arguments: &TuneDaemonArguments, policy: &Policy, is_inside: bool) {
    let file = arguments.policy.shown();
    policy.shadowed().iter().for_each(|rule| err!("sweetspot: {file}: {rule}"));
    let sends = arguments.common.sends();
    let offered = sysctl::available_congestion_controls().unwrap_or_default();
    let names: BTreeSet<String> = policy.congestion_names().map(|name| name.to_string()).collect();
    for name in names {
        let why = match (is_inside, sends, offered.contains(&name)) {
            (true, false, _) => "it needs --send".to_owned(),
            (false, true, _) => "it needs --via bpf".to_owned(),
            (false, false, _) => "it needs --via bpf and --send".to_owned(),
            (true, true, false) => {
                format!("this kernel does not offer it; try modprobe tcp_{name}")
            }
            (true, true, true) => continue,
        };
        err!("sweetspot: {file}: congestion = \"{name}\" has no effect: {why}");
    }
}

/// The policy's file. It may change while the daemon runs.
struct PolicyFile<'a> {
    path: &'a Path,
    /// The file when it was last read; `None` if it was gone since.
    seen: Option<FileStamp>,
    /// The policy in force.
    policy: Policy,
    /// Whether the last message was that the file does not have this policy.
    is_astray: bool,
    /// The number of polls in a row that did not find the file.
    missing: u32,
    /// Whether it is a pipe, which has been read to its end.
    is_pipe: bool,
}

/// Modification time, length and inode.
type FileStamp = (SystemTime, u64, u64);

/// While a file is being replaced, at most one poll misses it.
const MISSING_POLLS: u32 = 2;

impl PolicyFile<'_> {
    fn new(path: &Path, policy: Policy) -> PolicyFile<'_> {
        // The first poll reads it: the file may have changed since `policy` was read.
        let is_pipe = fs::metadata(path).is_ok_and(|file| file.file_type().is_fifo());
        PolicyFile { path, seen: None, policy, is_astray: false, missing: 0, is_pipe }
    }

    /// The new policy, if it has changed, and the message to log, if any. If the file cannot be read, the old policy stays.
    fn poll(&mut self) -> (Option<Policy>, Option<String>) {
        if self.is_pipe {
            return (None, None);
        }
        let (now, path) = (stamp(self.path), self.path.shown());
        if now.is_none() {
            self.missing += 1;
            let is_gone = self.missing == MISSING_POLLS;
            self.is_astray |= is_gone;
            if is_gone {
                self.seen = None;
            }
            let words = format!("{path} is gone; the previous policy stays in force");
            return (None, is_gone.then_some(words));
        }
        self.missing = 0;
        if now == self.seen {
            return (None, None);
        }
        self.seen = now;
        match read(self.path) {
            Ok(policy) if policy == self.policy => {
                let is_back = std::mem::take(&mut self.is_astray);
                let words = format!("{path} is back, with the policy that stayed in force");
                (None, is_back.then_some(words))
            }
            Ok(policy) => {
                self.is_astray = false;
                self.policy = policy.clone();
                let rules = rules(&policy);
                let words = format!("{path}: the changed policy is in force, with {rules}");
                (Some(policy), Some(words))
            }
            Err(error) => {
                self.is_astray = true;
                (None, Some(format!("{error}; the previous policy stays in force")))
            }
        }
    }

    /// Like [`PolicyFile::poll`], but logs the message.
    fn reread(&mut self) -> Option<Policy> {
        let (policy, words) = self.poll();
        match (words, policy.is_some()) {
            (Some(words), true) => note!("sweetspot: {words}"),
            (Some(words), false) => err!("sweetspot: {words}"),
            (None, _) => {}
        }
        policy
    }
}

fn stamp(path: &Path) -> Option<FileStamp> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len(), metadata.ino()))
}

/// The reason given for lifting limits when the policy changes.
const CHANGED: &str = "the policy has changed";

fn guarded(
    arguments: &TuneDaemonArguments,
    policy: Policy,
    inside: Option<Inside>,
    leases: Leases,
    mut supervisor: Supervisor,
) -> Fallible<u8> {
    let mut options = arguments.common.options()?;
    let asked_for = options.dry_run;
    let follow = |options: &mut TunerOptions, policy: &Policy| {
        options.memory = policy.memory;
        options.dry_run = asked_for || policy.dry_run;
    };
    follow(&mut options, &policy);
    let mut file = PolicyFile::new(&arguments.policy, policy.clone());
    let place = arguments.cgroup.iter().map(|name| format!(" in {name}")).collect::<String>();
    let (owner, is_inside) = (format!("any process{place}"), inside.is_some());
    let watched = Watched { owner, is_inside, is_host: true, is_explicit: true };
    let mut journal = arguments.common.journal_with(policy.metrics, watched)?;
    // The metrics are served from here on.
    let dry_run = options.dry_run;
    journal.begin_host(&beginning(arguments, &policy, is_inside, dry_run), dry_run);
    warn_about_ineffective_rules(arguments, &policy, is_inside);
    let until = Until::Signal;
    let code = match inside {
        Some(inside) => {
            let scope = inside.scope(Chosen::ByPolicy(policy));
            let mut tuner = Tuner::new(scope, options, leases);
            let mut revise = |tuner: &mut Tuner<KernelScope>| {
                let Some(policy) = file.reread() else { return };
                warn_about_ineffective_rules(arguments, &policy, true);
                tuner.restart(CHANGED, |scope, options| {
                    follow(options, &policy);
                    scope.rehearse(options.dry_run);
                    report_untracked(&scope.choose(Chosen::ByPolicy(policy)));
                });
            };
            steer_with(&mut tuner, &mut supervisor, &mut journal, &until, &mut revise)
        }
        None => {
            let mut tuner =
                Tuner::new(HostScope::new(policy, arguments.common.sends())?, options, leases);
            let mut revise = |tuner: &mut Tuner<HostScope>| {
                let Some(policy) = file.reread() else { return };
                warn_about_ineffective_rules(arguments, &policy, false);
                tuner.restart(CHANGED, |scope, options| {
                    follow(options, &policy);
                    scope.set_policy(policy);
                });
            };
            steer_with(&mut tuner, &mut supervisor, &mut journal, &until, &mut revise)
        }
    };
    Ok(code?)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn a_policy_from_a_pipe_is_not_read_again() {
        let (reader, writer) = io::pipe().unwrap();
        drop(writer);
        // Its end has been reached: reading it again would find an empty policy.
        let path = PathBuf::from(format!("/proc/self/fd/{}", reader.as_raw_fd()));
        let policy = Policy::parse("[[rule]]\ngoal = \"leave\"\n", &uid_of).unwrap();
        assert_eq!(PolicyFile::new(&path, policy).poll(), (None, None));
    }

    #[test]
    fn each_change_of_the_policy_file_is_reported_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("policy.toml");
        let [one, two] = ["", "\n[[rule]]\ngoal = \"throughput\""]
            .map(|more| format!("[[rule]]\nports = [443]\ngoal = \"leave\"{more}\n"));
        // A new file has a new inode, whatever the resolution of its time.
        let write = |text: &str| {
            let other = folder.path().join("other");
            fs::write(&other, text).unwrap();
            fs::rename(other, &path).unwrap();
        };
        write(&one);
        let mut file = PolicyFile::new(&path, read(&path).unwrap());
        // Polls often; returns the messages, and whether there is a new policy.
        let mut polls = || {
            let polls: Vec<_> = (0..5).map(|_| file.poll()).collect();
            let is_new = polls.iter().any(|(policy, _)| policy.is_some());
            let words: Vec<String> = polls.into_iter().filter_map(|(_, words)| words).collect();
            (words, is_new)
        };
        let told = |(words, is_new): (Vec<String>, bool), expected: &str, is_new_policy| {
            assert!(matches!(&words[..], [only] if only.contains(expected)), "{words:?}");
            assert_eq!(is_new, is_new_policy, "{expected}");
        };
        let nothing = (Vec::new(), false);
        assert_eq!(polls(), nothing);
        // The same policy in a new file.
        write(&one);
        assert_eq!(polls(), nothing);
        write("");
        told(polls(), "it has no [[rule]]", false);
        fs::remove_file(&path).unwrap();
        told(polls(), "is gone", false);
        write(&one);
        told(polls(), "is back", false);
        let aside = folder.path().join("aside");
        fs::rename(&path, &aside).unwrap();
        told(polls(), "is gone", false);
        fs::rename(&aside, &path).unwrap();
        told(polls(), "is back", false);
        write(&two);
        told(polls(), "the changed policy is in force, with 2 rules", true);
    }
}
