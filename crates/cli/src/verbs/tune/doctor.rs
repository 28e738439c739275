use std::process::ExitCode;

use sweetspot_kernel::probe::{self, Finding};

use crate::verbs::Ending;

const EXAMPLES: &str = "\
Examples:
  sweetspot tune doctor
  sweetspot tune doctor --json | jq '.findings[] | select(.met == false)'

Exit codes: 0 all requirements are met; 1 one is missing, and tune uses pidfd,
or the list cannot be written; 2 the command line is wrong.

Members of --json:
  bpf                true if tune run and tune daemon use bpf here
  findings           the requirements, each with name, met (true or false, or
                     null if it was not tested), detail (the value, or the
                     missing part) and next (the next step, or null if it needs
                     none)";

/// Check the requirements of --via bpf on this host
///
/// Each line is a requirement: ok, missing (with the next step), or - if it was not tested. Loading the
/// programs needs root. --via pidfd needs none of these.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct TuneDoctorArguments {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: TuneDoctorArguments) -> Ending {
    let findings = probe::examine();
    let complete = findings.iter().all(|finding| finding.is_present);
    match arguments.json {
        true => out!("{}", json(&findings, complete)),
        false => print(&findings, complete),
    }
    Ok(ExitCode::from(u8::from(!complete)))
}

const NOT_TESTED: &str = "not tested: it needs the requirements above";

/// The checks that were not run because a requirement is missing.
fn untested(findings: &[Finding]) -> impl Iterator<Item = &'static str> {
    let is_tested = |name: &str| findings.iter().any(|finding| finding.name == name);
    probe::LAST_CHECKS.into_iter().filter(move |name| !is_tested(name))
}

fn print(findings: &[Finding], complete: bool) {
    for Finding { name, is_present, says, next } in findings {
        out!("{:<8}{name:<14}{says}", if *is_present { "ok" } else { "missing" });
        next.iter().for_each(|next| out!("{:22}{next}", ""));
    }
    for name in untested(findings) {
        out!("{:<8}{name:<14}{NOT_TESTED}", "-");
    }
    let lacks_root = findings.iter().any(|finding| finding.name == "rights" && !finding.is_present);
    out!(
        "{}",
        match (complete, lacks_root) {
            (true, _) => "tune run and tune daemon use bpf here; tune attach does with --via bpf.",
            (false, true) => "Without root, tune runs via pidfd.",
            (false, false) => "tune runs via pidfd here.",
        }
    );
}

fn json(findings: &[Finding], complete: bool) -> serde_json::Value {
    let tested = findings.iter().map(|Finding { name, is_present, says, next }| {
        serde_json::json!({ "name": name, "met": is_present, "detail": says, "next": next })
    });
    let untested = untested(findings).map(
        |name| serde_json::json!({ "name": name, "met": null, "detail": NOT_TESTED, "next": null }),
    );
    let list: Vec<serde_json::Value> = tested.chain(untested).collect();
    serde_json::json!({ "bpf": complete, "findings": list })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::members::listed;

    /// Each kind of finding: met, missing and not tested.
    #[test]
    fn every_finding_has_the_same_members_and_a_next_step_if_unmet() {
        let finding =
            |name, is_present, next| Finding { name, is_present, says: "x".to_owned(), next };
        let next = Some("use --via pidfd");
        let json = json(&[finding("kernel", true, None), finding("BTF", false, next)], false);
        let findings = json["findings"].as_array().unwrap();
        assert_eq!(findings.len(), 2 + probe::LAST_CHECKS.len());
        let page = include_str!("../../../../../docs/formats.md");
        for finding in findings {
            let step = &finding["next"];
            assert!(if finding["met"] == false { step.is_string() } else { step.is_null() });
            for name in finding.as_object().unwrap().keys() {
                assert!(EXAMPLES.contains(&format!(" {name} (")) || name == "name", "{name}");
                assert!(page.contains(&format!("`{name}`")), "{name}");
            }
        }
        let (_, help) = EXAMPLES.split_once("Members of --json").unwrap();
        let members = json.as_object().unwrap().keys().cloned().collect();
        assert_eq!(listed(help), members);
    }
}
