use std::process::ExitCode;

use sweetspot_kernel::probe::{self, Finding};

use crate::verbs::Ending;

/// Check the requirements of --via bpf on this host
///
/// Exit codes: 0 all requirements are met; 1 one is missing.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sweetspot tune doctor
  sweetspot tune doctor --json")]
pub struct TuneDoctorArguments {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: TuneDoctorArguments) -> Ending {
    let findings = probe::examine();
    let complete = findings.iter().all(|finding| finding.there);
    match arguments.json {
        true => out!("{}", json(&findings, complete)),
        false => print(&findings, complete),
    }
    Ok(ExitCode::from(u8::from(!complete)))
}

const NOT_TESTED: &str = "not tested: it needs the requirements above";

/// The checks that need the others, if those failed.
fn untested(findings: &[Finding]) -> impl Iterator<Item = &'static str> {
    let is_tested = |name: &str| findings.iter().any(|finding| finding.name == name);
    probe::LAST_CHECKS.into_iter().filter(move |name| !is_tested(name))
}

fn print(findings: &[Finding], complete: bool) {
    for Finding { name, there, says, next } in findings {
        out!("{:<8}{name:<14}{says}", if *there { "ok" } else { "missing" });
        next.iter().for_each(|next| out!("{:22}{next}", ""));
    }
    for name in untested(findings) {
        out!("{:<8}{name:<14}{NOT_TESTED}", "-");
    }
    out!(
        "{}",
        match complete {
            true => "tune runs via bpf here.",
            false => "tune runs only via pidfd here.",
        }
    );
}

fn json(findings: &[Finding], complete: bool) -> serde_json::Value {
    let tested = findings.iter().map(|Finding { name, there, says, next }| {
        serde_json::json!({ "name": name, "there": there, "says": says, "next": next })
    });
    let untested = untested(findings).map(
        |name| serde_json::json!({ "name": name, "there": null, "says": NOT_TESTED, "next": [] }),
    );
    let list: Vec<serde_json::Value> = tested.chain(untested).collect();
    serde_json::json!({ "bpf": complete, "findings": list })
}
