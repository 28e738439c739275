//! Checks this host for the features that the programs need.

use sweetspot_units::{Bytes, Duration};

use crate::command::Watch;
use crate::host::{Host, finding};
use crate::programs::SocketPrograms;

pub use crate::host::{Finding, lacking};

/// The findings that [`examine`] omits if a requirement is missing.
pub const LAST_CHECKS: [&str; 2] = ["loading", "connections"];

/// Examines this host. If no requirement is known to be missing, ends with an attempt to load the programs.
pub fn examine() -> Vec<Finding> {
    let host = Host::read();
    let mut findings = host.findings();
    if findings.iter().all(|finding| finding.is_present) {
        let loading = loads();
        let is_present = loading.is_present;
        findings.push(loading);
        findings.extend(is_present.then(|| host.existing()));
    }
    findings
}

/// The reason why this host cannot run the programs: a missing feature, or a kernel that is too old and rejects them. `None`
/// on a newer kernel, where a rejection is a bug.
pub fn obstacle() -> Option<Finding> {
    let host = Host::read();
    let mut findings = host.findings();
    if findings.iter().all(|finding| finding.is_present) && host.explanation().is_some() {
        findings.push(loads());
    }
    findings.into_iter().find(|finding| !finding.is_present)
}

/// Whether the kernel loads the event programs.
fn loads() -> Finding {
    let watch = Watch {
        bulk: Bytes::new(1),
        within: Duration::from_secs(1),
        interval: Duration::from_secs(1),
        uploads: false,
        dry_run: false,
    };
    let loaded = SocketPrograms::load(watch);
    let is_present = loaded.is_ok();
    let says = match loaded {
        Ok(_) => "the verifier accepts the programs".to_owned(),
        Err(error) => error.to_string(),
    };
    finding("loading", is_present, says, "use --via pidfd")
}
