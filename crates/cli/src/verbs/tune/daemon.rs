use std::path::PathBuf;

use sweetspot_groups::policy::Policy;
use sweetspot_linux::signals::Supervisor;
use sweetspot_tune::{Chosen, HostScope, Leases, Tuner, uid_of};

use super::inside::Inside;
use super::options::{Common, Via};
use super::steer::{Until, steer};
use super::under_guard;
use crate::text_file;
use crate::verbs::Ending;

const POLICY: &str = "\
Examples:
  sweetspot tune daemon --policy /etc/sweetspot/policy.toml --dry-run
  sweetspot tune daemon --policy policy.toml --events events.jsonl

A policy:
  memory = \"256MB\"              # all windows together, shared max-min fair
  metrics = \"127.0.0.1:9477\"    # Prometheus; loopback only
  dry_run = false

  [[rule]]                      # the first rule that covers a connection decides
  programs = [\"restic\", \"rsync\"]
  users = [\"backup\"]            # names or numbers
  goal = \"less-than-best-effort\"

  [[rule]]
  ports = [443, \"8000-8999\"]
  peers = [\"10.0.0.0/8\", \"2001:db8::/32\"]
  cgroups = [\"system.slice/docker-*.scope\"]    # slices, services, containers
  goal = \"throughput\"           # or \"leave\"; what no rule covers is left alone";

/// Tune a host's connections by a policy
///
/// Runs until a signal comes. Via pidfd other users' connections need CAP_SYS_PTRACE; packaging/ has
/// a systemd unit with this capability and few others. Via bpf those of all containers are seen.
#[derive(Debug, clap::Args)]
#[command(after_help = POLICY)]
pub struct Arguments {
    #[command(flatten)]
    common: Common,

    /// The policy
    #[arg(long, value_name = "FILE")]
    policy: PathBuf,

    /// Via bpf: only the connections of this cgroup, such as system.slice/nginx.service
    #[arg(long, value_name = "CGROUP")]
    cgroup: Option<String>,
}

pub fn run(arguments: Arguments) -> Ending {
    let file = &arguments.policy;
    let text = text_file::read(file, "a policy")?;
    let policy =
        Policy::parse(&text, &uid_of).map_err(|error| format!("{}: {error}", file.display()))?;
    match arguments.common.via {
        Via::Pidfd => under_guard(|leases| play(&arguments, policy, None, leases), || {}),
        Via::Bpf => {
            let uploads = arguments.common.uploads();
            let inside = Inside::on(arguments.cgroup.as_deref(), uploads)?;
            let undo = inside.undo();
            under_guard(|leases| play(&arguments, policy, Some(inside), leases), undo)
        }
    }
}

fn play(
    arguments: &Arguments,
    policy: Policy,
    inside: Option<Inside>,
    leases: Leases,
) -> Result<u8, Box<dyn std::error::Error>> {
    let mut options = arguments.common.options()?;
    options.memory = policy.memory;
    options.dry_run |= policy.dry_run;
    let mut journal = arguments.common.journal_with(policy.metrics)?;
    let mut supervisor = Supervisor::new()?;
    let until = Until::Signal;
    let code = match inside {
        Some(inside) => {
            let scope = inside.scope(Chosen::ByPolicy(policy));
            let mut tuner = Tuner::new(scope, options, leases);
            steer(&mut tuner, &mut supervisor, &mut journal, &until)
        }
        None => {
            let mut tuner = Tuner::new(HostScope::new(policy)?, options, leases);
            steer(&mut tuner, &mut supervisor, &mut journal, &until)
        }
    };
    Ok(code?)
}
