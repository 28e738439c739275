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

fn print(findings: &[Finding], complete: bool) {
    for Finding { name, there, says, next } in findings {
        out!("{:<8}{name:<14}{says}", if *there { "ok" } else { "missing" });
        next.iter().for_each(|next| out!("{:22}{next}", ""));
    }
    for name in probe::LAST_CHECKS {
        if findings.iter().all(|finding| finding.name != name) {
            out!("{:<8}{name:<14}not tested: it needs the requirements above", "-");
        }
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
    let list: Vec<serde_json::Value> = findings
        .iter()
        .map(|Finding { name, there, says, next }| {
            serde_json::json!({ "name": name, "there": there, "says": says, "next": next })
        })
        .collect();
    serde_json::json!({ "bpf": complete, "findings": list })
}
